"""The analysis of programs on several devices: each mistake in tests/devices/exchange.cu is named, in both orders."""

import json
import os
import subprocess
from pathlib import Path

import pytest
from conftest import full_but

SIMT = Path(__file__).resolve().parents[1]
ENVIRONMENT = {**os.environ, "SIMT_DEVICES": "2"}
NAMED = {  # mistake -> what the hazards say, in any order
    "none": set(),
    "no-fence": {"race: a device reads what another writes"},
    "device-fence": {"race: device scope, another device"},
    "device-flag": {"race: device scope, another device", "race: an atomic of device scope, another device"},
    "no-acquire": {"race: a wait without acquire, another device"},
    "own-atomic": {"race: an atomic of device scope, another device"},
    "stale": {"stale: a flag that an earlier launch left set", "race: a device reads what another writes"},
    "launches": {"race: a device reads what another writes"},
}


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    program = tmp_path_factory.mktemp("devices") / "exchange"
    subprocess.run(["./simtcc", "--analyze", "tests/devices/exchange.cu", "-o", program], cwd=SIMT, check=True)
    return program


def analysis(program, mistake, order):
    done = subprocess.run(
        ["./analyze", "--program", program, "--json", "-", "--", mistake],
        cwd=SIMT,
        env={**ENVIRONMENT, "SIMT_ORDER": order},
        capture_output=True,
        text=True,
    )
    return done, json.loads(done.stdout[done.stdout.index("{") :])


@pytest.mark.parametrize("order", full_but(["forward", "reversed"], "forward"))
@pytest.mark.parametrize("mistake", full_but(NAMED, "stale"))
def test_mistakes_between_devices_are_named(program, mistake, order):
    done, result = analysis(program, mistake, order)
    assert {f"{h['what']}: {h['detail']}" for h in result["hazards"]} == NAMED[mistake]
    assert done.returncode == (1 if NAMED[mistake] else 0)
    for hazard in result["hazards"]:
        assert {hazard["first"]["device"], hazard["second"]["device"]} == {0, 1}


@pytest.mark.full
@pytest.mark.parametrize("mistake, written", [("none", 1024), ("own-pointer", 0)])
def test_bytes_over_the_link_are_counted_by_line_and_direction(program, mistake, written):
    _, result = analysis(program, mistake, "forward")
    lines = {access["source"]: access for access in result["kernels"][0]["accesses"] if access["kind"] == "store"}
    store = next(access for source, access in lines.items() if source.endswith("// the store"))
    assert store.get("written_to_peers", 0) == written  # 2 rounds of 2 devices with 64 threads, 4 bytes each
    assert store.get("read_from_peers", 0) == 0
