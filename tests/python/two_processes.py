"""RMSNorm in two processes, on DTensor, under FSDP2 and in tensor-parallel models: what is computed in parts is compared
with the whole.

test_python_compilers.py starts it, with the package on PYTHONPATH: two_processes.py PORT. It prints a line for each
part that is right.
"""

import copy
import itertools
import os
import sys

import families
import rms_norm
import rms_norm.torch as ours
import torch
import torch.distributed as dist
from rms_norm import _operators, distributed
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
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
    for of_x, bytes_of_row in itertools.product(placements, (2**30, 0)):  # rstd is computed again, or stored
        _operators._BYTES_OF_ROW = bytes_of_row
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


def split(name, mesh, dtype=torch.float32, prepare=lambda model: None):
    """A model as tp_plan="auto" leaves it, and what its forward is given."""
    from transformers.distributed import DistributedConfig
    from transformers.distributed.tensor_parallel import apply_tensor_parallelism

    model, given = families.made(name, dtype)
    prepare(model)
    plan, _, _ = model._resolve_parallel_plans(DistributedConfig(tp_plan="auto"))
    there = {name for name, _ in (*model.named_modules(), *model.named_parameters())}  # no lm_head.weight if it is tied
    return apply_tensor_parallelism(model, mesh, {name: plan[name] for name in plan if name in there}), given


def passed(model, given, **more):
    """What the model computes, and how often the ranks add up by themselves, and together with a norm."""
    calls, plain, fused = [], dist.all_reduce, distributed.all_reduce_fused_add_rms_norm
    dist.all_reduce = lambda *given, **named: (calls.append("plain"), plain(*given, **named))[1]
    distributed.all_reduce_fused_add_rms_norm = lambda *given, **named: (calls.append("fused"), fused(*given, **named))[
        1
    ]
    try:
        with torch.no_grad():
            result = model(**given, **more)
    finally:
        dist.all_reduce, distributed.all_reduce_fused_add_rms_norm = plain, fused
    return result, calls.count("plain"), calls.count("fused")


def refused(function, kind, *sentences):
    try:
        function()
    except kind as error:
        assert all(sentence in str(error) for sentence in sentences), error
    else:
        raise AssertionError(f"not refused: {sentences}")


def models_are_patched(mesh):
    for name in "llama", "qwen3":
        for dtype in torch.float32, torch.bfloat16:
            model, given = split(name, mesh, dtype)
            tolerance = {"rtol": 0.02, "atol": 0.02} if dtype == torch.bfloat16 else {"rtol": 1e-5, "atol": 1e-6}
            before, sums, _ = passed(model, given, output_hidden_states=True)
            forwards = [module.forward for module in model.modules()]
            report = distributed.patch_transformers(model)
            assert list(report.patched.values()).count(
                f"{type(model.model.layers[0]).__name__}: its sums over the ranks, with the norms that follow"
            ) == len(model.model.layers)
            assert {len(distributed.patch_transformers(model).patched)} == {len(report.patched)}  # once more
            after, others, fused = passed(model, given, output_hidden_states=True)
            assert (sums, others, fused) == (4, 0, 4), (sums, others, fused)
            for one, other in zip((after.logits, *after.hidden_states), (before.logits, *before.hidden_states)):
                torch.testing.assert_close(one, other, **tolerance)
                of_ranks = [torch.empty_like(one) for _ in range(2)]
                dist.all_gather(of_ranks, one.contiguous())
                assert torch.equal(*of_ranks)
            ours.unpatch(model)
            assert torch.equal(passed(model, given)[0].logits, before.logits)
            assert forwards == [module.forward for module in model.modules()]


