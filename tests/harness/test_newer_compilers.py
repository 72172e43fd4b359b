"""What the analysis counts hangs on the loads that g++'s optimizer keeps: the known answers hold for newer g++, too.

scripts/fresh_machine.sh makes one small Debian 14 with that compiler below build/, where it stays, and clones HEAD into
it. The device's runtime is compiled without optimization there, because only the programs under analysis matter.
"""

import re
import shutil

import pytest
from conftest import ROOT, cores, run

COMPILERS = ["g++-15"]  # 12 to 14 are those of the systems that the course runs on
MACHINE = ROOT / "build/machine_with_newer_compilers"
PACKAGES = ["python3-pytest", "libboost-context-dev", *COMPILERS]


def command(compiler):
    """The shell's words that build the device with a compiler and compare what its analysis counts."""
    build = f"/srv/student/{compiler}"  # of the ordinary user that the machine has
    # What the Makefile compiles the runtime with, but for the optimization.
    flags = re.search(r"^FLAGS := (.*)$", (ROOT / "simt/Makefile").read_text(), re.MULTILINE)[1].replace("-O2", "-O0")
    return (
        f"export CXX={compiler} SIMT_BUILD_DIR={build} && cd simt && rm -rf {build} && "
        f"make -s -j{cores()} BUILD={build} FLAGS='{flags}' {build}/libsimt_analysis.a && "
        "python3 -m pytest -q -p no:cacheprovider tests/analysis/test_known_answers.py"
    )


@pytest.mark.full
def test_the_known_answers_hold_for_newer_compilers():
    if MACHINE.exists() and not (MACHINE / ".made").exists():
        shutil.rmtree(MACHINE)  # its making was interrupted
    done = run(
        *("scripts/fresh_machine.sh", "forky", *map(command, COMPILERS)),
        FOLDER=str(MACHINE),
        PACKAGES=" ".join(PACKAGES),
        timeout=1500,
    )
    said = done.stdout + done.stderr
    if done.returncode == 2:
        pytest.skip(f"no machine with newer compilers can be made: {said.strip().splitlines()[-1]}")
    assert done.returncode == 0 and said.count(" passed after ") == len(COMPILERS), said
