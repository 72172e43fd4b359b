"""Figures in sentences, of invented numbers: the right one stays, a wrong one is named, make readme mends it."""

import contextlib
import re
from unittest import mock

import pytest
from conftest import LADDER
from fake_ladder import MICROSECONDS, STAGES, ladder_csv
from fakes import CONTROLS, NAMES, VECTOR, Machine, refused
from ladder.core import ladders, results
from ladder.pages import figures, site

COUNTERS = "name,metric,unit,value\nduration,gpu__time_duration.sum,ns,{ns}\nbusy,dram__throughput.avg.pct_of_peak_sustained_elapsed,%,{busy}\n"
PEERS = """\
rows,cols,dtype,competitor,microseconds,memory
1,4096,float32,ours,2.00,
1,4096,float32,liger,3.00,in place
1,4096,float32,torch,,
64,4096,float32,ours,5.00,
64,4096,float32,liger,4.00,in place
64,4096,float32,torch,10.00,
64,8192,float32,ours,8.00,
64,8192,float32,liger,9.00,in place
64,8192,float32,torch,16.00,
"""
WIDE = "groups,one_block_microseconds,cluster_8_microseconds\n8,4.00,2.00\n132,6.00,5.00\n"
PAGE = f"{LADDER}/README.md"


@pytest.fixture
def tree(tmp_path):
    """Stages of 4000, 200, 250 and 40 µs on 8192 x 8192, twice that on 1024 x 65536."""
    machine = Machine(tmp_path)

    def put(name, text):
        machine.write(f"profiling_results/fake-9000/{name}", text)

    long = ladder_csv({"rows": 1024, "cols": 65536}, factor=dict.fromkeys(STAGES, 2)).split("\n", 1)[1]
    put("matrix/main.csv", ladder_csv())
    put("matrix/by_columns.csv", ladder_csv() + long)
    put("matrix/controls.csv", ladder_csv(stages=CONTROLS))
    put("vector/main.csv", ladder_csv({"n": 4194304}, STAGES[:2], {"01_basic": 2}, optional=()))
    put("header/peers.csv", PEERS)
    put("header/wide.csv", WIDE)
    for stage in STAGES:
        put(f"matrix/ncu/{stage}.csv", COUNTERS.format(ns=int(1000 * MICROSECONDS[stage]), busy="12.5"))
        put(f"matrix/ncu_one_row/{stage}.csv", COUNTERS.format(ns=7, busy="missing"))
    return machine


def block(name):
    return f"<!-- {name}:begin -->\nNot measured yet.\n<!-- {name}:end -->\n"


def stage_page(stage):
    said = f'<!-- stage idea="the idea of {stage}" change="a" removes="b" -->\n'
    claims = "<!-- table:cpu_device:begin loads=4x4 stores=4x4 asked=8 barriers=1 shuffles=5 -->\nNot counted yet.\n"
    return f"# {stage}\n\n{said}\n{block('figures')}\n{claims}<!-- table:cpu_device:end -->\n"


def page(asked, stands, before=""):
    return f"# Title\n\n{before}\n\nIt is <!--= {asked} -->{stands}<!--/-->\nor so.\n"


@contextlib.contextmanager
def of(tree):
    with mock.patch.object(ladders, "ROOT", tree.root):
        yield figures.Figures(results.stored())


