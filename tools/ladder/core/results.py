"""What is stored: profiling_results/<gpu>/<ladder>/..., and how its files are read and written.

Beside the ladders, header/ holds what was measured of the production header, and the GPU's own folder what concerns
all: environment.txt, known_answers_ncu.csv, gpu_check.txt. cpu_device/<ladder>/ holds what was counted without a GPU.
"""

import csv
import os
import pathlib
import re

from . import ladders
from .ladders import Unusable

MAIN, REPEAT, ENVIRONMENT = "main.csv", "repeat.csv", "environment.txt"
HEADER = "header"
OF_THE_RUN = ("gpu", "cuda_runtime", "driver", "date", "sm_clock_mhz")  # columns that say where and when
CPU_DEVICE = "cpu_device"
DATASHEET = (
    "datasheet bandwidth"  # of environment.txt: "4814 GB/s", as the programs compute it from clock and bus width
)


def store():
    return ladders.ROOT / "profiling_results"


def slug(gpu):
    """The folder of a GPU's results: "NVIDIA H200" -> "h200", "NVIDIA H100 80GB HBM3" -> "h100"."""
    name = re.sub(r"[ -]\d+gb.*", "", gpu.lower().replace("nvidia ", ""))
    return re.sub(r"[^a-z0-9]+", "-", name).strip("-")


def target(given, gpu, ranks=1):
    """The folder that a job stores in: the one given, or that of the GPU, h100x2 of two."""
    return pathlib.Path(given).absolute() if given else store() / (slug(gpu) + (f"x{ranks}" if ranks > 1 else ""))


def stored_gpus(pattern="**/*.csv"):
    """The GPUs that have stored files of that pattern, the H200 first."""
    folders = [path for path in store().glob("*") if path.name != CPU_DEVICE]
    names = [folder.name for folder in folders if next(folder.glob(pattern), None)]  # the first file is enough
    return sorted(names, key=lambda name: (name != "h200", name))


def stored(gpu=""):
    """The folder with the results of the given GPU, by default the H200's; None if none are stored at all."""
    names = stored_gpus()
    if gpu and gpu not in names:
        raise Unusable(f"GPU={gpu}: no results of that name; stored in profiling_results: {', '.join(names) or 'none'}")
    return store() / (gpu or names[0]) if names else None


def measured(folder, name, file=""):
    """The folder of a GPU that has results of that name, a ladder's or the header's: the given one if it does, or else
    the first that does. With a file, on the pages of the first GPU: the first that has this file of that name."""
    if not folder:
        return folder
    if not (folder / name).is_dir():
        return next((store() / gpu for gpu in stored_gpus(f"{name}/**/*.csv")), folder)
    if file and not (folder / name / file).is_file() and folder == stored():
        return next((store() / gpu for gpu in stored_gpus(f"{name}/{file}")), folder)
    return folder


def read(path, columns=()):
    """The rows of a CSV as dictionaries; Unusable if the file or one of the columns is missing."""
    try:
        with open(path, newline="", encoding="utf-8") as file:
            reader = csv.DictReader(file)
            rows, names = list(reader), reader.fieldnames or []
    except (OSError, UnicodeDecodeError) as error:
        raise Unusable(f"{shown(path)} cannot be read: {getattr(error, 'strerror', None) or error}")
    missing = [column for column in columns if column not in names]
    if missing:
        raise Unusable(
            f"{shown(path)} lacks the column {', '.join(missing)}; the program that wrote it must write it again"
        )
    if any(None in row or None in row.values() for row in rows):
        raise Unusable(f"{shown(path)} has a row that is longer or shorter than its first line")
    return rows


def grouped(path, columns, outer, inner):
    """{outer(row): {inner(row): row}}, in the file's order; Unusable if it holds no rows."""
    found = {}
    for row in read(path, columns):
        found.setdefault(outer(row), {})[inner(row)] = row
    if not found:
        raise Unusable(f"{shown(path)} holds no rows")
    return found


def number(row, column):
    """A cell as a number, None if it is empty."""
    try:
        return float(row[column]) if row[column] else None
    except ValueError:
        raise Unusable(f"column {column} holds no number: {row[column]}")


def environment(folder):
    """The lines "key: value" of environment.txt in that folder or in the one above; nothing if neither has one."""
    for path in (folder / ENVIRONMENT, folder.parent / ENVIRONMENT):
        if path.is_file():
            return dict(line.split(": ", 1) for line in path.read_text(encoding="utf-8").splitlines() if ": " in line)
    return {}


def version(runtime):
    """CUDA's number of a version as people write it: 13000 -> "13.0"."""
    number = int(runtime or 0)
    return f"{number // 1000}.{number % 1000 // 10}"


def shown(path):
    """A path as the user names it: relative to the repository's root if it is below it."""
    path = pathlib.Path(path)
    return str(path.relative_to(ladders.ROOT)) if ladders.ROOT in path.parents else str(path)


def write_csv(path, header, rows):
    with open(path, "w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows([header, *rows])


def replace(path, write):
    """Puts a file in the place of path in one piece: write(partial) writes it elsewhere first."""
    partial = path.with_name(f".{path.name}.partial")
    write(partial)
    os.replace(partial, path)


def publish(source, target):
    """Moves the files of the folder source into the folder target, each in one piece, replacing older ones."""
    try:
        for path in sorted(path for path in source.rglob("*") if path.is_file()):
            final = target / path.relative_to(source)
            final.parent.mkdir(parents=True, exist_ok=True)
            replace(final, lambda partial, path=path: partial.write_bytes(path.read_bytes()))
    except OSError as error:
        raise Unusable(f"{shown(target)} cannot be written: {error.strerror}; the results are in {shown(source)}")
