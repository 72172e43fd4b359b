"""The analysis of NCCL's programs: what of NCCL orders two ranks, and what does not."""

import json
import os
import subprocess
from pathlib import Path

import pytest
from conftest import full_but

SIMT = Path(__file__).resolve().parents[1]
RACES = {  # what stands between one rank's store and the other's load -> whether that is a race
    "all-reduce": False,
    "broadcast from 1": False,  # rank 0 has got data of rank 1
    "broadcast from 0": True,
    "send to 0": False,
    "send to 1": True,
    "nothing": True,
    "barrier": False,
    "relaxed barrier": True,
    "no barrier": True,
}


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    program = tmp_path_factory.mktemp("nccl") / "ordered"
    subprocess.run(["./simtcc", "--analyze", "tests/nccl/ordered.cu", "-lnccl", "-o", program], cwd=SIMT, check=True)
    return program


@pytest.mark.parametrize("order", full_but(["forward", "reversed"], "reversed"))
@pytest.mark.parametrize("between", full_but(RACES, "barrier", "relaxed barrier"))
def test_what_orders_two_ranks(program, between, order):
    done = subprocess.run(
        ["./analyze", "--program", program, "--json", "-", "--", between],
        cwd=SIMT,
        env={**os.environ, "SIMT_DEVICES": "2", "SIMT_ORDER": order},
        capture_output=True,
        text=True,
    )
    hazards = json.loads(done.stdout[done.stdout.index("{") :])["hazards"]
    assert "cudaSuccess" in done.stderr
    kinds = {hazard["what"] for hazard in hazards}
    # Where the load came before the store, it read what nothing had written.
    assert kinds in ([{"race"}, {"race", "uninitialized"}] if RACES[between] else [set()]), done.stdout
    assert done.returncode == (1 if RACES[between] else 0)
