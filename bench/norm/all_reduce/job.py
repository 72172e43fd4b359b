"""make peers ARGS=--all-reduce: the programs of this folder, one after the other, on all GPUs of this machine (8 at most).

Stores profiling_results/<gpu>x<ranks>/header/all_reduce.csv, and with --quick or --output another folder's. main.cu is needed
with NCCL 2.28 or newer; peers.py, which needs the package of python/ built for GPUs, is left out with a sentence where it
fails.
"""

import os
import sys

from ladder.core import ladders, machine, results
from ladder.core.ladders import Unusable

from bench.norm.all_reduce import tables

FOLDER = "bench/norm/all_reduce"
IGNORED = "forward residual backward step quantized shape peers no_pdl replays".split()  # options of the other contests


def rows_of(path, facts):
    """What a program wrote, as rows of the stored file."""
    found = results.read(path, ["ranks", "rows", "cols", "dtype", "competitor", "us"]) if path.is_file() else []
    named = [
        {**facts, **row, "microseconds": row["us"], "least_microseconds": row.get("least_us", "")} for row in found
    ]
    return [[row.get(column, "") for column in tables.COLUMNS] for row in named]


def times_of_package(csv_file, quick):
    """Whether peers.py has written its times."""
    places = [ladders.ROOT / "build/python_package/cuda/site", *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, places))}
    words = [ladders.ROOT / FOLDER / "peers.py", csv_file, *(["--quick"] if quick else [])]
    return machine.run(sys.executable, *words, env=environment, stdout=None, stderr=None).returncode == 0


def run(given):
    wrong = [name for name in IGNORED if getattr(given, name, None)]
    if wrong:
        raise Unusable(f"--all-reduce takes --quick and --output, and not --{wrong[0].replace('_', '-')}")
    from bench.norm import peers

    torch = peers.requirements()
    ranks = min(torch.cuda.device_count(), 8)
    if ranks < 2:
        raise Unusable("--all-reduce needs two GPUs of one host, and PyTorch sees one")
    gpu = peers.Gpu(torch)
    before = machine.clocks()
    machine.build(f"{FOLDER}/program")
    work, _ = machine.workplace("peers_all_reduce")
    words = ["--csv", work / "header.csv", *(["--quick"] if given.quick else [])]
    if (
        machine.run(ladders.ROOT / "build/cuda" / FOLDER / "all_reduce", *words, stdout=None, stderr=None).returncode
        != 0
    ):
        raise Unusable("the program of bench/norm/all_reduce failed, see above; nothing was stored")
    rows = rows_of(work / "header.csv", gpu.facts)
    if not times_of_package(work / "package.csv", given.quick):
        print(
            "peers: the Python package and PyTorch's all-reduces are left out, or not complete: peers.py failed, see above"
        )
    rows += rows_of(work / "package.csv", gpu.facts)
    stored = results.target("", gpu.gpu, ranks) / results.HEADER
    output = (given.output or (ladders.ROOT / "build/peers/results" if given.quick else stored)).absolute()
    output.mkdir(parents=True, exist_ok=True)
    file = output / "all_reduce.csv"
    results.replace(file, lambda partial: results.write_csv(partial, tables.COLUMNS, rows))
    text = machine.environment(gpu.gpu, gpu.facts["cuda_runtime"], before, machine.clocks())
    text += f"GPUs: {ranks} of one host\nNCCL of PyTorch: {'.'.join(map(str, torch.cuda.nccl.version()))}\n"
    (output / "all_reduce_environment.txt").write_text(text, encoding="utf-8")
    print(f"\nall-reduce + residual add + RMSNorm, microseconds ({results.shown(file)})")
    print(tables.printed(file))
    return 0
