"""Who is timed, and how each is called. PyTorch and the peers are imported only when a competitor is made.

A competitor has .forward(x, weight, y) -> y and .residual(x, r, weight, y, s) -> (y, s), where x and r are rows × cols
and y and s are outputs of the pool that it may use or leave; what it returns holds the result. One that has gradients
has .backward(dy, x, weight, rstd, dx, dweight) -> (dx, dweight), with rstd of rows × 1 in float32. One that quantizes
has .step(x, weight, dy) -> ((y, dx), dweight), forward and backward through autograd. One of norms that end in 8 bits
has .quantized(form, entry, weight) -> (q, scales, s, y), with a Form and a graph_timing.QuantizedEntry. It works on
PyTorch's current stream. in_place says that residual() overwrites x and r, backward_in_place that backward() overwrites
dy. Making one raises Missing where it is not installed;
a call raises whatever the library raises where it refuses a shape or a type.
"""

import ctypes
import dataclasses
import importlib
import importlib.metadata
import shutil
import tempfile

from ladder.core import machine

EPS = 1e-6
DTYPE_CODES = {"float32": 0, "float16": 1, "bfloat16": 2}


@dataclasses.dataclass(frozen=True)
class Form:
    """What a norm ends in: codes of this type, one scale for the tensor ("tensor", which is given), for each row ("row")
    or for each 128 columns ("block"). One that keeps the norm stores it in x's type, too."""

    code: str = "float8_e4m3fn"
    scaling: str = "row"
    adds: bool = False
    keeps_norm: bool = False

    @property
    def largest(self):
        return 127.0 if self.code == "int8" else 448.0

    @property
    def least_scale(self):
        return 2.0**-23 if self.code == "int8" else 1 / (512 * 448)


FORMS = {
    "fp8_static": Form(scaling="tensor"),
    "fp8_token": Form(),
    "fp8_block": Form(scaling="block"),
    "int8_token": Form(code="int8"),
    "add_fp8_token": Form(adds=True),
    "add_fp8_static": Form(scaling="tensor", adds=True),
    "add_fp8_block": Form(scaling="block", adds=True, keeps_norm=True),
}
BLOCK = 128


class Missing(Exception):
    """Why a competitor cannot take part at all."""


def import_peer(module, package):
    """The module; Missing where its package is not installed or cannot be imported."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name and error.name.split(".")[0] == module.split(".")[0]:
            raise Missing(f"not installed: pip install {package}")
        raise Missing(f"its import needs the module {error.name}")
    except Exception as error:  # a peer's import may fail in any way, and the others go on
        raise Missing(f"its import fails: {first_line(error)}")


def first_line(error):
    lines = [line.strip() for line in machine.without_colours(str(error)).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0] if lines else 'no message'}"[:200]


def version_of(package):
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""


class Options(ctypes.Structure):
    """rms_norm_options of bench/abi/rms_norm/c_abi.h."""

    _fields_ = [
        ("eps", ctypes.c_float),
        ("weight_offset", ctypes.c_float),
        ("llama_rounding", ctypes.c_int32),
        ("dependent_launch", ctypes.c_int32),
        ("workspace", ctypes.c_void_p),
        ("cache", ctypes.c_int32),
        ("batch_invariant", ctypes.c_int32),
    ]


class Quantization(ctypes.Structure):
    """rms_norm_quantization of bench/abi/rms_norm/c_abi.h."""

    _fields_ = [
        ("scale", ctypes.c_void_p),
        ("scales", ctypes.c_void_p),
        ("block", ctypes.c_int64),
        ("column_major", ctypes.c_int32),
        ("pitch", ctypes.c_int64),
        ("upper_bound", ctypes.c_void_p),
    ]


def made(makers, say):
    """{name: competitor, or the Missing that says why there is none}, from {name: what makes it}. One that cannot be made
    is said by say(name, why), and the others go on."""
    found = {}
    for name, make in makers.items():
        try:
            found[name] = make()
        except Exception as error:
            found[name] = error if isinstance(error, Missing) else Missing(first_line(error))
            say(name, found[name])
    return found


def library(path):
    """bench/abi/rms_norm/c_abi.cu's functions, with the types of their arguments."""
    lib = ctypes.CDLL(str(path))
    pointer, integer, count = ctypes.c_void_p, ctypes.c_int, ctypes.c_int64
    last = [count, count, ctypes.POINTER(Options), pointer]
    # x, residual, residual_out and y each have a layout after them; None is contiguous.
    lib.rms_norm_forward.argtypes = [integer, integer, *[pointer] * 5, *last]
    lib.rms_norm_fused_add.argtypes = [integer, integer, *[pointer] * 9, *last]
    lib.rms_norm_backward.argtypes = [integer, integer, *[pointer] * 8, *last]
    lib.rms_norm_quantized.argtypes = [integer, integer, *[pointer] * 5, ctypes.POINTER(Quantization), pointer, *last]
    lib.rms_norm_backward_workspace_bytes.argtypes = [count, count]
    lib.rms_norm_backward_workspace_bytes.restype = ctypes.c_size_t
    lib.rms_norm_workspace_bytes.argtypes, lib.rms_norm_workspace_bytes.restype = [], ctypes.c_size_t
    lib.rms_norm_copy.argtypes = [pointer, pointer, count, pointer]
    lib.rms_norm_error.argtypes, lib.rms_norm_error.restype = [integer], ctypes.c_char_p
    return lib


