"""A machine made of stand-ins for a GPU, make, the ladder's program and ncu, to test the tools around them.

Every number is invented to test a tool. None is a measurement, and none may ever reach profiling_results/.
"""

import csv
import io
import pathlib
import shutil
import textwrap

from conftest import ENVIRONMENT, LADDER, ROOT, run
from fake_ladder import STAGES

NVIDIA_SMI = """\
#!/bin/bash
case "$*" in
  *=name*) echo "${FAKE_GPU-NVIDIA Fake 9000}" ;;
  *clocks.*sm*) echo "1234 MHz" ;;
  *driver_version*) echo 999.99 ;;
  *) exit 6 ;;
esac
"""


# Answers once with what is in the file answer, unless it is to fail; notes how it was called.
NCU = """\
#!/bin/bash
[ "$1" != --version ] || { echo "NVIDIA Nsight Compute"; echo "Version 2025.3.9.0 (build 1)"; exit; }
echo "$*" >>"$FAKE_CALLS"
case "$*" in
  *"UNKNOWN"*) echo "==ERROR== Failed to find metric UNKNOWN"; exit 9 ;;
  *"--stage FAILS_FOR"*) echo "==ERROR== no counters for this one"; exit 1 ;;
esac
echo "==PROF== Connected to process 1"
echo "NVIDIA Fake 9000, sm_90"
cat "${0%/*}/answer"
exit CODE
"""


def executable(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(textwrap.dedent(text))
    path.chmod(0o755)


class Machine:
    """A copy of the scripts in a folder of its own, with PATH leading to fakes."""

    def __init__(self, folder, gpu=True):
        self.root = folder / "tree"
        self.bin = folder / "bin"
        unwanted = shutil.ignore_patterns("__pycache__", "*.png", "*.svg")
        for name in ("scripts", "plots"):
            shutil.copytree(ROOT / name, self.root / name, ignore=unwanted)
        for stage in STAGES:
            (self.root / LADDER / stage).mkdir(parents=True)
            (self.root / LADDER / stage / "kernel.cuh").write_text("// a stage\n")
            (self.root / LADDER / stage / "Makefile").write_text("# a stage\n")
        self.calls = folder / "calls"
        program = self.root / "build/cuda" / LADDER / "rms_norm_matrix_test"
        executable(program, (ROOT / "tests/fake_ladder.py").read_text(encoding="utf-8"))
        executable(self.bin / "make", "#!/bin/bash\n[ -z $FAKE_BUILD_FAILS ] || { echo no nvcc >&2; exit 2; }\n")
        if gpu:
            executable(self.bin / "nvidia-smi", NVIDIA_SMI)
        else:
            executable(self.bin / "nvidia-smi", "#!/bin/bash\nexit 9\n")

    def install_ncu(self, answer, code=0, unknown="none such", fails_for="none such"):
        text = NCU.replace("UNKNOWN", unknown).replace("FAILS_FOR", fails_for).replace("CODE", str(code))
        executable(self.bin / "ncu", text)
        (self.bin / "answer").write_text(answer)

    def without(self, tool):
        """A PATH that leads to everything here but that tool; None where it would be found anyway."""
        if any(pathlib.Path("/opt/nvidia/nsight-compute").glob(f"*/{tool}")):
            return None
        (self.bin / tool).unlink(missing_ok=True)
        folders = ENVIRONMENT["PATH"].split(":")
        return ":".join([str(self.bin)] + [folder for folder in folders if not pathlib.Path(folder, tool).exists()])

    def run(self, script, *arguments, **environment):
        path = f"{self.bin}:{ENVIRONMENT['PATH']}"
        same = {"PATH": path, "CUDA_HOME": "/nonexistent", "FAKE_CALLS": str(self.calls)}
        return run(self.root / script, *arguments, cwd=self.root, **{**same, **environment})

    def files(self, folder="profiling_results"):
        found = (self.root / folder).rglob("*")
        return sorted(str(path.relative_to(self.root / folder)) for path in found if path.is_file())


def raw_csv(values, kernel="tiled::rms_norm_kernel_w2l3_tile(const float *, float)", launches=1):
    """ncu's raw page as CSV: a line of names, one of units, one a launch. values: {metric: (unit, text)}."""
    out = io.StringIO()
    writer = csv.writer(out, quoting=csv.QUOTE_ALL, lineterminator="\n")
    about = {"ID": "0", "Process Name": "rms_norm_matrix_test", "Kernel Name": kernel, "Device": "0", "CC": "9.0"}
    writer.writerow([*about, *values])
    writer.writerow([""] * len(about) + [unit for unit, _ in values.values()])
    for _ in range(launches):
        writer.writerow([*about.values(), *(text for _, text in values.values())])
    return out.getvalue()
