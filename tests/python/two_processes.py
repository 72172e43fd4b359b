"""RMSNorm in two processes, on DTensor and under FSDP2: what is computed in parts is compared with the whole.

test_python_compilers.py starts it, with the package on PYTHONPATH: two_processes.py PORT. It prints a line for each
part that is right.
"""

import os
import sys

import rms_norm
import rms_norm.torch as ours
import torch
import torch.distributed as dist
from rms_norm import distributed
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor
from torch.distributed.tensor.parallel import SequenceParallel, parallelize_module

SHAPE = 4, 6, 32


def close(got, expected):
    torch.testing.assert_close(got, expected, rtol=1e-5, atol=1e-5)


def spread(tensor, mesh, placement):
    """A leaf."""
    if placement == Partial():  # what the two processes have adds up to the tensor
        return DTensor.from_local(tensor / 2, mesh, [placement]).requires_grad_()
    return distribute_tensor(tensor, mesh, [placement]).requires_grad_()


def whole(tensor):
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


def run(norm, tensors, wanted):
    """Results, and the gradients of the tensors that are wanted."""
    results = norm(*tensors)
    results = results if isinstance(results, tuple) else (results,)
    loss = sum((result * torch.arange(result.shape[-1])).square().sum() for result in map(whole, results))
    return [*map(whole, results), *map(whole, torch.autograd.grad(loss, [tensors[i] for i in wanted]))]


def distributed_tensors(mesh):
    plain = [torch.randn(SHAPE).requires_grad_(), torch.randn(SHAPE).requires_grad_(), torch.randn(32).requires_grad_()]
    x, residual, weight = plain
    placements = Replicate(), Shard(0), Shard(1), Shard(2), Partial()
    for of_x in placements:
        spread_x, of_weight = spread(x.detach(), mesh, of_x), spread(weight.detach(), mesh, Replicate())
        for wanted in ([0], [0, 1]):  # without the gradient of the weight, and with it
            for got, expected in zip(
                run(ours.rms_norm, (spread_x, of_weight), wanted), run(ours.rms_norm, (x, weight), wanted)
            ):
                close(got, expected)
        for got, expected in zip(run(ours.rms_norm, (spread_x,), [0]), run(ours.rms_norm, (x,), [0])):
            close(got, expected)
        for of_residual in placements:
            given = spread_x, spread(residual.detach(), mesh, of_residual), of_weight
            for got, expected in zip(
                run(ours.fused_add_rms_norm, given, [0, 1, 2]), run(ours.fused_add_rms_norm, plain, [0, 1, 2])
            ):
                close(got, expected)
        with torch.inference_mode():
            y = torch.ops.rms_norm.rms_norm(spread_x, of_weight)
        if of_x in (Replicate(), Shard(0), Shard(1)):
            assert y.placements == (of_x,), y.placements  # nothing was sent
        else:
            assert y.placements != (Shard(2),)
        close(y.full_tensor(), ours.rms_norm(x, weight).detach())


def what_is_refused(mesh):
    x, weight = distribute_tensor(torch.randn(SHAPE), mesh, [Shard(0)]), torch.ones(32)
    spread_weight = distribute_tensor(weight, mesh, [Replicate()])
    for call, sentence in (
        (lambda: rms_norm.rms_norm(x, spread_weight), "x is a DTensor, whose parts lie on several devices"),
        (lambda: rms_norm.rms_norm(weight, spread_weight), "weight has no memory, as a fake tensor or a DTensor"),
        (lambda: ours.fused_add_rms_norm_(x, x.clone(), spread_weight), "takes no DTensor"),
        (lambda: torch.compile(rms_norm.rms_norm, backend="aot_eager")(x, spread_weight), "takes no DTensor"),
    ):
        try:
            call()
        except Exception as refused:
            assert sentence in str(refused), refused
        else:
            raise AssertionError(f"not refused: {sentence}")


