"""make chain and the tables of its results, on invented numbers and with stand-ins for PyTorch and its GPU."""

import argparse
import ctypes
import random
import subprocess
import types

import pytest
from conftest import TORCH
from fakes import Machine
from ladder import __main__ as command_line
from ladder.core import ladders

from bench.norm import chain, chain_tables, chain_timing, competitors
from bench.norm.chain_timing import ATTENTION, FLOAT8, RESIDUAL


def row(competitor, added=None, rows=16, form=RESIDUAL, **values):
    known = {"form": form, "rows": rows, "hidden": 4096, "inner": 12288, "competitor": competitor, "layers": 6}
    known.update(verdict="ok", gpu="NVIDIA Fake 9000", cuda_runtime="13.0", date="2026-01-31", sm_clock_mhz="10")
    if added is not None:
        known.update(added_microseconds=added, error_microseconds=0.05, low_microseconds=added - 1, rounds=100)
        known.update(high_microseconds=added + 1, products_microseconds=48.25, chain_microseconds=48.25 + added)
        known.update(places=8)
    return [str({**dict.fromkeys(chain_tables.COLUMNS, ""), **known, **values}[name]) for name in chain_tables.COLUMNS]


FUNCTIONS = (
    "forward fused_add quantized workspace_bytes copy error backward backward_workspace_bytes".split()
)  # of bench/abi/rms_norm
ROWS = [
    row("ours", 2.5),
    row("ours_pdl", 1.75),
    row("liger", 3.0),
    row("quack", verdict="missing", reason="not installed: pip install quack-kernels"),
    row("nothing", 0.01),
    row("ours", 1.5, form=ATTENTION),
    row("nothing", -0.01, form=ATTENTION, rounds=300),
]


# The method.


def test_the_weights_of_a_chain_are_cold_and_a_replay_is_short():
    def count(form, rows, hidden, inner):
        shape = chain_timing.Shape(form, rows, hidden, inner)
        layers = shape.layers(60e6)
        return layers, layers * shape.weight_elements * 2

    assert count(RESIDUAL, 16, 4096, 12288) == (6, 6 * 2 * 2 * 4096 * 12288)
    layers, size = count(ATTENTION, 16, 2048, 4096)
    assert layers == 20 and size >= 8 * 60e6
    assert count(RESIDUAL, 8192, 8192, 28672)[0] == 2
    assert count(RESIDUAL, 1, 64, 128)[0] == 24  # the most


class FakeClock:
    """Clocks that slow down steadily: the n-th replay takes its graph's time and a tenth of a microsecond more."""

    def __init__(self):
        self.times, self.count = [], 0

    def time(self, graph):
        self.count += 1
        self.times.append(graph + 0.1 * self.count)

    def read(self):
        times, self.times = self.times, []
        return times


def test_a_steady_drift_cancels():
    times = chain_timing.one_round(FakeClock(), {"a": 112.0, "b": 130.0}, 100.0, ["b", "a"])
    assert times["b"][0] - times["b"][1] == pytest.approx(30)
    assert times["a"][0] - times["a"][1] == pytest.approx(12)


def test_all_rounds_count_but_those_that_warm_up():
    samples = chain_timing.measure(FakeClock(), {"a": 112.0, "nothing": 100.0}, 100.0, 6, 0.0, (4, 9))
    found = {name: chain_timing.summary([one]) for name, one in samples.items()}
    assert len(samples["a"].added) == 4
    assert found["a"]["added"] == pytest.approx(2) and found["nothing"]["added"] == pytest.approx(0)
    assert found["a"]["error"] == pytest.approx(0) and found["a"]["chain"] - found["a"]["products"] == pytest.approx(2)
    assert len(chain_timing.measure(FakeClock(), {"a": 1.0}, 1.0, 1, 60.0, (4, 9))["a"].added) == 9


def test_the_error_is_of_the_median_of_the_places():
    places = []
    for place in range(101):
        places.append(chain_timing.Samples(2))
        for extra in (-10, 0, 10):
            places[-1].add(100.0 + 2 * (place + extra), 100.0)
    found = chain_timing.summary(places)
    assert found["added"] == 50 and (found["low"], found["high"]) == (10, 90) and found["products"] == 50
    assert found["error"] == pytest.approx(1.57 * 50 / 101**0.5)