HEADER = "<!--; in header/peers -->"
RIGHT = [  # what is asked, what the data say, what stands before it on the page
    ("us 02", "200.00", ""),
    ("us 2", "200", ""),
    ("us basic", "4,000", ""),
    ("us vector/01", "8000", ""),
    ("us 03_with_256_threads in controls", "230.0", ""),
    ("us 03 in by_columns 1024x65536", "500", ""),
    ("us 03 in by_columns cols=65536", "500", ""),
    ("us 03; in by_columns 1024x65536", "500", ""),
    ("us 03 8192x8192; in by_columns 1024x65536", "250", ""),
    ("copy 03", "150", ""),
    ("duration 02 / 1e3", "200", ""),
    ("dram_busy 02", "12.5", ""),
    ("duration 02 in one_row", "7", ""),
    ("us 01 / us 02", "20", ""),
    ("us 01 / us 02", "twenty", ""),
    ("us 02 / us 04 - 3", "twice", ""),
    ("us 02 / us 04", "Five times", ""),
    ("us 02 / (us 02 + us 02)", "half", ""),
    ("(us 03 - us 02) / us 02", "a quarter", ""),
    ("less(us 02, us 03)", "20.0", ""),
    ("more(us 03, us 02)", "25", ""),
    ("round(us 03, 100)", "200", ""),
    ("min(us 02 03, us 04)", "40", ""),
    ("max(us without 01)", "250", ""),
    ("sum(us 02 03)", "450", ""),
    ("mean(us 02 03)", "225", ""),
    ("lowest(us)", "04_short", ""),
    ("highest(us)", "`01`", ""),
    ("highest(duration)", "`01_basic`", ""),
    ("us 03 > us 02 ? slower : faster", "slower", ""),
    ("us 02 < us 03 < us 04 ? in order : not in order", "not in order", ""),
    ("lowest(us) is 02 04 and us 01 > us 02 ? yes : no", "yes", ""),
    ("near(us 02, us 03, 20) ? as long : longer", "as long", ""),
    ("count(each us 02 > 300); in by_columns", "one", ""),
    ("max(each us 02); in by_columns", "400", ""),
    ("all(each (us 02 < us 03 and us 04 < us 02)); in by_columns ? always : not always", "always", ""),
    ("count(each us ours < us liger)", "2", HEADER),
    ("count(each us ours < us torch)", "two", HEADER),
    ("min(each min(us without ours) / us ours)", "0.80", HEADER),
    ("geomean(each us liger / us ours)", "1.105", HEADER),
    ("lowest(us); rows=64 cols=4096", "liger", HEADER),
    ('us liger rows=64 cols=8192 memory="in place"', "9.00", HEADER),
    ("count(each us ours) ; by=rows,cols", "3", HEADER),
    ("max(us ours rows=1, us ours rows=64 cols=4096)", "5", HEADER),
    ("max(each us ours); by=cols rows=64", "8", HEADER),
    ("cluster_8_us in header/wide groups=132", "5.00", ""),
    ("max(each one_block_us / cluster_8_us); in header/wide", "2.0", ""),
]


def wrong_texts(right):
    """Numbers that differ in the last digit, other words of the kind, or ten other texts."""
    if re.fullmatch(r"[\d,]*\.?\d+", right):
        digits = len(right.partition(".")[2])
        value = float(right.replace(",", ""))
        return [f"{value + step / 10**digits:.{digits}f}" for step in (*range(-5, 0), *range(1, 6))]
    for kind in (figures.TIMES, figures.INTEGERS, figures.SHARES):
        if right.lower() in kind:
            return [word for word in kind if word != right.lower()]
    return "02_reduction5 03 `02` thrice faster ours 999 0.123 -7 nineteen".split()


@pytest.mark.parametrize("asked, right, before", RIGHT, ids=[" ".join(case[:2]) for case in RIGHT])
def test_wrong_figures_are_named_and_mended(tree, asked, right, before):
    text = page(asked, right, before)
    with of(tree) as those:
        assert those.renewed(tree.root / PAGE, text) == (text, [])
        wrong = wrong_texts(right)
        assert len(wrong) >= 10
        for stands in wrong:
            mended, named = those.renewed(tree.root / PAGE, page(asked, stands, before))
            assert len(named) == 1, stands
            line = text[: text.index("<!--=")].count("\n") + 1
            for words in (f"{PAGE}:{line}: ", f'"{stands}"', asked):
                assert words in str(named[0])
            assert f"-->{stands}<!--" not in mended


def test_the_check_names_page_line_figure_text_and_data(tree):
    tree.write("README.md", f"{block('table:matrix/ladder')}\nNo figure.\n")
    for ladder in (LADDER, VECTOR):
        for stage in NAMES[ladder]:
            tree.write(f"{ladder}/{stage}/README.md", stage_page(stage))
    tree.write(PAGE, "One.\n\n" + page("us 02", "201").replace("\nor so", f" {page('us 03', '250')}"))
    assert tree.run("readme").returncode == 0
    good = (tree.root / PAGE).read_text(encoding="utf-8")
    assert "-->200<!--/-->" in good and tree.run("readme", "--check").returncode == 0
    tree.write(PAGE, good.replace("-->200<", "-->199<").replace("-->250<", "-->20<"))
    said = tree.run("readme", "--check")
    refused(
        said, f'{PAGE}:7: the page says "199", and us 02 is 200', f'{PAGE}:11: the page says "20", and us 03 is 250'
    )
    assert "<!--= us 02 -->199<!--/-->" in (tree.root / PAGE).read_text(encoding="utf-8")
    assert tree.run("readme").returncode == 0 and (tree.root / PAGE).read_text(encoding="utf-8") == good


