"""Times what one eager call of RMSNorm takes the host: of this project's package, of PyTorch and of the peers.

    python3 bench/norm/host_time.py                      needs PyTorch with CUDA, the package of python/, and an NVIDIA GPU
    python3 bench/norm/host_time.py --output DIRECTORY

One row of 4096 bfloat16 numbers, whose kernel is shorter than a call, so that the host does not wait for the GPU. A
sample is the time of 500 calls until the last one returns. All take turns. Peers that are not installed are left out.
Among them is the launch of a kernel that does nothing, which is a part of each of the others. Gradients are off, by
torch.no_grad(), or where a call's name says so by torch.inference_mode(), which leaves out the layer of autograd.
Writes profiling_results/<gpu>/header/host_time.csv.
"""

import argparse
import pathlib
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tools"), str(ROOT)]
from ladder.core import results
from ladder.measure import graph_timing

from bench.norm import competitors, peers

CALLS, SAMPLES = 500, 40
INFERENCE = ", inference mode"
COLUMNS = "call host_microseconds spread_percent version gpu cuda_runtime driver date sm_clock_mhz".split()


def own(torch, x, weight, y):
    import rms_norm
    import rms_norm.torch as ours

    module = ours.RMSNorm(x.shape[-1], eps=1e-6, device=x.device, dtype=x.dtype)
    residual = torch.zeros_like(x)
    return {
        "rms_norm.rms_norm, with out": lambda: rms_norm.rms_norm(x, weight, 1e-6, y),
        "rms_norm.rms_norm, with out, dependent launch": lambda: rms_norm.rms_norm(
            x, weight, 1e-6, y, dependent_launch=True
        ),
        "rms_norm.rms_norm": lambda: rms_norm.rms_norm(x, weight, 1e-6),
        "rms_norm.fused_add_rms_norm": lambda: rms_norm.fused_add_rms_norm(x, residual, weight, 1e-6),
        "rms_norm.torch.rms_norm": lambda: ours.rms_norm(x, weight, 1e-6),
        "torch.ops.rms_norm.rms_norm": lambda: torch.ops.rms_norm.rms_norm(x, weight, 1e-6),
        f"torch.ops.rms_norm.rms_norm{INFERENCE}": lambda: torch.ops.rms_norm.rms_norm(x, weight, 1e-6),
        "rms_norm.torch.RMSNorm": lambda: module(x),
    }


def of_torch(torch, x, weight, y):
    module = torch.nn.RMSNorm(x.shape[-1], eps=1e-6, device=x.device, dtype=x.dtype)
    return {
        "a kernel that does nothing": lambda: torch.cuda._sleep(0),
        "torch.empty_like": lambda: torch.empty_like(x),
        "torch.nn.functional.rms_norm": lambda: torch.nn.functional.rms_norm(x, x.shape[-1:], weight, 1e-6),
        f"torch.nn.functional.rms_norm{INFERENCE}": lambda: torch.nn.functional.rms_norm(x, x.shape[-1:], weight, 1e-6),
        "torch.nn.RMSNorm": lambda: module(x),
    }


def of_peers(torch, x, weight, y):
    calls = {}
    for name, make in competitors.PEERS.items():
        if name.startswith("torch"):
            continue
        try:
            peer = make(torch)
            peer.forward(x, weight, y)
        except Exception as error:  # whatever a library raises where it is missing or refuses
            print(f"host_time: {name} is left out: {competitors.first_line(error)}")
            continue
        calls[f"{name} {getattr(peer, 'version', '')}".strip()] = lambda peer=peer: peer.forward(x, weight, y)
    return calls


def sample(torch, name, call):
    torch.cuda.synchronize()
    with torch.inference_mode() if name.endswith(INFERENCE) else torch.no_grad():
        begin = time.perf_counter()
        for _ in range(CALLS):
            call()
        taken = 1e6 * (time.perf_counter() - begin) / CALLS
    torch.cuda.synchronize()
    return taken


def main():
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=form)
    parser.add_argument("--output", type=pathlib.Path, metavar="DIRECTORY", help="where host_time.csv goes")
    given = parser.parse_args()
    try:
        import torch
    except ImportError:
        sys.exit("host_time: PyTorch is needed (pip install torch)")
    if not torch.cuda.is_available():
        sys.exit("host_time: an NVIDIA GPU is needed that PyTorch can use")
    gpu = peers.Gpu(torch)
    x = torch.randn(1, 4096, device="cuda", dtype=torch.bfloat16)
    weight, y = torch.ones(4096, device="cuda", dtype=torch.bfloat16), torch.empty_like(x)
    with torch.no_grad():
        calls = {**own(torch, x, weight, y), **of_torch(torch, x, weight, y), **of_peers(torch, x, weight, y)}
    samples = {name: [] for name in calls}
    for turn in range(-3, SAMPLES):
        for name in graph_timing.turns(list(calls), turn):
            taken = sample(torch, name, calls[name])
            if turn >= 0:
                samples[name].append(taken)
    rows = []
    for name, values in samples.items():
        median, spread = graph_timing.summarize(values)
        print(f"{median:8.2f} µs  {name}", flush=True)
        row = {**gpu.facts, "call": name, "host_microseconds": f"{median:.2f}", "spread_percent": f"{spread:.1f}"}
        rows.append([str({**row, "version": f"PyTorch {torch.__version__}"}[column]) for column in COLUMNS])
    folder = given.output or results.target("", gpu.gpu) / results.HEADER
    folder.mkdir(parents=True, exist_ok=True)
    results.replace(folder / "host_time.csv", lambda partial: results.write_csv(partial, COLUMNS, rows))


if __name__ == "__main__":
    main()