@pytest.mark.skipif(not TORCH, reason="TORCH=1 installs PyTorch")
@pytest.mark.parametrize("form, kind", [(RESIDUAL, "Layers"), (FLOAT8, "Float8Layers")])
def test_the_activations_move_and_a_pass_gives_the_same(form, kind):
    torch = pytest.importorskip("torch")
    layers = getattr(chain_timing, kind)(torch, chain_timing.Shape(form, 2, 64, 128), 2, "cpu")

    def one_pass():
        layers.restart()
        return [tensor.clone() for tensor in layers.run(layers.reference)]

    before, met, numbers = one_pass(), set(), random.Random(1)
    for _ in range(3):
        layers.place(numbers)
        tensors = [layers.x, layers.y, layers.r, layers.h, *layers.sums]
        met.add(tuple(one.storage_offset() for one in tensors))
        assert all(one.is_contiguous() and one.data_ptr() % 64 == 0 for one in tensors)
        assert layers.gap % chain_timing.ALIGNMENT == 0 and layers.h.shape == (2, 128)
        assert all(torch.equal(*pair) for pair in zip(one_pass(), before))
    assert len(met) == 3


@pytest.mark.skipif(not TORCH, reason="TORCH=1 installs PyTorch")
def test_a_pass_in_float8_tells_right_norms_from_wrong_ones():
    torch = pytest.importorskip("torch")
    layers = chain_timing.Float8Layers(torch, chain_timing.Shape(FLOAT8, 32, 64, 128), 3, "cpu")

    def error(norm):
        layers.restart()
        return chain_timing.worst_row_error(zip(layers.run(norm), expected))

    def twice_as_large(x, r, weight):
        y, total = layers.reference(x, r, weight)
        return layers.activation(2 * layers.SCALE * y.float()), total

    expected = [tensor.clone() for tensor in layers.run(layers.reference)]
    norm = chain.norm_of(competitors.Torch(torch), layers, new_memory=True)
    assert error(norm) <= layers.tolerance < error(twice_as_large) and layers.y.dtype == torch.float8_e4m3fn
    asked = types.SimpleNamespace(torch=torch, shape=layers.shape, layers=layers)
    assert chain.Contest.check_norm(asked, norm) == ""
    assert "wrong elements" in chain.Contest.check_norm(asked, twice_as_large)


class Matrix:
    """Stands for a tensor: its name alone."""

    def __init__(self, name):
        self.name = name

    def t(self):
        return self

    def __getitem__(self, part):
        return self


def recorded(norm, count=2):
    """What a pass asks for, in order: (product's input, weight, output), or what the norm notes."""
    asked = []
    layers = object.__new__(chain_timing.Layers)
    layers.torch = types.SimpleNamespace(mm=lambda a, b, out: asked.append((a.name, b.name, out.name)))
    layers.shape = chain_timing.Shape(RESIDUAL, 4, 64, 128)
    for name in ("first", "x", "y", "r", "h"):
        setattr(layers, name, Matrix(name))
    layers.sums = [Matrix("s0"), Matrix("s1")]
    layers.norms, layers.ups, layers.downs = ([Matrix(f"{n}{i}") for i in range(count)] for n in ("w", "up", "down"))
    result = layers.run(norm(layers, asked))
    return asked, [one.name for one in result]


class Noting(competitors.Ours):
    def __init__(self, asked):
        self.asked = asked

    def forward(self, x, weight, y):
        self.asked.append((x.name, weight.name, y.name))
        return y

    def residual(self, x, r, weight, y, s):
        self.asked.append((x.name, r.name, weight.name, y.name, s.name))
        return y, s


def test_each_layer_has_weights_of_its_own_and_each_norm_follows_a_product():
    asked, result = recorded(lambda layers, asked: lambda x, r, weight: (x, r))
    expected = [("first", "down1", "x"), ("x", "up0", "h"), ("h", "down0", "x"), ("x", "up1", "h"), ("h", "down1", "x")]
    assert asked == expected and result == ["x", "r"]