@pytest.mark.parametrize(
    "asked, said",
    (
        ("us 09", "there is no row 09; there is 01_basic, 02_reduction5"),
        ("uss 02", "main.csv has no column uss; it has stage, verdict, rows"),
        ("us 02 in nowhere", "there is no matrix/nowhere.csv; say in FILE, of by_columns, controls, main"),
        ("us 02 in by_columns cols=7", "by_columns.csv has no cols=7; it has 8192, 65536"),
        ("us 02 in by_columns columns=7", "by_columns.csv has no column columns; it has stage"),
        ("us", "4 rows fit, and one is wanted; say which: stage=01_basic|02_reduction5"),
        ("mode(us)", "there is no function mode; there is min, max"),
        ("us 02 +", "an operator, a value or a parenthesis is missing or too many"),
        ("us 02 us 03", "there is no row us; there is"),
        ("- us 02", "an operator or a value is missing"),
        ("less(us 02)", "missing 1 required positional argument"),
        ("us 02 / (us 02 - us 02)", "division by zero"),
        ("us 02 < us 03", "a comparison has two texts, a < b ? WORDS : WORDS"),
        ("us 02 ? faster : slower", "a comparison has two texts, a < b ? WORDS : WORDS"),
        ("us 02; 03", "after ; stand in FILE and KEY=VALUE, not 03"),
        ("count(each us torch > 1) ; in header/peers cols=8192 rows=1", "no input of the file has all of these"),
        ("us torch in header/peers rows=1", "microseconds of torch is not stored"),
        ("dram_busy 02 in one_row", "dram_busy of 02_reduction5 is not stored"),
        ("verdict 02", "column verdict holds no number: PASS"),
    ),
)
def test_what_cannot_be_asked_is_refused_with_the_choices(tree, asked, said):
    with of(tree) as those, pytest.raises(ladders.Unusable) as error:
        those.renewed(tree.root / PAGE, page(asked, "1"))
    assert str(error.value).startswith(f"{PAGE}:5: {asked}: ") and said in str(error.value)


@pytest.mark.parametrize(
    "text, said",
    (
        ("<!--= us 02 -->200<!--/--> it is.\n", "Markdown ends the paragraph where a line begins with"),
        ("It is\n- <!--= us 02 -->200<!--/-->.\n", "Markdown ends the paragraph where a line begins with"),
        ("It is <!--= us 02 -->200\n<!--/-->.\n", "Markdown ends the paragraph where a line begins with"),
        ("It is <!--= us 02\n- us 03 -->-50<!--/-->.\n", "Markdown ends the paragraph where a line begins with"),
        ("It is <!--= us 02 -->200.\n", "a figure stands between"),
        ("It is <!--= us 02 -->200\n\nand<!--/-->.\n", "a figure stands between"),
        ("| a |\n|---|\n| x <!--= us 02\n-->200<!--/--> |\n", "a row of a table is one line"),
        ("It is 200<!--/-->.\n", "a figure stands between"),
    ),
)
def test_a_marker_that_markdown_or_the_tool_would_not_understand_is_refused(tree, text, said):
    with of(tree) as those, pytest.raises(ladders.Unusable, match=f"{PAGE}:\\d.*{said}"):
        those.renewed(tree.root / PAGE, text)


@pytest.mark.parametrize(
    "text",
    (
        "It takes **<!--= us 02 -->7<!--/--> µs**, a list:\n\n- takes <!--= us 02 -->7<!--/-->\n",
        "| a | b |\n|---|---|\n| <!--= us 02 -->7<!--/--> | no <!--= us 02 -->7<!--/--> |\n",
        "`a\nb` is <!--= us 02 -->7<!--/-->, and `c` is\n*<!--= us 02 -->7<!--/-->*\n",
    ),
)
def test_a_figure_may_stand_in_any_sentence(tree, text):
    with of(tree) as those:
        assert those.renewed(tree.root / PAGE, text)[0] == text.replace(">7<", ">200<")


@pytest.mark.parametrize("text", ("```\n<!--= us 09 -->7<!--/-->\n```\n", "So: `<!--= us 09 -->7<!--/-->`.\n"))
def test_in_code_a_marker_is_an_example(tree, text):
    with of(tree) as those:
        assert those.renewed(tree.root / PAGE, text) == (text, [])


def test_what_another_gpu_has_not_measured_keeps_its_sentence(tree):
    tree.write("profiling_results/other/matrix/main.csv", ladder_csv(factor={"02_reduction5": 2}))
    with of(tree) as those:
        other = figures.Figures(results.stored("other"))
        alone = "us ours in header/peers rows=1"  # of a folder that one GPU alone has measured
        for asked, there in (("us 02", "400"), ("us 02; in by_columns", "200"), (alone, "2")):
            text, named = other.renewed(tree.root / PAGE, page(asked, "200"))
            assert (text == page(asked, there)) and len(named) == (there != "200")
        assert those.folder.name == "fake-9000"


def test_without_results_every_sentence_stays(tree):
    with of(tree):
        assert figures.Figures(None).renewed(tree.root / PAGE, page("us 02", "7")) == (page("us 02", "7"), [])


def test_the_site_shows_the_figure_and_the_words_around_it():
    shown = site.COMMENT.sub("", f"{HEADER}\n{page('us 02', '200')}")
    assert "It is 200\nor so." in shown and "<!--" not in shown and shown.startswith("# Title\n")