def loaded_again(lib):
    """The same library once more, with its code at another address: a copy of its file."""
    with tempfile.TemporaryDirectory() as folder:
        return library(shutil.copy(lib._name, folder))


def checked(lib, error):
    if error:
        raise RuntimeError(f"CUDA error {error}: {lib.rms_norm_error(error).decode()}")


class Ours:
    """include/rms_norm/rms_norm.cuh through its C ABI."""

    in_place = False

    def __init__(self, torch, lib, dependent_launch=False, batch_invariant=False):
        if dependent_launch and torch.cuda.get_device_capability() < (9, 0):
            raise Missing("programmatic dependent launch needs compute capability 9.0 or higher")
        self.torch, self.lib, self.version = torch, lib, ""
        self.gradient_workspaces = {}
        self.workspace = torch.zeros(lib.rms_norm_workspace_bytes(), dtype=torch.uint8, device="cuda")
        self.options = Options(EPS, 0.0, 0, int(dependent_launch), self.workspace.data_ptr(), 0, int(batch_invariant))

    def arguments(self, x, weight):
        """The type codes, and what stands last."""
        code = DTYPE_CODES[str(x.dtype).rpartition(".")[2]]
        weight_code = code if weight is None else DTYPE_CODES[str(weight.dtype).rpartition(".")[2]]
        stream = self.torch.cuda.current_stream().cuda_stream
        return (code, weight_code), (*x.shape, ctypes.byref(self.options), stream)

    def forward(self, x, weight, y):
        types, last = self.arguments(x, weight)
        w = None if weight is None else weight.data_ptr()
        checked(self.lib, self.lib.rms_norm_forward(*types, x.data_ptr(), None, w, y.data_ptr(), None, *last))
        return y

    def residual(self, x, r, weight, y, s):
        types, last = self.arguments(x, weight)
        w = None if weight is None else weight.data_ptr()
        pointers = (x.data_ptr(), None, r.data_ptr(), None, s.data_ptr(), None, w, y.data_ptr(), None)
        checked(self.lib, self.lib.rms_norm_fused_add(*types, *pointers, *last))
        return y, s

    def backward(self, dy, x, weight, rstd, dx, dweight, stored=False):
        types, last = self.arguments(x, weight)
        if x.shape not in self.gradient_workspaces:
            size = self.lib.rms_norm_backward_workspace_bytes(*x.shape)
            self.gradient_workspaces = {x.shape: self.torch.empty(size, dtype=self.torch.uint8, device="cuda")}
        tensors = dy, None, x, rstd if stored else None, weight, dx, dweight
        pointers = [None if tensor is None else tensor.data_ptr() for tensor in tensors]
        workspace = self.gradient_workspaces[x.shape].data_ptr()
        checked(self.lib, self.lib.rms_norm_backward(*types, *pointers, workspace, *last))
        return dx, dweight

    def quantized(self, form, e, weight):
        (code, _), last = self.arguments(e.x, weight)
        pointers = [None if tensor is None else tensor.data_ptr() for tensor in (e.x, e.r, e.s, weight, e.q)]
        how = Quantization(block=BLOCK if form.scaling == "block" else 0)
        if form.scaling == "tensor":
            how.scale = e.scale.data_ptr()
        else:
            how.scales = e.scales.data_ptr()
        kind, y = int(form.code == "int8"), None if e.y is None else e.y.data_ptr()
        checked(self.lib, self.lib.rms_norm_quantized(code, kind, *pointers, ctypes.byref(how), y, *last))
        return e.q, e.scales, e.s, e.y