def all_reduced(mesh):
    """Each process has a part of a sum: both get the sum, the residual added, to the last bit, and its norm."""
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        parts = [torch.randn(SHAPE).to(dtype) for _ in range(2)]  # of both processes, which draw the same
        residual, weight = torch.randn(SHAPE).to(dtype), torch.randn(32)
        expected = (parts[0].float() + parts[1] + residual).to(dtype)
        for options in {}, {"rounding": "llama", "weight_offset": 1.0}:
            given = parts[dist.get_rank()].transpose(0, 1).contiguous().transpose(0, 1), residual, weight, 1e-5
            compiled = torch.compile(distributed.all_reduce_fused_add_rms_norm, fullgraph=True, backend="aot_eager")
            for function in distributed.all_reduce_fused_add_rms_norm, compiled:
                y, total = function(*given, **options)
                assert torch.equal(total, expected)
                assert torch.equal(y, rms_norm.rms_norm(expected, weight, 1e-5, **options))
    assert distributed.all_reduce_fused_add_rms_norm(*given[:2], None)[0].shape == SHAPE
    for wrong, why in (
        ((parts[0], residual.float(), None), "residual is torch.float32 and x is torch.float16"),
        ((parts[0], residual[:1], None), "residual has the shape"),
        ((parts[0].requires_grad_(), residual, None), "has no backward"),
    ):
        try:
            distributed.all_reduce_fused_add_rms_norm(*wrong)
            raise AssertionError(why)
        except (TypeError, ValueError) as refused:
            assert why in str(refused), refused


def sequence_parallel(mesh):
    x = torch.randn(SHAPE)
    norm, alone = ours.RMSNorm(32), ours.RMSNorm(32)
    parallelize_module(norm, mesh, SequenceParallel())
    y = norm(distribute_tensor(x, mesh, [Shard(1)]))
    assert y.placements == (Shard(1),)
    close(y.full_tensor(), alone(x))
    y.square().sum().backward()
    alone(x).square().sum().backward()
    close(norm.weight.grad.full_tensor(), alone.weight.grad)
    compiled = torch.compile(norm, fullgraph=True, backend="aot_eager")
    close(compiled(distribute_tensor(x, mesh, [Shard(1)])).full_tensor(), alone(x))


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = ours.RMSNorm(32), ours.RMSNorm(32)
        self.up, self.down = torch.nn.Linear(32, 64), torch.nn.Linear(64, 32)

    def forward(self, x):
        normed, total = self.second(self.first(x), x)
        return total + self.down(self.up(normed).relu())


def fully_sharded(mesh):
    model = torch.nn.Sequential(Block(), Block(), ours.RMSNorm(32))
    alone = torch.nn.Sequential(Block(), Block(), ours.RMSNorm(32))
    alone.load_state_dict(model.state_dict())
    for block in model:
        fully_shard(block, mesh=mesh)
    fully_shard(model, mesh=mesh)
    x, rank = torch.randn(8, 32), dist.get_rank()
    optimizers = [torch.optim.SGD(each.parameters(), lr=0.1) for each in (model, alone)]
    for _ in range(2):  # forward, backward and a step
        part = model(x.chunk(2)[rank])
        close(part, alone(x).chunk(2)[rank])
        part.square().mean().backward()
        alone(x).square().mean().backward()
        for (name, got), expected in zip(model.named_parameters(), alone.parameters()):
            assert isinstance(got, DTensor) and got.grad.abs().sum() > 0, name
            close(got.grad.full_tensor(), expected.grad)
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad()


def work(rank, port):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=port, RANK=str(rank), WORLD_SIZE="2")
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    mesh = init_device_mesh("cpu", (2,))
    for part in (distributed_tensors, what_is_refused, all_reduced, sequence_parallel, fully_sharded):
        torch.manual_seed(1)  # the same numbers in both processes
        part(mesh)
        if rank == 0:
            print(part.__name__, "right", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    torch.multiprocessing.spawn(work, (sys.argv[1],), nprocs=2)
