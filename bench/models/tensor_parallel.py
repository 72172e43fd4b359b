"""Times models that are split over the GPUs of this machine, before and after their sums over GPUs and norms are patched.

    python3 bench/models/tensor_parallel.py                          Llama-3-8B and Qwen3-8B, decode and prefill
    python3 bench/models/tensor_parallel.py --models qwen3-8b:bfloat16 --inputs decode_1 --ways graph
    python3 bench/models/tensor_parallel.py --tiny --output build/tp  whether it works, on any machine, in two processes

Every GPU that programs see is a rank (eight at most; CUDA_VISIBLE_DEVICES chooses). Each has the whole model's random
weights, and transformers splits them as with tp_plan="auto". The times are those of the slowest rank; otherwise this is
end_to_end.py, whose options it takes, with these variants: stock; patched (rms_norm.distributed.patch_transformers);
patched_pdl (the same, with dependent launches). Logits must also be the same bits on all ranks. Stores
profiling_results/<gpu>x<ranks>/header/tensor_parallel.csv.
"""

import contextlib
import functools
import os
import pathlib
import socket
import sys
import types

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tools"), str(ROOT)]
from ladder.core import command_line, machine, results
from ladder.core.ladders import BadCommand, Unusable
from ladder.measure import graph_timing

from bench.models import end_to_end, model_tables

SAMPLES = 7  # the same on all ranks, which wait for each other


@contextlib.contextmanager
def patched(model, **options):
    import rms_norm.torch
    from rms_norm import distributed

    distributed.patch_transformers(model, **options)
    try:
        yield
    finally:
        rms_norm.torch.unpatch(model)


VARIANTS = {
    model_tables.STOCK: contextlib.nullcontext,
    model_tables.PATCHED: patched,
    model_tables.PATCHED_PDL: functools.partial(patched, dependent_launch=True),
}


def split(model, mesh):
    """The model as tp_plan="auto" leaves it."""
    from transformers.distributed import DistributedConfig
    from transformers.distributed.tensor_parallel import apply_tensor_parallelism

    if not hasattr(model, "_resolve_parallel_plans"):  # transformers 5.17
        return apply_tensor_parallelism(model, mesh)
    plan, _, _ = model._resolve_parallel_plans(DistributedConfig(tp_plan="auto"))
    there = {name for name, _ in (*model.named_modules(), *model.named_parameters())}  # no lm_head.weight if it is tied
    return apply_tensor_parallelism(model, mesh, {name: plan[name] for name in plan if name in there})


class Contest(end_to_end.Contest):
    """The contest of all ranks."""

    def samples(self, names, sample):
        dist, found = self.torch.distributed, {name: [] for name in names}
        for turn in range(1 if self.given.tiny else SAMPLES):
            for name in graph_timing.turns(names, turn):
                dist.barrier()
                found[name].append(sample(name))
        for name, own in found.items():
            slowest = self.torch.tensor(own, device=self.device.name)
            dist.all_reduce(slowest, dist.ReduceOp.MAX)
            found[name] = slowest.tolist()
        return found

    def check(self, key, result):
        logits = end_to_end.output_of(result).float().contiguous()
        first = logits.clone()
        self.torch.distributed.broadcast(first, 0)
        is_same = self.torch.equal(first, logits)
        if not super().check(key, result):
            return False
        if not is_same:
            self.note(key, "wrong", "the logits have other bits than those of rank 0", **self.rows[key])
        return is_same

    def least(self):
        return super().least() / self.torch.distributed.get_world_size()


def measure(rank, ranks, port, given):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=port, RANK=str(rank), WORLD_SIZE=str(ranks))
    import torch
    import torch.distributed as dist
    from torch.distributed.device_mesh import init_device_mesh

    from bench.models import models

    if torch.cuda.is_available():
        torch.cuda.set_device(rank)
        dist.init_process_group("nccl", device_id=torch.device("cuda", rank))
    else:
        torch.set_num_threads(1)
        dist.init_process_group("gloo")
    device = end_to_end.Device(torch, given.tiny)
    mesh = init_device_mesh(device.name, (ranks,))
    known = types.SimpleNamespace(**{**vars(models), "VARIANTS": VARIANTS})
    path, before, table = given.output / "tensor_parallel.csv", machine.clocks(), {}
    end_to_end.complete(given, known)
    with torch.no_grad(), device.current():
        for name, kind, inputs in given.work:
            model = split(models.build(name, kind, device.name, given.tiny, given.layers, given.seed), mesh)
            for input_name in inputs:
                one = models.make_input(model, input_name, given.tiny)
                rows = Contest(device, known, model, (name, kind), one, given).measure()
                if rank == 0:
                    table[name, input_name] = rows
                    model_tables.store(path, [row for rows in table.values() for row in rows])
                    print(f"tensor_parallel: {models.TITLES[name]}, {model_tables.line_of(rows)}", flush=True)
                del one
                device.free()
            del model
            device.free()
    if rank == 0:
        text = machine.environment(device.facts["gpu"], device.facts["cuda_runtime"], before, machine.clocks())
        text += "".join(f"{name}: {version}\n" for name, version in device.versions.items())
        (given.output / "tensor_parallel_environment.txt").write_text(text, encoding="utf-8")
    dist.barrier()
    sys.stdout.flush()
    os._exit(0)  # a process group whose calls were captured into graphs may not come to an end


def run(given):
    try:
        import rms_norm.distributed  # noqa: F401
        import torch
        import transformers  # noqa: F401
    except ImportError as error:
        raise Unusable(f"PyTorch, transformers and the package of python/ are needed: {error}")
    ranks = min(torch.cuda.device_count(), 8) or 2
    if given.compile:
        raise BadCommand("--compile is not an option of split models")
    if not torch.cuda.is_available() and not given.tiny:
        raise Unusable("NVIDIA GPUs are needed that PyTorch can use; --tiny tries the program without them")
    if ranks < 2:
        raise Unusable("two GPUs of one host are needed, and PyTorch sees one")
    if given.tiny and not given.output:
        raise BadCommand("--tiny needs --output: tiny models are no results")
    given.output = (given.output or results.target("", machine.gpu(), ranks) / results.HEADER).absolute()
    given.output.mkdir(parents=True, exist_ok=True)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    torch.multiprocessing.spawn(measure, (ranks, port, given), nprocs=ranks)
    path = given.output / "tensor_parallel.csv"
    print(f"\n{model_tables.printed(path)}")
    return int(model_tables.is_wrong(path))


def arguments():
    parser = end_to_end.arguments()
    parser.prog, parser.description = "tensor_parallel", __doc__
    parser.set_defaults(job="tensor_parallel", run=run, models="llama-3-8b:bfloat16,qwen3-8b:bfloat16", add=False)
    return parser


if __name__ == "__main__":
    sys.exit(command_line.exit_code(arguments(), None, "what was measured is stored"))
