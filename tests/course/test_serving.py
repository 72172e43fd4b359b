"""The serving ladder: every type of elements, its options, and what its page says of the counters.

The generic tests check its stages, mutants, counts and pages as those of every ladder.
"""

import re

import pytest
from conftest import program, run
from ladder.core import ladders
from ladder.measure import cpu_device
from ladder.pages import grid_tables

LADDER = ladders.find("serving")
builds = pytest.mark.builds(LADDER.path)
SIXTEEN_BITS_ONLY = {"04_fused_add", "05_fused_warp_reduction", "06_unrolled"}


def verdicts(*options):
    result = run(program(LADDER.path), "--no-timing", "--no-small", *options)
    assert result.returncode == 0, result.stdout + result.stderr
    return dict(re.findall(r"^(\w+) +(PASS|skipped)\b", result.stdout, re.MULTILINE))


@pytest.mark.full
@builds
@pytest.mark.parametrize("dtype, tokens, hidden", [("half", 7, 8), ("bfloat16", 257, 768), ("float", 7, 8192)])
def test_every_type_is_right_or_refused_with_a_reason(dtype, tokens, hidden):
    found = verdicts("--num-tokens", tokens, "--hidden-size", hidden, "--dtype", dtype)
    skipped = SIXTEEN_BITS_ONLY if dtype == "float" else set()
    assert found == {stage.name: "skipped" if stage.name in skipped else "PASS" for stage in LADDER.stages}


@pytest.mark.full
@builds
def test_an_unknown_type_is_a_bad_command_line():
    result = run(program(LADDER.path), "--dtype", "fp8")
    assert result.returncode == 2 and "'fp8': give one of half, bfloat16, float" in result.stderr


def test_each_claim_is_that_of_the_document():
    """Factor by factor, as the document's text has them."""
    source = (LADDER.folder / "controls/forms.cu").read_text(encoding="utf-8")
    claims = re.findall(r'\{"([^"]+)", ([\d.]+), ([\d.]+), \d, \d\}', source)
    assert {what: (float(least), float(most)) for what, least, most in claims} == {
        "warp-level reductions": (1.5, 2),
        "vectorized normalization pass": (2, 3),
        "better memory coalescing": (1.1, 1.3),
        "loop unrolling": (1.2, 1.2),
        "combined effect": (3, 5),
        "fused: warp-level reduction": (1.3, 1.8),
        "fused: loop unrolling": (1.2, 1.2),
        "fused: combined effect": (3, 5),
    }


GRID = """\
function,dtype,hidden_size,before_microseconds_256,before_microseconds_512,after_microseconds_256,after_microseconds_512,\
header_microseconds_256,header_microseconds_512
rms_norm,half,768,2.00,4.00,1.00,4.00,1.01,4.40
rms_norm,half,1024,2.00,4.00,2.50,4.04,2.00,4.00
rms_norm,float,768,3.00,5.00,2.00,4.00,2.00,3.00
"""


def test_the_grid_is_summed_up_by_function_and_type(tmp_path):
    (tmp_path / "grid.csv").write_text(GRID, encoding="utf-8")
    text = grid_tables.markdown(tmp_path / "grid.csv", tmp_path / "README.md")
    assert "| rms_norm | half | 1 | 1 | 2 | 25.00 % at 256 × 1024 | 2 | 0 | 2 | 10.00 % at 512 × 768 |" in text
    assert "| rms_norm | float | 2 | 0 | 0 |  | 1 | 1 | 0 |  |" in text
    assert "| all |  | 3 | 1 | 2 | 25.00 % at 256 × 1024 | 3 | 1 | 2 | 10.00 % at 512 × 768 |" in text


def counted(name):
    return cpu_device.counted(cpu_device.path_of(LADDER.stage(name)), LADDER.analyze)


def test_what_the_page_says_of_the_claims_before_any_clock_is_asked():
    before, after = counted("01_cub_block_reduce"), counted("02_warp_reduction")
    for count in ("loads", "stores", "asked", "barriers"):
        assert before[count] == after[count]
    assert before["shuffles"] == 5 < after["shuffles"]
    for stage in LADDER.stages:  # coalesced before as after: 32 lanes touch as many sectors as their bytes fill
        for kind in ("loads", "stores"):
            assert all(bytes_per_lane * 32 == 32 * sectors for bytes_per_lane, sectors in counted(stage.name)[kind])
    assert counted("05_fused_warp_reduction") == counted("06_unrolled")
