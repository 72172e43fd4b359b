"""Who multiplies, and with what: weights of 4 bits in the form of each competitor, and how each is called and timed.

A competitor has .copies(matrix), its weights several times; .weight_bytes(matrix), of one of them; .timer(copies, matrix,
x), which is checked and timed; .rounds, what it rounds, and .limit, the error that this allows: the norm of y's difference
from float64 over the norm of y. An element may be off by eight times as much, relative to the root of the mean square.
.quantizes says that float64 gets x in q8_1, too. Making one raises Missing where it is not installed.
This is a module of gemm_peers.py, no command.
"""

import ctypes
import math

from ladder.core import ladders
from ladder.measure import graph_timing, kernel_library

from bench.gemm import ggml
from bench.norm.competitors import DTYPE_CODES, Missing, version_of

QUANTIZED = 3  # q4_gemm_dtype of bench/abi/q4_gemm
BLOCK = 32
FLOAT32_SUMS = 2.0**-17  # of some hundred blocks, in any order
TO_8_BITS = 2.0**-6  # x in q8_1: about a third of it is usual
TO_FLOAT16, TO_BFLOAT16 = graph_timing.UNIT_ROUNDOFF["float16"], graph_timing.UNIT_ROUNDOFF["bfloat16"]


class Matrix:
    """Random weights in q4_0: `numbers`, 0 to 15, and `scales`, a float16 of either sign for each 32 of a row."""

    def __init__(self, torch, m, k, device="cuda"):
        self.torch, self.m, self.k = torch, m, k
        self.numbers = torch.randint(0, 16, (m, k), dtype=torch.uint8, device=device)
        scales = (0.5 + torch.rand(m, k // BLOCK, device=device)) / 64
        self.scales = (scales * torch.where(torch.rand_like(scales) < 0.5, -1.0, 1.0)).half()

    def blocks(self):
        """As llama.cpp stores them: 18 bytes for each 32 weights."""
        torch, of_block = self.torch, self.numbers.view(self.m, -1, 2, BLOCK // 2)
        scales = self.scales.unsqueeze(2).view(torch.uint8)
        return torch.cat([scales, of_block[:, :, 0] | of_block[:, :, 1] << 4], dim=2).contiguous()

    def rows(self, begin, end, dtype):
        """What the weights of some rows stand for, in a type that may round them."""
        numbers = self.numbers[begin:end].view(end - begin, -1, BLOCK).to(dtype) - 8
        return (numbers * self.scales[begin:end].unsqueeze(2).to(dtype)).view(end - begin, self.k)

    def close(self):
        if hasattr(self, "ggml"):
            self.ggml.close()

    def times(self, x):
        """y in float64, [n, m]; a block of rows at a time."""
        step = max(1, 2**27 // self.k)
        parts = [self.rows(i, min(i + step, self.m), self.torch.float64) for i in range(0, self.m, step)]
        return self.torch.cat([x.double() @ part.T for part in parts], dim=1)


def columns(torch, n, k, device="cuda"):
    """Random x, float32 [n, k], of numbers that float16 and bfloat16 hold exactly."""
    x = torch.randn(n, k, device=device).bfloat16().float()
    return torch.where(x.abs() < 2.0**-14, 0.0, x)


def in_q8_1(torch, x):
    """x as float64 after it was quantized: as in include/q4_gemm/activations.cuh."""
    blocks = x.view(-1, BLOCK)
    most = blocks.abs().amax(dim=1, keepdim=True).double()
    scale = (most / torch.full_like(most, 127.0)).float()  # by a number, CUDA would multiply with its inverse
    inverse = torch.where(scale < 2.0**-126, 0.0, (1 / scale.double()).float())
    scaled = (blocks * inverse).double()
    numbers = torch.trunc(scaled + torch.copysign(torch.full_like(scaled, 0.5), scaled))
    return (numbers * scale.half().double()).view(x.shape)


def copy_count(weight_bytes):
    """So many copies of the weights that the L2 cache holds a negligible part of them."""
    return max(2, math.ceil(graph_timing.POOL_BYTES / weight_bytes))


def error_of(torch, y, expected, limit):
    """(error, what is wrong or ""); NaN is wrong."""
    difference = y.double() - expected
    error = float(difference.norm() / expected.norm())
    worst = float(difference.abs().max() / expected.square().mean().sqrt())
    if not error <= limit:
        return error, f"the error is {error:.2e}, and may be {limit:.2e}"
    if not worst <= 8 * limit:
        return error, f"an element is off by {worst:.2e} of the root mean square, and may be by {8 * limit:.2e}"
    return error, ""


class InGraph(graph_timing.Graph):
    """launch(weights) -> y in a CUDA graph over all copies, round after round."""

    def __init__(self, torch, stream, launch, weights):
        launch(weights[0])  # what is made at a first call cannot be made while a graph is captured
        super().__init__(torch, stream, launch, weights)
        self.copies = len(weights)

    def results(self):
        """The first and the last y, written over NaN."""
        for y in self.outputs:
            y.fill_(math.nan)
        self.graph.replay()
        return [self.outputs[0], self.outputs[-1]]

    def close(self):
        self.graph = self.outputs = None


class Library:
    """bench/abi/q4_gemm, and what it needs of PyTorch."""

    def __init__(self, torch, path, stream):
        self.torch, self.stream, self.lib = torch, stream, ctypes.CDLL(str(path))
        pointer, flag, count, lib = ctypes.c_void_p, ctypes.c_int, ctypes.c_int64, self.lib
        sizes = {"packed": [count] * 2, "quantized": [count] * 2, "workspace": [count] * 3}
        for name, types in sizes.items():
            function = getattr(lib, f"q4_gemm_{name}_size")
            function.argtypes, function.restype = types, ctypes.c_size_t
        lib.q4_gemm_rounded_from.argtypes, lib.q4_gemm_rounded_from.restype = [], count
        lib.q4_gemm_repack.argtypes = [pointer, pointer, count, count, pointer]
        lib.q4_gemm_quantize.argtypes = [flag, pointer, pointer, count, count, flag, pointer]
        norm = [flag, *[pointer] * 5, count, count, ctypes.c_float, flag, pointer]
        lib.q4_gemm_rms_norm_quantize.argtypes = norm
        last = [count] * 3 + [flag, flag, pointer, pointer]
        lib.q4_gemm_multiply.argtypes = [flag, flag, pointer, flag, pointer, flag, pointer, *last]
        lib.q4_gemm_error.argtypes, lib.q4_gemm_error.restype = [flag], ctypes.c_char_p

    def check(self, error):
        if error:
            raise RuntimeError(f"CUDA error {error}: {self.lib.q4_gemm_error(error).decode()}")

    def bytes(self, what, *shape):
        """A tensor of as many bytes as q4_gemm_<what>_size says."""
        size = getattr(self.lib, f"q4_gemm_{what}_size")(*shape)
        return self.torch.empty(size, dtype=self.torch.uint8, device="cuda")

    def current(self):
        return self.torch.cuda.current_stream().cuda_stream

    def repacked(self, matrix):
        """copy_count() copies of the weights, made once for a matrix."""
        if not hasattr(matrix, "repacked"):
            first, blocks = self.bytes("packed", matrix.m, matrix.k), matrix.blocks()
            pointers = blocks.data_ptr(), first.data_ptr()
            self.check(self.lib.q4_gemm_repack(*pointers, matrix.m, matrix.k, self.current()))
            matrix.repacked = [first] + [first.clone() for _ in range(copy_count(first.numel()) - 1)]
        return matrix.repacked

    def multiply(self, shape, weights, x_code, x, y_code, y, dependent, rounded, workspace, invariant=False):
        """y = weights · x, of a shape (m, n, k)."""
        pointers = weights.data_ptr(), x_code, x.data_ptr(), y_code, y.data_ptr()
        last = dependent, invariant, workspace.data_ptr(), self.current()
        self.check(self.lib.q4_gemm_multiply(1, rounded, *pointers, *shape, *last))
        return y


class Ours:
    """include/q4_gemm with repacked weights and a workspace; x is quantized by the call that is timed."""

    version = ""

    def __init__(self, library, dtype, dependent=True, rounded=False, invariant=False):
        capability = library.torch.cuda.get_device_capability()
        if rounded and capability[0] != 9:
            raise Missing("the kernels with rounded scales need compute capability 9.0")
        if dependent and capability < (9, 0):
            raise Missing("programmatic dependent launch needs compute capability 9.0 or higher")
        self.library, self.torch, self.dtype = library, library.torch, getattr(library.torch, dtype)
        self.code, self.dependent, self.rounded = DTYPE_CODES[dtype], dependent, rounded
        self.invariant = invariant
        self.rounds = "weights and x to float16" if rounded else "sums to float32 (float64 gets the same 8-bit x)"
        self.limit = TO_FLOAT16 + FLOAT32_SUMS if rounded else FLOAT32_SUMS
        if dtype != "float32":
            self.rounds, self.limit = f"{self.rounds}, y to {dtype}", self.limit + graph_timing.UNIT_ROUNDOFF[dtype]
        self.quantizes = not rounded

    def takes(self, matrix, n):
        """Few columns have the exact kernel, whatever is asked for."""
        return not self.rounded or n >= self.library.lib.q4_gemm_rounded_from()

    def copies(self, matrix):
        return self.library.repacked(matrix)

    def weight_bytes(self, matrix):
        return self.copies(matrix)[0].numel()

    def timer(self, weights, matrix, x):
        shape = matrix.m, len(x), matrix.k
        x, workspace = x.to(self.dtype), self.library.bytes("workspace", *shape)

        def launch(one):
            y = self.torch.empty(len(x), matrix.m, dtype=self.dtype, device=x.device)
            pointers = one, self.code, x, self.code, y
            return self.library.multiply(shape, *pointers, self.dependent, self.rounded, workspace, self.invariant)

        return InGraph(self.torch, self.library.stream, launch, weights)


class Cublas:
    """torch.matmul with weights that were dequantized to float16."""

    rounds, limit, quantizes = "weights and y to float16", 4 * TO_FLOAT16, False

    def __init__(self, torch, stream):
        self.torch, self.stream, self.version = torch, stream, f"PyTorch {torch.__version__}"

    def weight_bytes(self, matrix):
        return 2 * matrix.m * matrix.k

    def copies(self, matrix):
        if not hasattr(matrix, "float16"):
            first = matrix.rows(0, matrix.m, self.torch.float16)
            matrix.float16 = [first] + [first.clone() for _ in range(copy_count(self.weight_bytes(matrix)) - 1)]
        return matrix.float16

    def timer(self, weights, matrix, x):
        x = x.half()
        return InGraph(self.torch, self.stream, lambda one: self.torch.matmul(x, one.T), weights)


class Int4Pack:
    """PyTorch's _weight_int4pack_mm, whose zeros are 0: its 8 is that of q4_0."""

    rounds, limit, quantizes = "scales, weights and y to bfloat16", 2 * TO_BFLOAT16, False
    INNER_K_TILES = 8

    def __init__(self, torch, stream):
        if not hasattr(torch.ops.aten, "_weight_int4pack_mm"):
            raise Missing(f"PyTorch {torch.__version__} has no _weight_int4pack_mm: pip install torch")
        self.torch, self.stream, self.version = torch, stream, f"PyTorch {torch.__version__}"

    def weight_bytes(self, matrix):
        return matrix.m * matrix.k // BLOCK * (BLOCK // 2 + 4)

    def copies(self, matrix):
        if not hasattr(matrix, "int4pack"):
            torch, numbers = self.torch, matrix.numbers
            pairs = numbers[:, ::2] << 4 | numbers[:, 1::2]
            packed = torch.ops.aten._convert_weight_to_int4pack(pairs.contiguous(), self.INNER_K_TILES)
            scales = matrix.scales.T.bfloat16()
            scales = torch.stack([scales, torch.zeros_like(scales)], dim=2).contiguous()
            more = range(copy_count(self.weight_bytes(matrix)) - 1)
            matrix.int4pack = [(packed, scales)] + [(packed.clone(), scales.clone()) for _ in more]
        return matrix.int4pack

    def timer(self, weights, matrix, x):
        x = x.bfloat16()

        def launch(one):
            packed, scales = one
            return self.torch.ops.aten._weight_int4pack_mm(x, packed, BLOCK, scales)

        return InGraph(self.torch, self.stream, launch, weights)


class GgmlTimer:
    """ggml times its own graphs."""

    def __init__(self, torch, product, copies, device):
        self.torch, self.product, self.copies, self.device = torch, product, copies, device
        product.warm_up()

    def time(self):
        return self.product.microseconds()

    def results(self):
        self.product.forget()
        self.product.run()
        return [self.torch.from_numpy(self.product.get(which)).to(self.device) for which in (0, -1)]

    def close(self):
        self.product.close()


class LlamaCpp:
    """llama.cpp's mul_mat of a tensor of q4_0 and float32 columns."""

    rounds, limit, quantizes = "x to 8 bits", TO_8_BITS, False

    def __init__(self, torch, folder=None, kind="cuda"):
        self.torch = torch
        try:
            self.backend = ggml.Backend(folder or ggml.folder_of_package(), kind)
        except ggml.NotThere as error:
            raise Missing(str(error))
        package = "" if folder else version_of("llama-cpp-python")
        self.version = self.backend.version + (f", llama-cpp-python {package}" if package else "")

    def weight_bytes(self, matrix):
        return matrix.m * matrix.k // BLOCK * ggml.BYTES_OF_BLOCK

    def copies(self, matrix):
        if not hasattr(matrix, "ggml"):
            blocks = matrix.blocks().cpu().numpy().reshape(-1)
            matrix.ggml = ggml.Weights(self.backend, blocks, matrix.m, matrix.k, copy_count(blocks.size))
        return matrix.ggml.tensors

    def timer(self, weights, matrix, x):
        product = ggml.Product(matrix.ggml, x.cpu().numpy(), len(weights))
        return GgmlTimer(self.torch, product, len(weights), x.device)


def build_library():
    """bench/abi/q4_gemm for this GPU."""
    command = [*kernel_library.compiler("cuda"), "-t", "0"]
    return kernel_library.build_folder(
        ladders.ROOT / "bench/abi/q4_gemm", ladders.ROOT / "build/peers/libq4_gemm.so", command
    )


PEERS = {
    "llama_cpp": lambda torch, stream, folder: LlamaCpp(torch, folder),
    "int4pack": lambda torch, stream, folder: Int4Pack(torch, stream),
    "cublas": lambda torch, stream, folder: Cublas(torch, stream),
}
OURS = {
    "ours": {"dtype": "float32"},
    "ours_bf16": {"dtype": "bfloat16"},
    "ours_plain": {"dtype": "float32", "dependent": False},
    "ours_invariant": {"dtype": "float32", "invariant": True},
    "ours_rounded": {"dtype": "float32", "rounded": True},
    "ours_rounded_bf16": {"dtype": "bfloat16", "rounded": True},
}