class OursWithRstd(Ours):
    """The gradients alone, with the rstd that a forward pass stores."""

    forward = residual = quantized = None

    def backward(self, *tensors):
        return super().backward(*tensors, stored=True)


def through_autograd(torch, norm, x, weight, dy):
    """((y, dx), dweight) of norm(x, weight), as a training step gets them."""
    with torch.enable_grad():
        leaves = [None if tensor is None else tensor.detach().requires_grad_() for tensor in (x, weight)]
        y = norm(*leaves)
        dx, *dweight = torch.autograd.grad(y, [leaf for leaf in leaves if leaf is not None], dy)
    return (y.detach(), dx), dweight[0] if dweight else None


class Package:
    """The header as autograd calls it: rms_norm.torch of python/."""

    def __init__(self, torch):
        self.torch, self.rms_norm = torch, import_peer("rms_norm.torch", "./python").rms_norm
        self.version = version_of("rms_norm_ladder")

    def step(self, x, weight, dy):
        return through_autograd(self.torch, lambda x, weight: self.rms_norm(x, weight, EPS), x, weight, dy)


class Torch:
    """torch.nn.functional.rms_norm, eager or compiled anew for each shape."""

    in_place = False

    def __init__(self, torch, compiled=False, mode=None):
        self.torch, self.compiled, self.mode = torch, compiled, mode
        self.version = torch.__version__
        self.functions = {}

    def call(self, name, x, *arguments):
        return self.run(getattr(self, f"plain_{name}"), (name, arguments[-1] is None), x, *arguments)

    def run(self, function, about, x, *arguments):
        if not self.compiled:
            return function(x, *arguments)
        key = (about, x.shape, x.dtype)
        if key not in self.functions:
            self.functions.clear()
            self.torch.compiler.reset()
            self.functions[key] = self.torch.compile(function, dynamic=False, mode=self.mode)
        return self.functions[key](x, *arguments)

    def plain_forward(self, x, weight):
        return self.torch.nn.functional.rms_norm(x, x.shape[-1:], weight, EPS)

    def plain_residual(self, x, r, weight):
        s = x + r
        return self.torch.nn.functional.rms_norm(s, s.shape[-1:], weight, EPS), s

    def plain_backward(self, dy, x, rstd, weight):
        """PyTorch's own kernels; compiled, the formula, of which PyTorch makes kernels."""
        if not self.compiled:
            mask = [True, weight is not None]
            return self.torch.ops.aten._fused_rms_norm_backward(dy, x, [x.shape[-1]], rstd, weight, mask)
        g = dy.float() if weight is None else dy.float() * weight.float()
        normalized = x.float() * rstd
        dx = rstd * (g - normalized * (g * normalized).mean(dim=-1, keepdim=True))
        dweight = None if weight is None else (dy.float() * normalized).sum(dim=0).to(weight.dtype)
        return dx.to(x.dtype), dweight

    def backward(self, dy, x, weight, rstd, dx, dweight):
        return self.call("backward", dy, x, rstd, weight)

    def plain_step(self, x, weight):
        return self.plain_forward(x, weight)

    def step(self, x, weight, dy):
        return through_autograd(self.torch, lambda x, weight: self.call("step", x, weight), x, weight, dy)

    def forward(self, x, weight, y):
        return self.call("forward", x, weight)

    def residual(self, x, r, weight, y, s):
        return self.call("residual", x, r, weight)

    def quantized(self, form, e, weight):
        def plain(x, r, weight, scale):
            s = None if r is None else x + r
            y = self.plain_forward(x if r is None else s, weight)
            return (*self.quantize(form, y, scale), s, y if form.keeps_norm else None)

        return self.run(plain, form, e.x, e.r, weight, e.scale)

    def quantize(self, form, y, scale):
        """(q, scales) of the norm, as one writes it in PyTorch."""
        torch, y = self.torch, y.float()
        blocks = y.view(len(y), -1, BLOCK if form.scaling == "block" else y.shape[-1])
        if form.scaling != "tensor":
            scale = (blocks.abs().amax(dim=-1, keepdim=True) / form.largest).clamp(min=form.least_scale)
        q = blocks * scale.reciprocal()
        if form.code == "int8":
            q = q.round().clamp(-128, 127).to(torch.int8)
        else:
            q = q.clamp(-form.largest, form.largest).to(getattr(torch, form.code))
        return q.view(y.shape), None if form.scaling == "tensor" else scale.squeeze(-1)


