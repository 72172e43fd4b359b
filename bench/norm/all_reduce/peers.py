"""rms_norm.distributed beside its peers, on all GPUs of this machine: python3 bench/norm/all_reduce/peers.py CSV [--quick]

Checks first that every rank gets the sum to the last bit, plainly, through torch.compile and from a CUDA graph. Then it
times, each captured into a graph of 40 calls on each GPU, the slowest rank: the package, NCCL's all-reduce with
torch.compile's norm, with the package's, and PyTorch's symmetric memory (one-shot, two-shot) with torch.compile's norm.
Where FlashInfer is installed, also its fused kernel (one-shot, two-shot), and vLLM's custom all-reduce, of which
FlashInfer has a copy, with torch.compile's norm. make peers ARGS=--all-reduce starts it.
"""

import ctypes
import os
import statistics
import sys

import torch
import torch.distributed as dist
import torch.distributed._symmetric_memory as symmetric

CALLS, POOL, MOST_ROWS, MOST_COLS = 40, 128 << 20, 4096, 8192


def reference(x, residual):
    parts = [torch.empty_like(x) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, x)
    total = parts[0].float()
    for part in parts[1:]:
        total = total + part
    return (total + residual).to(x.dtype)


def check(distributed, package, device):
    compiled = torch.compile(distributed.all_reduce_fused_add_rms_norm, fullgraph=True)
    built = package._build.TYPES.split()
    for name in "bfloat16", "float16", "float32":
        if name not in built and built not in (["usual"], ["all"]):
            continue
        dtype = getattr(torch, name)
        for rows, cols in ((1, 4096), (17, 4096), (5, 1000), (700, 8192)):
            x, residual = torch.randn(2, rows, cols, device=device).to(dtype)
            dist.broadcast(residual, 0)
            weight = torch.ones(cols, device=device, dtype=dtype)
            expected = reference(x, residual)
            for function in distributed.all_reduce_fused_add_rms_norm, compiled:
                y, total = function(x, residual, weight)
                assert torch.equal(total, expected), (dtype, rows, cols)
                torch.testing.assert_close(y, package.rms_norm(expected, weight))
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                y, total = distributed.all_reduce_fused_add_rms_norm(x, residual, weight)
            for _ in range(3):
                x.normal_()
                graph.replay()
                assert torch.equal(total, reference(x, residual)), (dtype, rows, cols)


def add_and_norm(x, residual, weight):
    total = x + residual
    value = total.float()
    return (value * torch.rsqrt(value.square().mean(-1, keepdim=True) + 1e-6)).to(x.dtype) * weight, total


class FlashInfer:
    """Two functions of x, residual and weight, fused; and vLLM's custom all-reduce, a function of x."""

    def __init__(self, device):
        from flashinfer import comm

        self.comm, self.rank, ranks = comm, dist.get_rank(), dist.get_world_size()
        self.workspace = comm.create_allreduce_fusion_workspace(
            backend="trtllm",
            world_size=ranks,
            rank=self.rank,
            max_token_num=MOST_ROWS,
            hidden_dim=MOST_COLS,
            dtype=torch.bfloat16,
        )
        self.bytes = MOST_ROWS * MOST_COLS * 2
        signals = comm.create_shared_buffer(comm.vllm_meta_size() + self.bytes)
        comm.CudaRTLibrary().cudaMemset(ctypes.c_void_p(signals[self.rank]), 0, comm.vllm_meta_size())
        self.of_ranks = torch.empty(8 << 20, dtype=torch.uint8, device=device)
        self.vllm = comm.vllm_init_custom_ar(signals, self.of_ranks, self.rank, True)
        self.buffers = comm.create_shared_buffer(self.bytes)
        comm.vllm_register_buffer(self.vllm, self.buffers)

    def fused(self, one_shot):
        def call(x, residual, weight):
            y, total = torch.empty_like(x), torch.empty_like(x)
            self.comm.allreduce_fusion(
                x,
                self.workspace,
                self.comm.AllReduceFusionPattern.kARResidualRMSNorm,
                launch_with_pdl=True,
                residual_out=total,
                norm_out=y,
                residual_in=residual,
                rms_gamma=weight,
                rms_eps=1e-6,
                use_oneshot=one_shot,
                fp32_acc=True,
            )
            return y, total

        return call

    def custom(self, x):
        total = torch.empty_like(x)
        captured = torch.cuda.is_current_stream_capturing()  # then x is registered after the capture, and not copied
        self.comm.vllm_all_reduce(self.vllm, x, total, 0 if captured else self.buffers[self.rank], self.bytes, 36)
        return total

    def register(self):
        """What custom() was called with in a graph; by all ranks, before its first replay."""
        metas = [None] * dist.get_world_size()
        dist.all_gather_object(metas, self.comm.vllm_get_graph_buffer_ipc_meta(self.vllm))
        self.comm.vllm_register_graph_buffers(self.vllm, [handles for handles, _ in metas], [at for _, at in metas])

    def check(self, package, device):
        for rows, cols in ((1, 4096), (17, 4096), (700, 8192)):
            x, residual = torch.randn(2, rows, cols, device=device).to(torch.bfloat16)
            dist.broadcast(residual, 0)
            weight = torch.ones(cols, device=device, dtype=torch.bfloat16)
            expected = reference(x, residual)
            checked = [self.fused(True), lambda *args: add_and_norm(self.custom(args[0]), *args[1:])]
            if rows > dist.get_world_size():
                checked.append(self.fused(False))
            for function in checked:
                found = [function(x, residual, weight)]
                graph = torch.cuda.CUDAGraph()
                with torch.cuda.graph(graph):
                    found.append(function(x, residual, weight))
                self.register()
                graph.replay()
                for y, total in found:
                    torch.testing.assert_close(total, expected, rtol=0.016, atol=0.03)
                    torch.testing.assert_close(y, package.rms_norm(expected, weight), rtol=0.016, atol=0.03)


