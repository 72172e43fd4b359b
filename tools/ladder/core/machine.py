"""This machine: its GPU and clocks, the tools that are installed, and how programs are built and started on it."""

import datetime
import os
import re
import shutil
import subprocess
import sys

from . import ladders, results
from .ladders import Unusable

CLOCKS = {"SM clock": "clocks.sm", "memory clock": "clocks.mem"}
SETTINGS = {
    "SM clock at most": "clocks.max.sm",
    "memory clock at most": "clocks.max.mem",
    "power limit": "power.limit",
    "ECC": "ecc.mode.current",
    "persistence mode": "persistence_mode",
    "GPU memory": "memory.total",
    "driver": "driver_version",
}
NEEDED = ("driver", *(f"{clock} at most" for clock in CLOCKS))
# Set by a make that started this; a make that is started from here decides for itself.
OF_MAKE = ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "BACKEND", "BACKEND_SAID", "ARGS", "S")


def query(fields):
    """One line of nvidia-smi about the first GPU that programs see, "" if it prints nothing."""
    first = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")[0] or "0"
    return output_of("nvidia-smi", "-i", first, f"--query-gpu={fields}", "--format=csv,noheader")


def gpu():
    """The name of this machine's first GPU, "" if there is none."""
    return query("name")


def gpus():
    """How many GPUs programs see."""
    chosen = os.environ.get("CUDA_VISIBLE_DEVICES", "")
    numbers = (
        chosen.split(",") if chosen else output_of("nvidia-smi", "--query-gpu=index", "--format=csv,noheader").split()
    )
    return len(numbers)


def no_gpu(job, instead):
    """Says in two sentences why the job does nothing, and what works without a GPU."""
    print(f"{job}: nvidia-smi shows no GPU here, so nothing can be measured and nothing was written.\n{instead}")


def clocks():
    return {name: query(field) for name, field in CLOCKS.items()}


def refuse_silent():
    """Raises Unusable if nvidia-smi does not say what a stored time is compared by: clocks and driver."""
    asked = {**CLOCKS, **{name: SETTINGS[name] for name in NEEDED}}
    missing = [name for name, field in asked.items() if not query(field)]
    if missing:
        raise Unusable(
            f"nvidia-smi does not say this machine's {', '.join(missing)}, and times without them cannot be compared "
            "with others; nothing was measured"
        )


def output_of(*command):
    """What a command prints, "" if it fails."""
    try:
        done = run(*command, stderr=subprocess.DEVNULL, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.decode(errors="replace").strip() if done.returncode == 0 else ""


def without_colours(text):
    """What a program prints, without the codes that colour it on a terminal."""
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def run(*command, **options):
    """A finished process, started in the root; both its streams are in .stdout unless the options say otherwise."""
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "cwd": ladders.ROOT, **options}
    return subprocess.run([str(word) for word in command], **options)


def find(tool, message, variable="", *folders):
    """The path of a tool: what the variable names, or on PATH, beside nvcc, or in these folders."""
    beside_nvcc = os.path.join(os.environ.get("CUDA_HOME") or "/usr/local/cuda", "bin")
    named = os.environ.get(variable) if variable else ""
    for place in [named] if named else [tool, *(os.path.join(folder, tool) for folder in (beside_nvcc, *folders))]:
        path = shutil.which(place)
        if path:
            return path
    raise Unusable(message)


def find_nvcc():
    said = "nvcc is needed, and there is none on PATH, in $CUDA_HOME/bin or in /usr/local/cuda/bin"
    return find("nvcc", f"{said}; install NVIDIA's CUDA toolkit", "NVCC")


def make(*words, quiet=False):
    """The exit code of make, and with quiet what it said."""
    environment = {name: value for name, value in os.environ.items() if name not in OF_MAKE}
    done = run("make", *words, env=environment, **({} if quiet else {"stdout": None, "stderr": None}))
    return (done.returncode, done.stdout.decode(errors="replace")) if quiet else done.returncode


def build(*targets):
    """Builds programs with nvcc; make's own messages say what is missing."""
    if make(f"-j{output_of(sys.executable, '-B', 'simt/driver/jobs.py').strip()}", "BACKEND=cuda", *targets) != 0:
        raise Unusable("the build failed, see above; nothing was measured")


def program(ladder, name=""):
    """The program over all stages of a ladder, or another below its folder, as build() leaves it."""
    return ladders.ROOT / "build/cuda" / ladder.path / (name or ladder.program)


def environment(gpu, runtime, before, after, datasheet=""):
    """The text of environment.txt; before and after are clocks(), runtime is CUDA's version as people write it, datasheet
    the bandwidth that the programs took for the datasheet's, with its unit."""
    flags = ladders.ROOT / "build/cuda/flags.txt"
    compiler = re.findall(r"release [\d.]+, V[\d.]+", flags.read_text() if flags.is_file() else "")
    facts = {
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        "GPU": gpu,
        "CUDA runtime": runtime,
        "nvcc": compiler[-1] if compiler else "",
        "host compiler": output_of("g++", "--version").partition("\n")[0],
        "commit": output_of("git", "describe", "--always", "--dirty", "--exclude=*"),
    }
    for name in CLOCKS:
        facts[f"{name} before"], facts[f"{name} right after"] = before[name], after[name]
    facts[results.DATASHEET] = datasheet
    facts.update((name, query(field)) for name, field in SETTINGS.items())
    return "".join(f"{name}: {value}\n" for name, value in facts.items() if value)


def cores():
    """The processors that this process may use."""
    return len(os.sched_getaffinity(0))


def workplace(job):
    """An empty folder build/<job>, which is kept when the job fails, and the folder for its results in it."""
    folder = ladders.ROOT / "build" / job
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "results").mkdir(parents=True)
    return folder, folder / "results"


def measure(name, work, seconds, *command):
    """Runs one program to its end; its output goes to <work>/<name>.log and is returned."""
    try:
        done = run(*command, timeout=seconds)
    except OSError as error:
        raise Unusable(f"{name}: {results.shown(command[0])} cannot be started: {error.strerror}")
    except subprocess.TimeoutExpired:
        raise Unusable(f"{name}: not done after {seconds} seconds; nothing was stored")
    output = done.stdout.decode(errors="replace")
    (work / f"{name.replace('/', '_')}.log").write_text(output, encoding="utf-8")
    if done.returncode != 0:
        raise Unusable(f"{output}{name} failed with exit code {done.returncode}; nothing was stored")
    return output