class Apart(Torch):
    """The norm by the production header, and the quantization of what it wrote by torch.compile: two kernels."""

    def __init__(self, torch, ours):
        super().__init__(torch, compiled=True)
        self.ours = ours

    forward = residual = backward = None

    def quantized(self, form, e, weight):
        y = self.torch.empty_like(e.x)
        if form.adds:
            self.ours.residual(e.x, e.r, weight, y, e.s)
        else:
            self.ours.forward(e.x, weight, y)

        def quantize(y, scale):
            return self.quantize(form, y, scale)

        return (*self.run(quantize, form, y, e.scale), e.s, y)


class Liger:
    """Liger's Triton kernels, with its defaults: casting_mode "llama", and dx written over dy."""

    in_place, backward_in_place = False, True

    def __init__(self, torch):
        module = import_peer("liger_kernel.ops.rms_norm", "liger-kernel")
        self.torch, self.norm, self.module = torch, module.LigerRMSNormFunction, module
        self.add_norm = import_peer("liger_kernel.ops.fused_add_rms_norm", "liger-kernel").LigerFusedAddRMSNormFunction
        self.version = version_of("liger_kernel")

    def forward(self, x, weight, y):
        return self.norm.apply(x, weight, EPS, 0.0, "llama", False)

    def residual(self, x, r, weight, y, s):
        y, s = self.add_norm.apply(x, r, weight, EPS, 0.0, "llama", False)
        return y, s

    def backward(self, dy, x, weight, rstd, dx, dweight):
        block, warps = self.module.calculate_settings(x.shape[-1])
        mode = self.module._CASTING_MODE_LLAMA.value
        return self.module.rms_norm_backward(dy, x, weight, rstd.view(-1), 0.0, mode, block, warps, True, None)[:2]

    def step(self, x, weight, dy):
        def norm(x, weight):
            return self.norm.apply(x, weight, EPS, 0.0, "llama", True)

        return through_autograd(self.torch, norm, x, weight, dy)