@pytest.mark.parametrize(
    "new_memory, norms, sum_at_end",
    [
        (False, [("x", "r", "w0", "x", "r"), ("x", "r", "w1", "x", "r")], "r"),
        (True, [("x", "r", "w0", "y", "s0"), ("x", "s0", "w1", "y", "s1")], "s1"),
    ],
)
def test_the_sum_goes_over_the_residual_or_to_new_memory(new_memory, norms, sum_at_end):
    asked, result = recorded(lambda layers, asked: chain.norm_of(Noting(asked), layers, new_memory))
    assert [one for one in asked if len(one) == 5] == norms and result == ["x", sum_at_end]
    assert asked[2][0] == ("y" if new_memory else "x")


# The command.


def chosen(*words):
    parser = argparse.ArgumentParser()
    chain.arguments(parser)
    return chain.complete(parser.parse_args(words))


def test_the_default_run_covers_both_forms_and_only_it_or_parts_of_it_are_stored():
    default = chosen()
    assert default.default_run and len(default.work) == 2 * len(chain.MODELS) * len(chain.ROWS)
    assert {(one.hidden, one.inner) for one in default.work if one.form == ATTENTION} >= {(4096, 6144), (5120, 7168)}
    assert chosen("--hidden", "4096", "--add").default_run
    for words in ("--hidden 4096", "--rows 16", "--variant a=b.so --add", "--peers liger --add", "--split"):
        assert not chosen(*words.split()).default_run, words
    assert [one.rows for one in chosen("--residual", "--hidden", "4096", "--rows", "16,128").work] == [16, 128]
    assert chosen("--residual", "--hidden", "64", "--inner", "128", "--rows", "1").work[0].inner == 128
    float8 = chosen("--float8")
    assert float8.default_run and [one.form for one in float8.work] == 6 * [RESIDUAL] + 6 * [FLOAT8]
    assert {(one.hidden, one.inner, one.down_in) for one in float8.work} == {(4096, 12288, 12288)}


@pytest.mark.parametrize(
    "words, complaint",
    [
        (["--rows", "16,x"], "x is not a whole number above 0"),
        (["--variant", "mine"], "mine is no variant; say NAME=PATH"),
        (["--peers", "nobody"], "unknown peer nobody"),
        (["--hidden", "333"], "no model of this size is known here, so say --inner, too"),
    ],
)
def test_a_bad_command_line_ends_with_2(words, complaint, capsys):
    assert command_line.main(["chain", *words]) == 2 and complaint in capsys.readouterr().err


def made(monkeypatch, *words):
    def ours(torch, lib, dependent_launch=False):
        return lib, dependent_launch

    def library(path):
        if "none" in str(path):
            raise OSError(f"{path.name}: cannot open shared object file")
        return path.name

    def not_here(torch):
        raise competitors.Missing("not here")

    monkeypatch.setattr(competitors, "Ours", ours)
    monkeypatch.setattr(competitors, "library", library)
    monkeypatch.setattr(competitors, "loaded_again", lambda lib: f"{lib} again")
    monkeypatch.setattr(competitors, "PEERS", {"liger": not_here, "torch_compile": lambda torch: "compiled"})
    monkeypatch.setattr(chain, "IN_PLACE", {"torch_compile_in_place": lambda torch: "in place"})
    return chain.load(None, "the header", chosen(*words))


def test_other_builds_of_the_header_are_timed_beside_it(monkeypatch, capsys):
    loaded = made(monkeypatch, "--variant", "a=x/a.so", "--variant", "b=none.so", "--peers", "liger,torch_compile")
    assert loaded["ours"] == ("the header", False) and loaded["ours_pdl"] == ("the header", True)
    assert loaded["again"] == ("the header again", False)
    assert loaded["a"] == ("a.so", False) and loaded["a_pdl"] == ("a.so", True)
    assert "cannot open" in str(loaded["b"]) and str(loaded["liger"]) == "not here"
    assert loaded["torch_compile"] == "compiled" and loaded["torch_compile_in_place"] == "in place"
    assert "b_pdl is missing: OSError: none.so" in capsys.readouterr().out
    few = made(monkeypatch, "--no-plain", "--new-memory", "--peers", "torch_compile")
    assert list(few) == ["ours_pdl", "torch_compile"]


def chain_norm(added):
    """A norm that takes so many microseconds; within a capture, a string is what it raises."""

    def norm(x, r, weight):
        return x, r

    norm.added = added
    return norm


class FakeLayers:
    count, norms, placed = 2, [None], 0

    def __init__(self, torch, shape, count):
        pass

    def place(self, numbers):
        self.placed += 1

    def run(self, norm):
        return []

    def reference(self, x, r, weight):
        return x, r

    without_norm = reference

    def restart(self):
        pass


