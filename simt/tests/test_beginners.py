"""Known bugs of beginners: what the program says, and what the analysis says. Each case is a `case` of its .cu file."""

import os
import re
import subprocess
from pathlib import Path

import pytest
from conftest import FULL

SIMT = Path(__file__).resolve().parent.parent
HERE = SIMT / "tests/beginners"

# file, case, what the program says on stderr, what simt/analyze reports; "" for nothing, None where it is not asked.
ASKED_NOT = "; the program did not ask for this error: "
BUGS = [
    (
        "unread", "a block too large",
        "unread.cu:{line}: the kernel k was not launched: its blocks have 4096 threads, and the most is 1024 in all and "
        "64 in z (cudaErrorInvalidValue)" + ASKED_NOT + "call cudaGetLastError() after each launch",
        "its blocks have 4096 threads",
    ),
    ("unread", "too much shared memory", "asks for 65536 bytes of dynamic shared memory, and the most is 49152 unless "
     "cudaFuncSetAttribute", "asks for 65536 bytes"),
    ("unread", "host memory as an argument", "argument 1 points to host memory", "argument 1 points to host memory"),
    ("unread", "double free", "unread.cu:{line}: cudaFree failed: its pointer is inside a freed 400-byte allocation "
     "(cudaMalloc), and only a live allocation can be freed", "inside a freed 400-byte"),
    ("unread", "free of host memory", "cudaFree failed: its pointer is host memory", "its pointer is host memory"),
    ("unread", "a grid of 0 blocks", "its grid has 0 blocks, and it needs at least 1", "its grid has 0 blocks"),
    ("unread", "copy to a constant's name", "copy a __constant__ or __device__ variable with cudaMemcpyToSymbol",
     "with cudaMemcpyToSymbol"),
    ("unread", "swapped copy", "its destination is host memory, and the direction says device memory; the destination "
     "comes first, then the source", "the destination comes first"),
    ("unread", "copy past the end", "its destination has 400 bytes left in its 400-byte allocation (cudaMalloc), and "
     "4000 are asked for", "400 bytes left"),
    ("unread", "memory that was not there", "null, or near it: the allocation at unread.cu:{line} had failed",
     "the allocation at unread.cu:{line} had failed"),
    ("unread", "lost by a reset", "the kernel k was not launched", None),
    ("unread", "lost by another error", "the kernel k was not launched", None),
    # What asks for its errors, in whatever way, gets no sentence.
    ("unread", "asked for after the launch", "", ""),
    ("unread", "codes that are tested", "", ""),
    ("unread", "asked for at the end", "", ""),
    ("unread", "no error, or cast to void", "", ""),
    ("advice", "a sum by one warp", None, "read one word, change it and write it back, so what one of them adds gets "
     "lost. Use an atomic"),
    ("advice", "a sum by one block", None, "read one word, change it and write it back"),
    ("advice", "a stencil in place", None, "Put __syncwarp() between the two lines"),
    ("advice", "two barriers of one line", "wait at the barrier at advice.cu:8 (number 2 "
     "of the line)", "the block diverged"),
    ("advice", "an int index that overflows", "8589916060 bytes before the start of a 3221225472-byte allocation "
     "(cudaMalloc): an int index may have overflowed", "an int index may have overflowed"),
    ("advice", "a mask of lanes that do not come", "the mask of __shfl_down_sync (advice.cu:13) names 32 lanes of the "
     "warp, and 16 of them are there", "names 32 lanes of the warp, and 16 of them are there"),
    ("advice", "a vector at a wrong address", "this access needs a multiple of 16 bytes", "needs a multiple of 16"),
    ("advice", "past a local array", None, "the index 8 is outside the array of type 'int [8]'"),
    ("advice", "past a shared array", None, "the index 32 is outside the array of type 'int [32]'"),
    ("advice", "arrays to their ends", "", ""),
    ("late", "managed memory without a wait", "", "late.cu:{line}: host code uses memory of cudaMallocManaged that the "
     "kernel fill (late.cu:{line}) may still write, since nothing has waited for it; call cudaDeviceSynchronize() first"),
    ("late", "mapped memory without a wait", "", "host code uses memory of cudaHostAlloc that the kernel fill"),
    ("late", "a flag of a running kernel", "", "so host and kernel cannot exchange values while it runs"),
    ("late", "printing without a wait", "", "the kernel hello (late.cu:{line}) prints, and the program ends without "
     "waiting for it"),
    ("late", "waits of the device", "", ""),
    ("late", "a wait for an event", "", ""),
    ("late", "memory that is only read", "", ""),
]  # fmt: skip


def lines_of(file):
    """{case: (its number, its line)}, by the comments behind the cases."""
    lines = (HERE / f"{file}.cu").read_text().splitlines()
    found = {}
    for number, line in enumerate(lines, 1):
        case = re.search(r"case (\d+):.*// (.*)", line)
        if case:
            found[case[2]] = (case[1], number)
    return found


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    """programs(file, *options) is the file's program, compiled once."""
    folder, made = tmp_path_factory.mktemp("beginners"), {}

    def program(file, *options):
        if (file, options) not in made:
            made[file, options] = folder / f"{file}{len(made)}"
            compiled = subprocess.run(
                [SIMT / "simtcc", *options, f"{file}.cu", "-o", made[file, options]],
                cwd=HERE, capture_output=True, text=True,
            )  # fmt: skip
            assert compiled.returncode == 0, compiled.stderr
        return made[file, options]

    return program


@pytest.mark.parametrize(("file", "case", "said", "found"), BUGS, ids=[bug[1] for bug in BUGS])
def test_the_bug_is_answered(programs, file, case, said, found):
    number, line = lines_of(file)[case]
    if said is not None:
        run = subprocess.run([programs(file), number], capture_output=True, text=True, timeout=60)
        if said:
            assert said.format(line=line) in run.stderr
            assert run.stderr.count(said.format(line=line)) == 1
        else:
            assert (run.stderr, run.returncode) == ("", 0)
    if FULL and found is not None:
        words = [SIMT / "analyze", "--program", programs(file, "--analyze"), "--", number]
        run = subprocess.run(words, capture_output=True, text=True, timeout=60, env={**os.environ, "COLUMNS": "100"})
        text = " ".join(run.stdout.split())
        assert ("hazards: none" in text) == (found == ""), text
        assert run.returncode == bool(found), run.stdout + run.stderr
        assert found.format(line=line) in text
