"""Times include/q4_gemm beside its peers, and its norm beside a norm, a quantization and a product apart.

    python3 bench/gemm/gemm_peers.py                                 both, on the shapes of the tables
    python3 bench/gemm/gemm_peers.py --products --shape 4096x1x14336 --shape 5120x3x8192 --peers cublas
    python3 bench/gemm/gemm_peers.py --ggml FOLDER                   with llama.cpp's libggml files, without its package

Needs PyTorch with CUDA, nvcc and an NVIDIA GPU. A peer that is not installed is named in the table, with how to install
it. The default run writes profiling_results/<gpu>/q4_gemm/, any other build/gemm_peers/: peers.csv and norm.csv (after
each shape, so that an interrupted run leaves what it has measured), each with its environment. Every competitor is
compared with float64 before and after it is timed. A wrong result of the header's, or a measurement that cannot be, ends
with exit code 1.
"""

import argparse
import concurrent.futures
import itertools
import pathlib
import re
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tools"), str(ROOT)]
from ladder.core import command_line, ladders, machine, results

from bench.gemm import gemm_competitors, gemm_contest, gemm_norm, gemm_tables
from bench.gemm.gemm_tables import NORM, PEERS
from bench.norm import competitors, peers

COLUMNS = [2**i for i in range(10)]
LAYERS = [(4096, 4096), (1024, 4096), (12288, 4096), (4096, 12288), (151936, 4096)]  # of Qwen3-8B
SHAPES = [(4096, n, 14336) for n in COLUMNS] + [(m, n, k) for m, k in LAYERS for n in (1, 8, 64, 512)]
NORM_SHAPES = [(m, n, 4096) for m in (4096, 12288) for n in (1, 4, 16, 128, 512)]
NAMES = list(gemm_competitors.PEERS)
CONTESTS = {PEERS: gemm_contest.Products, NORM: gemm_norm.Norms}


def shape(text):
    match = re.fullmatch(r"(\d+)x(\d+)x(\d+)", text)
    m, n, k = map(int, match.groups()) if match else (0, 0, 0)
    if not (m and n and k and k % 32 == 0):
        raise argparse.ArgumentTypeError(f"{text} is no shape; say MxNxK as in 4096x8x14336, K a multiple of 32")
    return m, n, k


def names(text):
    chosen = [name for name in text.split(",") if name]
    unknown = [name for name in chosen if name not in NAMES]
    if unknown:
        raise argparse.ArgumentTypeError(f"unknown peer {', '.join(unknown)}; known are {', '.join(NAMES)}")
    return chosen


def arguments():
    parser = argparse.ArgumentParser(
        prog="gemm_peers", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--products", action="store_true", help="only products beside the peers")
    parser.add_argument("--norm", action="store_true", help="only norms and products, fused and apart")
    parser.add_argument("--shape", type=shape, action="append", metavar="MxNxK", help="may be repeated")
    parser.add_argument("--peers", type=names, help="only these, with commas: " + ", ".join(NAMES))
    parser.add_argument("--ggml", type=pathlib.Path, metavar="FOLDER", help="with libggml-base.so and libggml-cuda.so")
    parser.add_argument("--replays", type=peers.positive, help="timed replays of each; by default 12")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--output", type=pathlib.Path, metavar="DIRECTORY", help="where the CSVs go")
    parser.set_defaults(job="gemm_peers", run=run)
    return parser


def complete(given):
    """The arguments with what follows from them: whether it is the default run, and the shapes of each kind."""
    given.default_run = not given.shape and given.peers is None and not given.replays
    given.replays = given.replays or 12
    given.peers = NAMES if given.peers is None else given.peers
    both = given.products == given.norm
    given.work = {
        kind: given.shape or by_default
        for kind, asked, by_default in ((PEERS, given.products, SHAPES), (NORM, given.norm, NORM_SHAPES))
        if asked or both
    }
    return given


def build(work):
    """The libraries that are needed, compiled side by side."""
    makers = {PEERS: gemm_competitors.build_library, NORM: gemm_norm.build_library}
    with concurrent.futures.ThreadPoolExecutor() as pool:
        wanted = [makers[PEERS], *([makers[NORM]] if NORM in work else [])]
        return [made.result() for made in [pool.submit(maker) for maker in wanted]]


def load(torch, gpu, library, norms, given):
    """{kind: {name: competitor, or the Missing that says why there is none}}."""

    def say(name, why):
        print(f"gemm_peers: {gemm_tables.title(name)} is missing: {why}", flush=True)

    products = {
        name: lambda options=options: gemm_competitors.Ours(library, **options)
        for name, options in gemm_competitors.OURS.items()
    }
    for name in given.peers:
        products[name] = lambda name=name: gemm_competitors.PEERS[name](torch, gpu.stream, given.ggml)
    makers = {PEERS: products, NORM: gemm_norm.makers(library, norms)}
    return {kind: competitors.made(makers[kind], say) for kind in given.work}


def measure_all(torch, gpu, loaded, given, output):
    """Writes <kind>.csv after each shape; returns the files. The weights are made once for all columns of a matrix."""
    files, total, done = [], sum(map(len, given.work.values())), 0
    for kind, shapes in given.work.items():
        table, path = [], output / f"{kind}.csv"
        for (m, k), group in itertools.groupby(shapes, key=lambda one: (one[0], one[2])):
            torch.manual_seed(given.seed)
            matrix = gemm_competitors.Matrix(torch, m, k)
            for _, n, _ in group:
                done, start = done + 1, time.monotonic()
                print(f"gemm_peers: [{done}/{total}] {kind} {m} x {n} x {k}: ", end="", flush=True)
                try:
                    rows = CONTESTS[kind](gpu, loaded[kind], matrix, n, given).measure()
                except (torch.cuda.OutOfMemoryError, MemoryError):
                    print("left out, this GPU's memory is too small", flush=True)
                else:
                    table += rows
                    gemm_tables.store(path, kind, table)
                    print(f"{gemm_tables.line_of(rows, kind)} ({time.monotonic() - start:.1f} s)", flush=True)
            matrix.close()
            del matrix
            torch.cuda.empty_cache()
        files += [path] if table else []
    return files


def environment(gpu, loaded, before):
    asked = {gemm_tables.title(name): one for name, one in loaded.get(PEERS, {}).items() if name in NAMES}
    return peers.environment(gpu, asked, before, machine.clocks())


def run(given):
    complete(given)
    torch = peers.requirements()
    gpu = peers.Gpu(torch)
    stored = (
        results.target("", gpu.gpu) / gemm_tables.FOLDER if given.default_run else ladders.ROOT / "build/gemm_peers"
    )
    output = (given.output or stored).absolute()
    output.mkdir(parents=True, exist_ok=True)
    path, *norms = build(given.work)
    before = machine.clocks()
    with torch.no_grad(), torch.cuda.stream(gpu.stream):
        library = gemm_competitors.Library(torch, path, gpu.stream)
        loaded = load(torch, gpu, library, norms[0] if norms else None, given)
        files = measure_all(torch, gpu, loaded, given, output)
    for kind in given.work:
        (output / f"{kind}_environment.txt").write_text(environment(gpu, loaded, before), encoding="utf-8")
    said = []
    for path in files:
        print(f"\n{gemm_tables.printed(path)}")
        said += gemm_tables.complaints(path)
    if said:
        print("\n".join(said), file=sys.stderr)
    return int(bool(said) or not files)


def main(words=None):
    """The exit code."""
    return command_line.exit_code(arguments(), words, "what was measured is stored")


if __name__ == "__main__":
    sys.exit(main())
