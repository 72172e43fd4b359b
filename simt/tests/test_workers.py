"""The scheduler's workers under ThreadSanitizer: what they share has an order on every host, x86-64's strong one or Arm's."""

import os
import re
import subprocess
from pathlib import Path

import pytest

SIMT = Path(__file__).resolve().parents[1]
# Lanes change stacks, of which ThreadSanitizer is told nothing: it is to look at accesses, not at calls.
SANITIZER = ["-fsanitize=thread", "--param=tsan-instrument-func-entry-exit=0"]


def right(*command, **environment):
    done = subprocess.run(
        [*map(str, command)], cwd=SIMT, env={**os.environ, **environment}, capture_output=True, text=True, timeout=900
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stderr


@pytest.mark.full
def test_workers_share_nothing_without_an_order(tmp_path):
    flags = re.search(r"^FLAGS := (.*)$", (SIMT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)[1]
    flags = " ".join([flags.replace("-O2", "-O1"), *SANITIZER])
    library, objects, program = tmp_path / "build/libsimt.a", tmp_path / "workers.o", tmp_path / "workers"
    right("make", "-s", f"-j{os.cpu_count()}", f"BUILD={tmp_path}/build", f"FLAGS={flags}", library)
    to_gxx = ["-Xcompiler", ",".join([*SANITIZER, "-Wno-tsan"])]
    right("./simtcc", "-O1", *to_gxx, "-c", "tests/workers/workers.cu", "-o", objects)
    gxx = os.environ.get("CXX", "g++")
    right(gxx, "-fsanitize=thread", objects, library, "-lboost_context", "-lbacktrace", "-lpthread", "-o", program)
    options = {"SIMT_WORKERS": "4", "TSAN_OPTIONS": "exitcode=0 report_signal_unsafe=0"}
    said = right(program, **options)
    assert "ThreadSanitizer" not in said and "illegal memory access" in said, said
    assert re.search(r"ThreadSanitizer: data race[^=]*\brace\(", right(program, "race", **options))
