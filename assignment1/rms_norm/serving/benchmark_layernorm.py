"""Times the document's functions on one GPU, with its options.

    python3 assignment1/rms_norm/serving/benchmark_layernorm.py --num-tokens 4096 --hidden-size 8192 --dtype half
    … --add-residual             fused_add_rms_norm in place of rms_norm
    … --kernel header            before, after or header (layernorm.py); by default all three in turn
    … --grid                     the document's grid of tokens, hidden sizes, types and residual, as one table
    … --profile                  one call of each that ncu --profile-from-start off sees

Prints microseconds per call: median of --num-iters replays of a CUDA graph of calls over many inputs in turn, 600 MB of
them or 64, so that large ones come from memory. Without a GPU it calls each kernel once, and nothing is timed. The
header needs the package of python/; where that is not installed, its line says so and the others are timed.
"""

import argparse
import itertools
import pathlib
import sys

import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import layernorm
from ladder.core.ladders import Unusable
from ladder.measure import graph_timing

TOKENS = [256, 512, 1024, 2048, 4096, 8192]
HIDDEN_SIZES = [768, 1024, 2048, 4096, 5120, 8192]


def count(text):
    if not text.isdigit() or not int(text):
        raise argparse.ArgumentTypeError(f"{text} is not a whole number above 0")
    return int(text)


def arguments():
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=form)
    parser.add_argument("--num-tokens", type=count, default=4096)
    parser.add_argument("--hidden-size", type=count, default=8192)
    parser.add_argument("--add-residual", action="store_true")
    parser.add_argument("--dtype", choices=layernorm.DTYPES, default="half")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--num-warmup-iters", type=int, default=5)
    parser.add_argument("--num-iters", type=count, default=100, help="timed replays; by default 100")
    parser.add_argument("--profile", action="store_true", help="one call of each, for a profiler")
    parser.add_argument("--kernel", choices=layernorm.NAMES, action="append", help="may be repeated; by default all")
    parser.add_argument("--grid", action="store_true", help="time the document's grid, and print one table")
    return parser


class Pair:
    """An input and what its call writes."""

    def __init__(self, given, device, dtype):
        shape = given.num_tokens, given.hidden_size
        self.x = torch.randn(shape, device=device).to(dtype)
        self.other = torch.randn(shape, device=device).to(dtype)  # the residual, or the result


def call_of(kernels, weight, adds_residual):
    if adds_residual:
        return lambda pair: kernels.fused_add_rms_norm(pair.x, pair.other, weight, 1e-6)
    return lambda pair: kernels.rms_norm(pair.other, pair.x, weight, 1e-6)


def times(given, calls, device, dtype):
    """{kernel: median microseconds}, all in turn."""
    moved = (4 if given.add_residual else 2) * given.num_tokens * given.hidden_size * dtype.itemsize
    pool = [Pair(given, device, dtype) for _ in range(graph_timing.pair_count(moved))]
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        graphs = {}
        for name, call in calls.items():
            call(pool[0])
            graphs[name] = graph_timing.Graph(torch, stream, call, pool)
        samples = {name: [] for name in graphs}
        for replay in range(-given.num_warmup_iters, given.num_iters):
            for name in graph_timing.turns(list(graphs), replay):
                sample = graphs[name].time()
                if replay >= 0:
                    samples[name].append(sample)
    return {name: graph_timing.summarize(values)[0] for name, values in samples.items()}


def profile(given, calls, device, dtype):
    pair = Pair(given, device, dtype)
    for call in calls.values():
        for _ in range(max(1, given.num_warmup_iters)):
            call(pair)
    torch.cuda.synchronize()
    torch.cuda.profiler.start()
    for call in calls.values():
        call(pair)
    torch.cuda.synchronize()
    torch.cuda.profiler.stop()


def calls_of(given, kernels, device, dtype):
    torch.manual_seed(given.seed)
    weight = (1.0 + 0.1 * torch.randn(given.hidden_size, device=device)).to(dtype)
    return {name: call_of(one, weight, given.add_residual) for name, one in kernels.items()}


def function_of(given):
    return "fused_add_rms_norm" if given.add_residual else "rms_norm"


def grid(given, kernels, device):
    """One line for each point; the times of the kernels, and how many times as fast as the first each other one is."""
    first, *others = kernels
    faster = [f"{first} / {name}" for name in others]
    print("".join(f"{word:>19}" for word in ["function", "dtype", "tokens", "hidden size", *kernels, *faster]))
    for given.add_residual, given.dtype, given.hidden_size, given.num_tokens in itertools.product(
        (False, True), layernorm.DTYPES, HIDDEN_SIZES, TOKENS
    ):
        dtype = layernorm.DTYPES[given.dtype]
        found = times(given, calls_of(given, kernels, device, dtype), device, dtype)
        cells = [function_of(given), given.dtype, given.num_tokens, given.hidden_size]
        cells += [f"{found[name]:.2f}" for name in kernels] + [f"{found[first] / found[name]:.2f}" for name in others]
        print("".join(f"{cell:>19}" for cell in cells), flush=True)


def chosen(names):
    """({name: its functions}, {name: why it cannot run}): only a kernel that no option names may be left out."""
    kernels, lacking = {}, {}
    for name in names or layernorm.NAMES:
        try:
            kernels[name] = layernorm.kernels(name)
        except ImportError as error:
            if names:
                raise
            lacking[name] = str(error)
    return kernels, lacking


def main():
    given = arguments().parse_args()
    try:
        device = layernorm.devices()[0]
        kernels, lacking = chosen(given.kernel)
    except (Unusable, ImportError) as error:
        sys.exit(f"benchmark_layernorm: {error}")
    dtype = layernorm.DTYPES[given.dtype]
    calls = calls_of(given, kernels, device, dtype)
    if device == "cpu":
        for call in calls.values():
            call(Pair(given, device, dtype))
        print(f"{function_of(given)}: {', '.join(kernels)} ran on the CPU device, which times nothing")
    elif given.profile:
        profile(given, calls, device, dtype)
    elif given.grid:
        print(f"microseconds per call on {torch.cuda.get_device_name()}")
        grid(given, kernels, device)
    else:
        found = times(given, calls, device, dtype)
        what = f"{given.num_tokens} × {given.hidden_size} {given.dtype}"
        print(f"{function_of(given)} on {torch.cuda.get_device_name()}: {what}")
        for name, microseconds in found.items():
            print(f"{name}: kernel running time: {microseconds:.3f} us")
    for name, reason in lacking.items():
        print(f"{name}: did not run: {reason}")


if __name__ == "__main__":
    main()