class FlashInfer:
    """FlashInfer with its defaults: dependent launch where the GPU has it; the residual form is in place only.
    Its kernels are written in CuTe DSL; the older ones, in CUDA C++, are compiled at the first call."""

    in_place = True

    def __init__(self, torch, cuda=False):
        self.torch = torch
        norm = import_peer("flashinfer.norm", "flashinfer-python")
        self.version = version_of("flashinfer-python")
        only_cuda = getattr(norm, "_USE_CUDA_NORM", True)
        if cuda and only_cuda:
            raise Missing("FlashInfer's own column has its CUDA C++ kernels, since its CuTe DSL ones are not there")
        if only_cuda:
            self.version += ", CUDA C++"
        if cuda:
            module = norm.get_norm_module()
            dependent = torch.cuda.get_device_capability() >= (9, 0)
            self.run = lambda x, weight, y: module.rmsnorm(y, x, weight, EPS, dependent)
            self.run_add = lambda x, r, weight: module.fused_add_rmsnorm(x, r, weight, EPS, dependent)
            self.run_quantized = lambda q, x, weight, scale: module.rmsnorm_quant(q, x, weight, scale, EPS, dependent)
            self.run_add_quantized = lambda *tensors: module.fused_add_rmsnorm_quant(*tensors, EPS, dependent)
        else:
            self.run = lambda x, weight, y: norm.rmsnorm(x, weight, eps=EPS, out=y)
            self.run_add = lambda x, r, weight: norm.fused_add_rmsnorm(x, r, weight, eps=EPS)
            self.run_quantized = lambda q, x, weight, scale: norm.rmsnorm_quant(q, x, weight, scale, EPS)
            self.run_add_quantized = lambda *tensors: norm.fused_add_rmsnorm_quant(*tensors, EPS)
        self.run_add_block = getattr(norm, "fused_add_rmsnorm_fp8_block_quant", None)  # in CUDA C++ only
        self.ones = {}

    def weight_of(self, x, weight):
        """It has no form without a weight: ones stand for none."""
        if weight is not None:
            return weight
        key = (x.shape[-1], x.dtype)
        if key not in self.ones:
            self.ones = {key: self.torch.ones(x.shape[-1], dtype=x.dtype, device=x.device)}
        return self.ones[key]

    def forward(self, x, weight, y):
        self.run(x, self.weight_of(x, weight), y)
        return y

    def residual(self, x, r, weight, y, s):
        self.run_add(x, r, self.weight_of(x, weight))
        return x, r

    def quantized(self, form, e, weight):
        weight = self.weight_of(e.x, weight)
        if form.scaling == "block" and form.keeps_norm:
            scales = e.scales.new_empty(e.scales.shape[1], -(-len(e.x) // 4) * 4)
            self.run_add_block(e.q, scales, e.y, e.x, e.r, weight, EPS)
            return e.q, scales.T[: len(e.x)], e.r, e.y
        if form.scaling != "tensor":
            raise NotImplementedError("FlashInfer has no norm that ends in such numbers")
        if form.adds:
            self.run_add_quantized(e.q, e.x, e.r, weight, e.scale)
            return e.q, e.scales, e.r, e.y
        self.run_quantized(e.q, e.x, weight, e.scale)
        return e.q, e.scales, e.s, e.y


class Quack:
    """QuACK's CuTe DSL kernels."""

    in_place = False

    def __init__(self, torch):
        self.torch, self.rmsnorm = torch, import_peer("quack", "quack-kernels").rmsnorm
        self.gradients = import_peer("quack.rmsnorm", "quack-kernels").rmsnorm_bwd
        self.version = version_of("quack-kernels")

    def forward(self, x, weight, y):
        return self.rmsnorm(x, weight, eps=EPS)

    def residual(self, x, r, weight, y, s):
        y, s = self.rmsnorm(x, weight, residual=r, eps=EPS, prenorm=True)
        return y, s

    def backward(self, dy, x, weight, rstd, dx, dweight):
        return self.gradients(x, weight, dy, rstd.view(-1))[:2]

    def step(self, x, weight, dy):
        return through_autograd(self.torch, lambda x, weight: self.rmsnorm(x, weight, eps=EPS), x, weight, dy)


class Vllm:
    """vLLM's kernels; those with a residual are in place only."""

    in_place = True

    def __init__(self, torch):
        import_peer("vllm._custom_ops", "vllm")
        self.operators = torch.ops._C
        self.version = version_of("vllm")

    def forward(self, x, weight, y):
        self.operators.rms_norm(y, x, weight, EPS)
        return y

    def residual(self, x, r, weight, y, s):
        self.operators.fused_add_rms_norm(x, r, weight, EPS)
        return x, r

    def quantized(self, form, e, weight):
        if form.keeps_norm:
            raise NotImplementedError("vLLM's norms that end in 8 bits do not store the norm")
        if form.scaling == "tensor" and form.adds:
            self.operators.fused_add_rms_norm_static_fp8_quant(e.q, e.x, e.r, weight, e.scale, EPS)
        elif form.scaling == "tensor":
            self.operators.rms_norm_static_fp8_quant(e.q, e.x, weight, e.scale, EPS)
        elif form.scaling == "row":
            self.operators.rms_norm_dynamic_per_token_quant(e.q, e.x, weight, e.scales, EPS, None, e.r)
        else:
            self.operators.rms_norm_per_block_quant(e.q, e.x, weight, e.scales, EPS, None, e.r, BLOCK, False)
        return e.q, e.scales, e.r, None


PEERS = {
    "torch_eager": Torch,
    "torch_compile": lambda torch: Torch(torch, compiled=True),
    "liger": Liger,
    "flashinfer": FlashInfer,
    "flashinfer_cuda": lambda torch: FlashInfer(torch, cuda=True),
    "quack": Quack,
    "vllm": Vllm,
    "torch_compile_max": lambda torch: Torch(torch, compiled=True, mode="max-autotune-no-cudagraphs"),
}
BY_DEFAULT = [name for name in PEERS if name != "torch_compile_max"]
