"""What the scripts share: where results are stored and how their files are read and written."""

import csv
import os
import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent
STORE = ROOT / "profiling_results"
LADDER = "assignment1/rms_norm/matrix"
PROGRAM = ROOT / "build/cuda" / LADDER / "rms_norm_matrix_test"
MATRIX_CSV = "matrix_8192x8192.csv"
COLUMNS_CSV = "matrix_by_columns.csv"
FEW_CSV = "few_rows.csv"
LONG_CSV = "long_rows.csv"
SHAPES_CSV = "header_shapes.csv"


class Unusable(Exception):
    """Why the work cannot go on, for the reader: what is wrong and what to do."""


def slug(gpu):
    """The folder of a GPU's results: "NVIDIA H200" -> "h200"."""
    return re.sub(r"[^a-z0-9]+", "-", gpu.lower().replace("nvidia ", "")).strip("-")


def gpu_here():
    """The name of this machine's first GPU as nvidia-smi tells it, "" where there is none."""
    return query("name")


def query(fields):
    """One line of nvidia-smi about the first GPU, "" where it tells nothing."""
    command = ["nvidia-smi", "-i", "0", f"--query-gpu={fields}", "--format=csv,noheader"]
    try:
        answer = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return answer.stdout.decode().strip() if answer.returncode == 0 else ""


def stored_gpus(name=MATRIX_CSV):
    """The folders that hold a file of that name."""
    return sorted(path.parent.name for path in STORE.glob(f"*/{name}"))


def stored(gpu=""):
    """The folder with the results of the GPU asked for, by default the H200's; None where none are stored at all."""
    names = stored_gpus()
    if gpu and gpu not in names:
        raise Unusable(f"GPU={gpu}: no results of that name; stored in profiling_results: {', '.join(names) or 'none'}")
    if not names:
        return None
    return STORE / (gpu or ("h200" if "h200" in names else names[0]))


def read(path, columns=()):
    """The rows of a CSV as dictionaries; Unusable if the file or one of the columns is missing."""
    try:
        with open(path, newline="", encoding="utf-8") as file:
            reader = csv.DictReader(file)
            rows, names = list(reader), reader.fieldnames or []
    except (OSError, UnicodeDecodeError) as error:
        raise Unusable(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}")
    missing = [column for column in columns if column not in names]
    if missing:
        raise Unusable(f"{path} lacks the column {', '.join(missing)}; let the program that wrote it write it again")
    if any(None in row or None in row.values() for row in rows):
        raise Unusable(f"{path} has a row that is longer or shorter than its first line")
    return rows


def number(row, column):
    """A cell as a number, None where it is empty."""
    try:
        return float(row[column]) if row[column] else None
    except ValueError:
        raise Unusable(f"column {column} holds no number: {row[column]}")


def environment(folder):
    """The lines "key: value" of environment.txt; nothing where there is no such file."""
    path = folder / "environment.txt"
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    return dict(line.split(": ", 1) for line in lines if ": " in line)


def version(runtime):
    """CUDA's number of a version as people write it: 13000 -> "13.0"."""
    number = int(runtime or 0)
    return f"{number // 1000}.{number % 1000 // 10}"


def shown(path):
    """A path as the reader names it: from the repository's root where it lies below it."""
    path = pathlib.Path(path)
    return str(path.relative_to(ROOT)) if ROOT in path.parents else str(path)


def write_csv(path, header, rows):
    with open(path, "w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows([header, *rows])


def publish(source, target):
    """Moves what lies in the folder source into the folder target, each file in one piece over its older self."""
    try:
        target.mkdir(parents=True, exist_ok=True)
        for path in sorted(source.iterdir()):
            partial = target / f".{path.name}.partial"
            partial.write_bytes(path.read_bytes())
            os.replace(partial, target / path.name)
    except OSError as error:
        raise Unusable(f"{target} cannot be written: {error.strerror}; the results are in {shown(source)}")


def build(*targets):
    """Builds programs with nvcc; make's own messages say what is missing."""
    command = ["make", f"-j{os.cpu_count()}", "BACKEND=cuda", *targets]
    if subprocess.run(command, cwd=ROOT).returncode != 0:
        raise Unusable("the build failed, see above; nothing was measured")