def test_what_refuses_a_capture_or_becomes_wrong_is_left_out_and_the_others_are_timed(monkeypatch):
    added = {"ours": 6.0, "liger": "no capture here", "quack": 9.0}

    def graph(torch, layers, norm):
        microseconds = getattr(norm, "added", 0.0)
        if isinstance(microseconds, str) and layers.placed > 2:
            raise RuntimeError(microseconds)
        return 100.0 + (7.0 if isinstance(microseconds, str) else microseconds)

    def timed_is_wrong(self, name, graph):
        if name == "quack" and self.layers.placed == 4:
            self.note(name, "wrong", "after timing, it is wrong")

    monkeypatch.setattr(chain_timing, "Layers", FakeLayers)
    monkeypatch.setattr(chain_timing, "Graph", graph)
    monkeypatch.setattr(chain_timing, "Clock", lambda torch, stream: FakeClock())
    monkeypatch.setattr(chain_timing, "node_count", lambda torch, layers, norm: None)
    monkeypatch.setattr(chain, "norm_of", lambda competitor, layers, new_memory: chain_norm(competitor.added))
    monkeypatch.setattr(chain, "overwrites", lambda competitor, new_memory: (True, True))
    monkeypatch.setattr(chain.Contest, "check_norm", lambda self, norm: "")
    monkeypatch.setattr(chain.Contest, "check_pass", lambda self, run: (0.0, ""))
    monkeypatch.setattr(chain.Contest, "check_timed", timed_is_wrong)
    gpu = types.SimpleNamespace(torch=types.SimpleNamespace(manual_seed=lambda seed: None), stream=None, facts={})
    loaded = {name: types.SimpleNamespace(added=microseconds, residual=1) for name, microseconds in added.items()}
    given = types.SimpleNamespace(seed=1, layers=2, seconds=0.0, new_memory=False, split=False)
    shape = chain_timing.Shape(RESIDUAL, 16, 4096, 12288)
    table = chain.Contest(gpu, loaded, shape, given).measure()
    rows = {row["competitor"]: row for row in (dict(zip(chain_tables.COLUMNS, row)) for row in table)}
    verdicts = {name: row["verdict"] for name, row in rows.items()}
    assert verdicts == {"ours": "ok", "liger": "refused", "quack": "wrong", "nothing": "ok"}
    assert float(rows["ours"]["added_microseconds"]) == pytest.approx(3)
    assert rows["ours"]["places"] == "8" and rows["ours"]["rounds"] == "16" and rows["ours"]["memory"] == "in place"
    assert rows["liger"]["reason"] == "RuntimeError: no capture here"
    assert not any(rows[name][column] for name in ("liger", "quack") for column in ("added_microseconds", "places"))


# The tables.


def stored(path, rows=ROWS):
    path.parent.mkdir(parents=True, exist_ok=True)
    chain_tables.store(path, rows)
    return path


def test_a_table_shows_what_a_layer_gains_in_float8(tmp_path):
    rows = [row("ours_pdl", 1.75), row("nothing", 0.0)]
    rows += [
        row("ours", 3.0, form=FLOAT8, chain_microseconds=26.0),
        row("ours_pdl", 2.0, form=FLOAT8, chain_microseconds=25.0),
    ]
    rows += [row("apart", 7.5, form=FLOAT8, chain_microseconds=30.0), row("nothing", 0.0, form=FLOAT8)]
    rows += [row("torch_compile", form=FLOAT8, verdict="refused", reason="too new")]
    text = chain_tables.gains(stored(tmp_path / "chain_float8.csv", rows), tmp_path / "page.md")
    assert "| 4096 → 12288 → 4096 | 16 | 50.00 | 30.00 |  | 26.00 | 25.00 | 2.00 | 1.20 |  |" in text
    assert "torch.compile at 1 shape: refuses (too new)." in text


