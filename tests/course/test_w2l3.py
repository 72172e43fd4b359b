"""test_w2l3, the program of the matrix ladder's document: its numbered list, its labels, and what it refuses."""

import re

import pytest
from conftest import BACKEND, ROOT, make, program, run
from ladder.core import ladders

LADDER = ladders.find("matrix")
FOLDER = f"{LADDER.path}/w2l3"
LABELS = ["BASIC", "FAST", "OPTIMIZED", "W2L3_REDUCTION", "W2L3_TILE", "W2L3_HYBRID"]
SMALL = ("--rows", "5", "--cols", "8192", "--no-small", "--iterations", "1")

pytestmark = pytest.mark.builds(FOLDER)


def listed(*options):
    """[(number, label, what is said of it)] and the last line but one."""
    done = run(program(FOLDER), *options)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "\nW2L3 Optimization Test\n========================================\n" in "\n" + done.stdout
    return re.findall(r"^(\d+)\. (\w+) kernel:\n   (.+)$", done.stdout, re.MULTILINE), done.stdout.splitlines()[-2]


def test_the_list_has_the_documents_six_labels_in_its_order():
    found, best = listed(*SMALL)
    assert [int(number) for number, _, _ in found] == list(range(1, len(found) + 1))
    assert [label for _, label, _ in found[:6]] == LABELS
    assert best.startswith("Best W2L3 kernel: ")
    barriers = [0, 1, 1, 9, 72, 4]
    for (_, label, said), count in zip(found, barriers):
        if BACKEND == "cpu":
            assert re.fullmatch(rf"PASS: error \S+, limit \S+; barriers per row: {count}", said), label
            assert "not known" in best
        else:
            assert re.fullmatch(r"Time: [\d.]+ ms \| Bandwidth: [\d.]+ GB/s( \([\d.]+% of peak\))?", said), label
            assert re.match(r"Best W2L3 kernel: W2L3_\w+ \([\d.]+ GB/s\)", best)


def test_it_runs_without_a_weight(tmp_path):
    assert run(program(FOLDER), *SMALL, "--stage", "FAST", "--csv", tmp_path / "run.csv").returncode == 0
    header, row = (line.split(",") for line in (tmp_path / "run.csv").read_text(encoding="utf-8").splitlines())
    assert dict(zip(header, row))["weight"] == "0" and row[0] == "05_warp_shuffle"


@pytest.mark.parametrize("label", [*LABELS, "w2l3_tile", "Fast"])
def test_a_label_names_a_stage_here_and_in_make(label):
    found, _ = listed(*SMALL, "--stage", label)
    assert [name for _, name, _ in found] == [label.upper()]
    assert ladders.find(label).name == LADDER.labels[label.upper()]


def test_a_label_that_is_none_is_refused():
    done = run(program(FOLDER), *SMALL, "--stage", "W2L3_TREE")
    assert done.returncode == 2 and "--stage 'W2L3_TREE': no such stage" in done.stderr


def test_the_variants_of_hybrid_take_rows_that_are_not_aligned():
    """8191 columns and the edge cases, off by one element: the launcher's test must see each."""
    variants = ["04_without_alignment_test", "04_with_8_vectors", "04_with_4_vectors"]
    found, _ = listed("--rows", "3", "--cols", "8191", "--stage", ",".join(variants), "--iterations", "1")
    assert [name for _, name, _ in found] == variants


def test_make_in_the_ladders_folder_leaves_a_link():
    done = make("test_w2l3", f"BACKEND={BACKEND}", cwd=ROOT / LADDER.path)
    assert done.returncode == 0, done.stdout + done.stderr
    link = ROOT / LADDER.path / "test_w2l3"
    assert link.is_symlink() and link.resolve() == program(FOLDER).resolve()


def test_the_constants_of_the_document_lead_to_their_stages():
    for stage, names in {
        "02": ["ELEMENTS_PER_THREAD", "BLOCK_SIZE_W2L3", "W2L3_REDUCTION"],
        "03": ["TILE_SIZE", "TILE_SIZE_PAD", "W2L3_TILE"],
        "04": ["BLOCK_SIZE_HYBRID", "ELEMENTS_PER_THREAD_VEC", "W2L3_HYBRID"],
    }.items():
        page = " ".join(LADDER.stage(stage).page.read_text(encoding="utf-8").split())
        source = LADDER.stage(stage).source.read_text(encoding="utf-8")
        said = re.search(r"\*\*The document's names\.\*\*(.*?)##", page)[1]
        for name in names:
            assert name in said, (stage, name)
        for ours in re.findall(r"`(k\w+)`", said):
            assert re.search(rf"constexpr \w+ {ours} =|, {ours} =|{ours}\b", source), ours