def flashinfer(package, device):
    """None where it is not installed, or where its results are wrong."""
    try:
        found = FlashInfer(device)
        found.check(package, device)
    except (ImportError, AttributeError, AssertionError, RuntimeError, ValueError) as refused:
        if dist.get_rank() == 0:
            print(f"without FlashInfer: {type(refused).__name__}: {refused}", flush=True)
        return None
    return found


def competitors(distributed, package, peer, device, rows, cols):
    count = max(1, min(CALLS, POOL // (rows * cols * 2)))
    group = dist.group.WORLD.group_name
    inputs = symmetric.empty(count, rows, cols, dtype=torch.bfloat16, device=device)
    symmetric.rendezvous(inputs, group)
    inputs.normal_()
    residual, weight = torch.zeros_like(inputs), torch.ones(cols, dtype=torch.bfloat16, device=device)
    plain = inputs.clone()
    torch.compiler.reset()  # after some shapes it would compile no more, and call the functions as they are
    compiled = torch.compile(add_and_norm, dynamic=False)
    kept = []  # so that no call gets the memory of the one before

    def ours(dependent):
        def call(i):
            kept.append(
                distributed.all_reduce_fused_add_rms_norm(plain[i], residual[i], weight, dependent_launch=dependent)
            )

        return call

    def nccl(norm):
        def call(i):
            dist.all_reduce(plain[i])
            if norm is not None:
                kept.append(norm(plain[i], residual[i], weight))

        return call

    def symmetric_memory(operator):
        def call(i):
            kept.append(compiled(operator(inputs[i], "sum", group), residual[i], weight))

        return call

    def header(x, residual, weight):
        return package.torch.fused_add_rms_norm(x, residual, weight)

    def fused(function):
        return lambda i: kept.append(function(plain[i], residual[i], weight))

    operators = torch.ops.symm_mem
    named = {
        "package": ours(False),
        "package_dependent": ours(True),
        "torch_nccl": nccl(None),
        "torch_nccl_compile": nccl(compiled),
        "torch_nccl_package": nccl(header),
        "torch_one_shot_compile": symmetric_memory(operators.one_shot_all_reduce),
        "torch_two_shot_compile": symmetric_memory(operators.two_shot_all_reduce_),
    }
    if peer is not None:
        named["flashinfer_one_shot"] = fused(peer.fused(True))
        if rows > dist.get_world_size():  # with fewer it refuses
            named["flashinfer_two_shot"] = fused(peer.fused(False))
        named["vllm_compile"] = fused(lambda x, *args: compiled(peer.custom(x), *args))
    return count, kept, named


def time_of(call, count, kept, captured):
    for i in range(3):
        call(i % count)
    torch.cuda.synchronize()
    kept.clear()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for i in range(CALLS):
            call(i % count)
    captured()
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    times = []
    for _ in range(6):
        dist.barrier()
        graph.replay()  # lines the ranks up
        begin.record()
        for _ in range(5):
            graph.replay()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end) * 1e3 / (5 * CALLS))
    slowest = torch.tensor(times[1:], device="cuda")
    dist.all_reduce(slowest, dist.ReduceOp.MAX)
    del graph
    kept.clear()
    return statistics.median(slowest.tolist())


def work(rank, ranks, path, quick):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29511", RANK=str(rank), WORLD_SIZE=str(ranks))
    device = torch.device("cuda", rank)
    torch.cuda.set_device(device)
    dist.init_process_group("nccl", device_id=device)
    import rms_norm
    import rms_norm.torch
    from rms_norm import distributed

    distributed.prepare(message_bytes=64 << 20)
    torch.manual_seed(rank)
    with torch.no_grad():
        check(distributed, rms_norm, device)
        peer = flashinfer(rms_norm, device)
        lines = []
        if rank == 0:
            print("right on", ranks, torch.cuda.get_device_name(), flush=True)
        for cols in (4096,) if quick else (4096, 8192):
            for rows in (1, 16, 64, 256, 1024) if quick else (1, 16, 64, 256, 1024, 4096):
                count, kept, named = competitors(distributed, rms_norm, peer, device, rows, cols)
                for name, call in named.items():
                    captured = peer.register if name == "vllm_compile" else lambda: None
                    try:
                        us = time_of(call, count, kept, captured)
                        lines.append(f"{ranks},{rows},{cols},bfloat16,{name},{us:.3f}")
                    except (AttributeError, RuntimeError, ValueError) as refused:
                        if rank == 0:
                            print(f"{name}, {rows} x {cols}: {str(refused).splitlines()[0]}", flush=True)
                if rank == 0:  # what was measured so far, if the time is over
                    with open(path, "w", encoding="utf-8") as file:
                        file.write("\n".join(["ranks,rows,cols,dtype,competitor,us", *lines, ""]))
    dist.destroy_process_group()


if __name__ == "__main__":
    count = min(torch.cuda.device_count(), 8)
    torch.multiprocessing.spawn(work, (count, sys.argv[1], "--quick" in sys.argv), nprocs=count)