def models_are_called_in_other_ways(mesh):
    model, given = split("llama", mesh)
    tokens = {"input_ids": given["input_ids"], "max_new_tokens": 3, "do_sample": False}
    expected, generated = passed(model, given)[0].logits, model.generate(**tokens)
    layer = model.model.layers[0]
    with torch.autocast("cpu", torch.bfloat16):  # the residual has another type than the products
        of_16_bits = passed(model, given)[0].logits
    distributed.patch_transformers(model)
    assert torch.equal(model.generate(**tokens), generated)
    with torch.autocast("cpu", torch.bfloat16):
        result, others, fused = passed(model, given)
        assert (others, fused) == (4, 0)
        torch.testing.assert_close(result.logits, of_16_bits, rtol=0.02, atol=0.02)
    modules = layer.self_attn, layer.self_attn.o_proj, layer.mlp, layer.mlp.down_proj, layer.post_attention_layernorm
    for module in (*modules, model.model.norm):
        seen = []
        hook = module.register_forward_hook(lambda _, given, result, seen=seen: seen.append(result))
        result, others, fused = passed(model, given)
        assert (others, fused) == (1, 3) and len(seen) == 1, (type(module), others, fused)
        close(result.logits, expected)
        seen = seen[0][0] if isinstance(seen[0], tuple) else seen[0]
        of_ranks = [torch.empty_like(seen) for _ in range(2)]
        dist.all_gather(of_ranks, seen.contiguous())
        assert torch.equal(*of_ranks), type(module)  # a hook sees no part of a sum
        hook.remove()
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
    close(passed(compiled, {"input_ids": given["input_ids"]})[0].logits, expected)
    hidden_states = torch.randn(2, 7, 64)
    refused(lambda: model(**given), ValueError, "have no gradients", "torch.no_grad()")
    with torch.no_grad():
        spread_states = distribute_tensor(hidden_states, mesh, [Shard(1)])
        refused(lambda: layer(spread_states), TypeError, "are a DTensor with the placements (Shard(dim=1),)")


def models_that_are_not_patched(mesh):
    def add_bias(model):
        for layer in model.model.layers:
            layer.mlp.down_proj.bias = torch.nn.Parameter(torch.zeros(64))

    whole, _ = families.made("llama")
    for model, why in (
        (whole, "its self_attn.o_proj is no matrix of torch.nn.Linear that transformers has split by columns"),
        (split("gemma2", mesh)[0], "the addition of the residual, it calls another module"),
        (split("llama", mesh, prepare=add_bias)[0], "its mlp.down_proj has a bias"),
        (split("phi3", mesh)[0], "only its norms are patched"),
    ):
        kinds = [type(module) for module in model.modules()]
        refused(lambda: distributed.patch_transformers(model), ValueError, "no layer whose sums over the ranks", why)
        assert kinds == [type(module) for module in model.modules()]


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


def fully_sharded_in_bfloat16(mesh):
    """Parameters of float32 that compute in bfloat16, and whose gradients are added up in float32."""
    model = torch.nn.Sequential(Block(), Block(), ours.RMSNorm(32))
    alone = copy.deepcopy(model).bfloat16()
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    for block in (*model, model):
        fully_shard(block, mesh=mesh, mp_policy=policy)
    parts, gradients = torch.randn(8, 32).chunk(2), []
    part = model(parts[dist.get_rank()])
    part.float().square().mean().backward()
    for rank, x in enumerate(parts):
        result = alone(x.bfloat16())
        assert rank != dist.get_rank() or torch.equal(part, result)
        loss = result.float().square().mean()
        gradients.append([each.float() for each in torch.autograd.grad(loss, list(alone.parameters()))])
    for (name, got), *of_parts in zip(model.named_parameters(), *gradients):
        assert got.dtype == got.grad.dtype == torch.float32 and got.grad.full_tensor().abs().sum() > 0, name
        close(got.grad.full_tensor(), sum(of_parts) / 2)


def work(rank, port):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=port, RANK=str(rank), WORLD_SIZE="2")
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    mesh = init_device_mesh("cpu", (2,))
    of_models = models_are_patched, models_are_called_in_other_ways, models_that_are_not_patched
    in_shards = sequence_parallel, fully_sharded, fully_sharded_in_bfloat16
    for part in (distributed_tensors, what_is_refused, all_reduced, *of_models, *in_shards):
        torch.manual_seed(1)  # the same numbers in both processes
        part(mesh)
        if rank == 0:
            print(part.__name__, "right", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    torch.multiprocessing.spawn(work, (sys.argv[1],), nprocs=2)