def test_the_tables_show_the_error_and_who_is_missing(tmp_path):
    path = stored(tmp_path / "chain.csv")
    text = chain_tables.markdown(path, tmp_path / "page.md")
    assert "Residual add + norm, products 4096 → 12288 → 4096:" in text and "\nNorm, products" in text
    assert "| rows | products alone | this header | with PDL | Liger | QuACK | nothing |" in text
    assert "| 16 | 48.2 | 2.50 ±0.05 | 1.75 ±0.05 | 3.00 ±0.05 | missing | 0.01 ±0.05 |" in text
    assert "median of 8 places" in text and "of 100 to 300 rounds" in text
    assert "NVIDIA Fake 9000" in text and "(chain.csv)" in text
    assert "QuACK at 1 shape: missing (not installed: pip install quack-kernels)." in text
    assert "1.75 ±0.05" in chain_tables.printed(path)
    assert chain_tables.markdown(path, tmp_path / "page.md", ["4096"]) == text
    with pytest.raises(ladders.Unusable, match="no hidden size 4095"):
        chain_tables.markdown(path, tmp_path / "page.md", ["4095"])


def test_only_the_header_s_faults_are_the_command_s(tmp_path):
    wrong = {"verdict": "wrong", "reason": "7 wrong"}
    for name, is_wrong in (("ours_pdl", True), ("mine", True), ("liger", False), ("torch_compile_in_place", False)):
        path = stored(tmp_path / "chain.csv", [row(name, **wrong), row("nothing", 0.0)])
        assert chain_tables.is_wrong(path, {"liger", "torch_compile"}) == is_wrong


def test_another_run_s_shapes_are_kept(tmp_path):
    path = stored(tmp_path / "chain.csv")
    work = [chain_timing.Shape(RESIDUAL, 16, 4096, 12288)]
    assert chain_tables.kept(path, work) == ROWS[5:]
    assert chain_tables.kept(tmp_path / "none.csv", work) == []


def test_a_file_without_rows_is_named(tmp_path):
    with pytest.raises(ladders.Unusable, match="holds no rows"):
        chain_tables.read(stored(tmp_path / "chain.csv", []))


def test_the_page_and_the_plot_come_from_the_stored_file(tmp_path):
    tree = Machine(tmp_path)
    stored(tree.root / "profiling_results/fake-9000/header/chain.csv")
    drawn = [tree.run("plot", "--out", tree.root / folder) for folder in ("plots", "again")]
    assert all(one.returncode == 0 for one in drawn), drawn[0].stderr
    first, second = ((tree.root / folder / "fake-9000_header_chain.svg").read_text() for folder in ("plots", "again"))
    assert first == second and "Liger" in first and "NVIDIA Fake 9000" in first


def test_where_the_header_adds_more_than_the_fastest_peer(tmp_path):
    at_64 = [row("ours", 2.5, rows=64), row("liger", 2.3, rows=64), row("nothing", 0.01, rows=64)]
    rows = [*ROWS[:3], row("nothing", 0.01), *at_64]
    text = chain_tables.markdown(stored(tmp_path / "chain.csv", rows), tmp_path / "page.md")
    assert "Plain launch adds less than the fastest peer at 1 of 2 shapes, more at 1." in text
    assert "Programmatic dependent launch adds less than the fastest peer at 1 of 1 shapes, more at 0." in text
    assert "| Residual add + norm, products 4096 → 12288 → 4096 | 64 | 0.20 |  | Liger | 2.30 |" in text
    # 0.2 microseconds more: twice the error of the difference is 0.14, and either control's error may hide the rest.
    for control in (row("nothing", -0.07, rows=64), row("again", 2.43, rows=64)):
        text = chain_tables.markdown(stored(tmp_path / "chain.csv", [*rows, control]), tmp_path / "page.md")
        assert "fastest peer at 1 of 2 shapes, more at 0." in text and "| 0.20 |" not in text
    assert text.index("| Liger |") < text.index("| this header, again | nothing |")


def test_a_copy_of_the_library_is_loaded_at_another_address(tmp_path):
    source = tmp_path / "lib.c"
    source.write_text("".join(f"int rms_norm_{name}(void) {{ return 7; }}\n" for name in FUNCTIONS))
    subprocess.run(["cc", "-shared", "-fPIC", "-o", tmp_path / "lib.so", source], check=True)
    first = competitors.library(tmp_path / "lib.so")
    again = competitors.loaded_again(first)
    addresses = [ctypes.cast(lib.rms_norm_copy, ctypes.c_void_p).value for lib in (first, again)]
    assert addresses[0] != addresses[1] and again.rms_norm_workspace_bytes() == 7
