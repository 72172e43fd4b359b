"""A machine made of stand-ins for a GPU, make, the ladders' programs and ncu, to test the tools around them.

Every number is invented to test a tool. None is a measurement, and none may ever reach profiling_results/.
"""

import contextlib
import csv
import io
import json
import os
import pathlib
import shutil
import sys
import textwrap
import types
from unittest import mock

from conftest import ENVIRONMENT, LADDER, ROOT, run
from fake_ladder import STAGES
from ladder import __main__ as command_line
from ladder.core import ladders

VECTOR, LECTURE = "assignment1/rms_norm/vector", "lectures/W2L1_reduction"
# Two ladders with stages of equal names, one of them of another operator; and a lecture whose stages are files.
LADDERS = {
    LADDER: {
        "title": "RMSNorm of a matrix",
        "operator": "rms_norm",
        "program": "rms_norm_matrix_test",
        "baseline": "01_basic",
        "main": {"rows": 8192, "cols": 8192},
        "analyze": {"rows": 64, "cols": 100},
        "type": "float32",
        "unit": {"row": "rows"},
        "sweeps": {
            "by_columns": {
                "title": "The same number of elements",
                "inputs": [{"rows": 8192, "cols": 8192}, {"rows": 1024, "cols": 65536}],
            },
            "few_rows": {"title": "Few rows", "inputs": [{"rows": 1, "cols": 4096}, {"rows": 16, "cols": 4096}]},
            "long_rows": {"title": "One row", "inputs": [{"rows": 1, "cols": 65536}], "without": ["01_basic"]},
        },
    },
    VECTOR: {
        "title": "The sum of a vector",
        "operator": "sum",
        "program": "sum_vector_test",
        "baseline": "01_basic",
        "main": {"n": 4194304},
        "analyze": {"n": 6400},
        "sweeps": {"lengths": {"title": "Other lengths", "inputs": [{"n": 1024}, {"n": 2048}]}},
    },
    LECTURE: {
        "title": "A sum in ever fewer steps",
        "operator": "sum",
        "program": "reduction_test",
        "baseline": "reduction0",
        "main": {"n": 4194304},
        "analyze": {"n": 6400},
    },
}
# The first one as its ladder.json may grow: a program of controls, stages counted on another input, a whole report.
CONTROLS = ["02_reduction5", "03_with_256_threads", "03_tiled"]
WITH_CONTROLS = {
    **LADDERS[LADDER],
    "sweeps": {
        "controls": {
            "title": "One change at a time",
            "program": "controls/rms_norm_controls",
            "inputs": [{"rows": 8192, "cols": 8192}, {"rows": 1024, "cols": 65536}],
        }
    },
    "profiles": {"one_row": {"input": {"rows": 1, "cols": 4096}, "stages": ["02_reduction5", "03_tiled"]}},
    "details": ["02_reduction5"],
    "reports": ["04_short"],
}
NAMES = {LADDER: STAGES, VECTOR: STAGES[:2], LECTURE: ["reduction0", "reduction5"]}
NVIDIA_SMI = """\
#!/bin/bash
case "$*" in
  *=name*) echo "${FAKE_GPU-NVIDIA Fake 9000}" ;;
  *clocks.*) [ "$FAKE_CLOCKS" = none ] || echo "1234 MHz" ;;
  *driver_version*) echo 999.99 ;;
  *) exit 6 ;;
esac
"""
MAKE = """\
#!/bin/bash
[ -z $FAKE_BUILD_FAILS ] || { echo no nvcc >&2; exit 2; }
echo "make $*${ARGS:+ ARGS=$ARGS}" >>"$FAKE_MAKES"
"""


