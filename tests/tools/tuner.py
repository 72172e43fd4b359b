"""A tuner's program as on a GPU, and made of some of its files: that of make tune, S=backward and S=q4_gemm."""

import re

from conftest import BUILD, ROOT, run
from test_header import SIMTCC

MEASURES = """\
#include <cstdio>
#include <cstdlib>
#include <exception>

#include "bench/tune/core.h"

// As on a GPU of this compute capability and datasheet; on small {problems}, and what a time says is not looked at.
int main(int, char** arguments) {{
  ladder::Device device = ladder::current_device();
  device.cpu = false;
  device.compute_capability = std::atoi(arguments[1]);
  device.peak_bytes_per_second = std::atof(arguments[2]);
{more}  try {{
    const std::string csv = tune::measure(device, 1);
    std::printf("\\n%s\\n", csv.c_str());
  }} catch (const std::exception& error) {{
    std::fprintf(stderr, "%s\\n", error.what());
    return 1;
  }}
}}
"""


def measures(problems, **device):
    """main.cpp for a tuner: it runs on the CPU device, of which it says so much that is not so."""
    more = "".join(f"  device.{name} = {value};\n" for name, value in device.items())
    return MEASURES.format(problems=problems, more=more)


def shorten_contests(folder):
    """For what is compiled in the folder: contest.h with little memory for a problem's copies, and no warm-up."""
    text = (ROOT / "bench/tune/contest.h").read_text(encoding="utf-8")
    text, pools = re.subn(r"(pool_\.emplace\(problem_, device)", r"\1, 6e5", text)
    text, warm_ups = re.subn(r"(kWarmUpMicroseconds) = \d+", r"\1 = 1", text)
    assert (pools, warm_ups) == (1, 1), "contest.h is written otherwise: adapt the patterns"
    (folder / "bench/tune").mkdir(parents=True)
    (folder / "bench/tune/contest.h").write_text(text, encoding="utf-8")


def linked(folder, *files, include=ROOT / "include"):
    """The program of these sources and objects."""
    files = [*files, BUILD / "libcommon.a", "-o", "program"]
    made = run(*SIMTCC, f"-I{include}", "-std=c++17", "-O1", *files, cwd=folder, timeout=600)
    assert made.returncode == 0, made.stderr
    return folder / "program"
