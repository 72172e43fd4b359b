"""The norm of a layer and a product, ways to launch them: RMSNorm with a residual, x and residual bfloat16.

    fused               the norm that quantizes, and the product: q4_gemm::add_rms_norm_quantize, multiply
    two                 the norm, and the product, which quantizes: rms_norm::fused_add_rms_norm, multiply
    apart               the norm, the quantization and the product: rms_norm::fused_add_rms_norm, quantize, multiply

With dependent launches, or with _plain at the end with plain ones. y is bfloat16. A module of gemm_peers.py, no command.
"""

from bench.gemm.gemm_competitors import QUANTIZED, TO_8_BITS, TO_BFLOAT16, InGraph
from bench.gemm.gemm_contest import Contest
from bench.gemm.gemm_tables import NORM
from bench.norm import competitors, peers
from bench.norm.competitors import DTYPE_CODES, EPS

CODE = DTYPE_CODES["bfloat16"]
WAYS = ["fused", "fused_plain", "two", "apart", "apart_plain"]


def build_library():
    import torch

    return peers.build_library(torch)


class Input:
    """x, the residual and the norm's weight, and what a launch writes besides y."""

    def __init__(self, library, n, k):
        torch = self.torch = library.torch
        self.x, self.residual = (torch.randn(n, k, device="cuda").bfloat16() for _ in range(2))
        self.weight = (1 + torch.randn(k, device="cuda") / 4).bfloat16()
        self.sum, self.normed = torch.empty_like(self.x), torch.empty_like(self.x)
        self.quantized = library.bytes("quantized", n, k)

    def exact_sum(self):
        return (self.x.float() + self.residual.float()).bfloat16()

    def exact_norm(self):
        """In float64, of the rounded sum."""
        total = self.exact_sum().double()
        return total * self.torch.rsqrt(total.square().mean(dim=1, keepdim=True) + EPS) * self.weight.double()


class Way:
    """One of the ways, as a competitor of bench/gemm/gemm_contest.py."""

    quantizes, limit, version = False, TO_8_BITS + TO_BFLOAT16, ""

    def __init__(self, library, norms, name):
        self.library, self.torch = library, library.torch
        way, _, plain = name.partition("_")
        self.way, self.dependent = way, not plain
        if self.dependent and library.torch.cuda.get_device_capability() < (9, 0):
            raise competitors.Missing("programmatic dependent launch needs compute capability 9.0 or higher")
        self.norms = competitors.Ours(library.torch, norms, self.dependent)

    def copies(self, matrix):
        return self.library.repacked(matrix)

    def weight_bytes(self, matrix):
        return self.copies(matrix)[0].numel()

    def norm(self, given):
        """(the code of its type, what the product then reads)."""
        library, lib, shape, stream = self.library, self.library.lib, given.x.shape, self.library.current()
        numbers = given.quantized.data_ptr()
        if self.way == "fused":
            tensors = given.x, given.residual, given.sum, given.weight
            pointers = [tensor.data_ptr() for tensor in tensors]
            last = numbers, *shape, EPS, self.dependent, stream
            library.check(lib.q4_gemm_rms_norm_quantize(CODE, *pointers, *last))
            return QUANTIZED, given.quantized
        self.norms.residual(given.x, given.residual, given.weight, given.normed, given.sum)
        if self.way == "two":
            return CODE, given.normed
        normed = given.normed.data_ptr()
        library.check(lib.q4_gemm_quantize(CODE, normed, numbers, *shape, self.dependent, stream))
        return QUANTIZED, given.quantized

    def timer(self, weights, matrix, given):
        shape = matrix.m, len(given.x), matrix.k
        workspace = self.library.bytes("workspace", *shape)

        def launch(one):
            y = self.torch.empty(shape[1], shape[0], dtype=self.torch.bfloat16, device="cuda")
            x_code, x = self.norm(given)
            return self.library.multiply(shape, one, x_code, x, CODE, y, self.dependent, False, workspace)

        return InGraph(self.torch, self.library.stream, launch, weights)


def makers(library, norms):
    return {name: lambda name=name: Way(library, norms, name) for name in WAYS}


class Norms(Contest):
    def __init__(self, gpu, loaded, matrix, n, given):
        super().__init__(gpu, NORM, loaded, matrix, n, given)
        library = next(way.library for way in loaded.values() if isinstance(way, Way))
        self.x = Input(library, n, matrix.k)
        self.expected = {False: matrix.times(self.x.exact_norm())}

    def check(self, key, timer):
        """The sum too, whose bits are known."""
        self.x.sum.fill_(float("nan"))
        if not super().check(key, timer):
            return False
        if not self.torch.equal(self.x.sum, self.x.exact_sum()):
            self.note(key, "wrong", "the sum of x and the residual is wrong")
            return False
        return True