def executable(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(textwrap.dedent(text))
    path.chmod(0o755)


class Machine:
    """A tree of ladders in a folder of its own, with PATH leading to fakes."""

    def __init__(self, folder, gpu=True):
        self.root, self.bin = folder / "tree", folder / "bin"
        self.calls, self.makes = folder / "calls", folder / "makes"
        for operator in ("rms_norm", "sum"):
            self.write(f"common/operators/{operator}.h", "// an operator\n")
        for path, description in LADDERS.items():
            self.add_ladder(path, description, NAMES[path])
        executable(self.bin / "make", MAKE)
        executable(self.bin / "nvidia-smi", NVIDIA_SMI if gpu else "#!/bin/bash\nexit 9\n")

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def add_ladder(self, path, description, names):
        self.write(f"{path}/ladder.json", json.dumps(description))
        for name in names:
            if name[0].isdigit():
                self.write(f"{path}/{name}/kernel.cuh", "// a stage\n")
            else:
                self.write(f"{path}/{name}.cu", "// a stage\n")
        self.add_program(f"{path}/{description['program']}", description, names)
        for described in description.get("sweeps", {}).values():
            if "program" in described:
                self.add_program(f"{path}/{described['program']}", description, CONTROLS)

    def add_program(self, name, description, names):
        program = self.root / "build/cuda" / name
        text = (ROOT / "tests/tools/fake_ladder.py").read_text(encoding="utf-8")
        executable(program, text.replace("/usr/bin/env python3", f"{os.path.realpath(sys.executable)} -SE", 1))
        (program.parent / "ladder.json").write_text(json.dumps({**description, "names": names}))

    def without(self, tool):
        """A PATH that leads to everything here but that tool; None if it would be found anyway."""
        if any(pathlib.Path("/opt/nvidia/nsight-compute").glob(f"*/{tool}")):
            return None
        (self.bin / tool).unlink(missing_ok=True)
        folders = ENVIRONMENT["PATH"].split(":")
        return ":".join([str(self.bin)] + [folder for folder in folders if not pathlib.Path(folder, tool).exists()])

    def environment(self, changed):
        same = {"PATH": f"{self.bin}:{ENVIRONMENT['PATH']}", "CUDA_HOME": "/nonexistent"}
        return {**same, "FAKE_CALLS": str(self.calls), "FAKE_MAKES": str(self.makes), **changed}

    def run(self, *words, **changed):
        """What python3 -m ladder WORDS does in this tree, in this process: its exit code and what it prints itself."""
        out, err = io.StringIO(), io.StringIO()
        with contextlib.ExitStack() as stack:
            stack.enter_context(mock.patch.object(ladders, "ROOT", self.root))
            stack.enter_context(mock.patch.dict(os.environ, {**ENVIRONMENT, **self.environment(changed)}, clear=True))
            stack.enter_context(contextlib.redirect_stdout(out))
            stack.enter_context(contextlib.redirect_stderr(err))
            code = command_line.main([str(word) for word in words])
        return types.SimpleNamespace(returncode=code, stdout=out.getvalue(), stderr=err.getvalue())

    def start(self, *words, **changed):
        """The same as a process of its own, whose output holds that of the programs it starts."""
        if not (self.root / "tools").exists():
            shutil.copytree(ROOT / "tools", self.root / "tools", ignore=shutil.ignore_patterns("__pycache__"))
            for path in ROOT.glob("bench/**/*.py"):
                self.write(path.relative_to(ROOT), path.read_text(encoding="utf-8"))
        environment = {"PYTHONPATH": str(self.root / "tools"), **self.environment(changed)}
        return run(sys.executable, "-m", "ladder", *words, cwd=self.root, **environment)

    def files(self, folder="profiling_results"):
        found = (self.root / folder).rglob("*")
        return sorted(str(path.relative_to(self.root / folder)) for path in found if path.is_file())


def read(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def refused(result, *words):
    """Exit code 1, no traceback, and these words in what it says."""
    assert result.returncode == 1, result.stdout + result.stderr
    assert "Traceback" not in result.stderr
    for word in words:
        assert word in result.stderr, result.stderr


def raw_csv(launches):
    """ncu's raw page as CSV: names, units, one line per launch. launches: [(kernel, {metric: (unit, text)})]."""
    out = io.StringIO()
    writer = csv.writer(out, quoting=csv.QUOTE_ALL, lineterminator="\n")
    about = {"ID": "0", "Process Name": "rms_norm_matrix_test", "Kernel Name": "", "Device": "0", "CC": "9.0"}
    first = launches[0][1]
    writer.writerow([*about, *first])
    writer.writerow([""] * len(about) + [unit for unit, _ in first.values()])
    for kernel, values in launches:
        writer.writerow([*{**about, "Kernel Name": kernel}.values(), *(text for _, text in values.values())])
    return out.getvalue()
