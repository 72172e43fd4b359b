"""The array libraries: how each allocates a result, and how its arrays come to the kernels."""

import contextlib
import math
import pathlib
from typing import Any, Dict, Optional

import tvm_ffi

from . import _build, _options

# Beside what the build wrote: an editable install has the sources elsewhere.
_module = tvm_ffi.load_module(str(pathlib.Path(_build.__file__).with_name("_rms_norm.so")))
_PARTS = {  # what RMS_NORM_PARTS may leave out
    "gradients": "gradients",
    "rope": "rotary embedding",
    "quantized": "norms that end in 8 bits",
    "q4": "products with weights of 4 bits",
    "all_reduce": "all-reduce between GPUs",
}


BUILT = _build.PARTS.split(";")


def _function(name, part="norm"):
    """A function of the library; if its part was not built, one that says so."""
    if part in BUILT:
        return _module.get_function(name)

    def refuse(*arguments):
        raise NotImplementedError(
            f"this build of rms_norm has no {_PARTS[part]}: install it with RMS_NORM_PARTS=all, or with {part} among "
            "the parts that RMS_NORM_PARTS names"
        )

    return refuse


kernel = _function("norm")
_kernel_of_numpy = _function("norm_of_numpy")  # bits that are unsigned integers of 16 bits are bfloat16
_synchronize = _function("synchronize")
qk_norm_rope = _function("qk_norm_rope", "rope")
_qk_norm_rope_of_numpy = _function("qk_norm_rope_of_numpy", "rope")
_quantized = _function("quantized", "quantized")
_quantized_of_numpy = _function("quantized_of_numpy", "quantized")
norm_with_rstd = _function("norm_with_rstd", "gradients")
backward = _function("backward", "gradients")
backward_workspace_bytes = _function("backward_workspace_bytes", "gradients")
register_operators = _function("register_operators")
_names = ("all_reduce", "all_reduce_region_bytes", "all_reduce_region_head") if _build.BACKEND == "cuda" else ()
of_gpus: Dict[str, Any] = {
    name: _function(name, "all_reduce") for name in _names
}  # ranks of the CPU device share a process
q4 = {
    name: _function(f"q4_{name}", "q4")
    for name in ("repack", "multiply", "quantize", "norm", "packed_size", "workspace_size")
}


REFUSALS = BufferError, RuntimeError, TypeError  # what kernel() raises that explained() knows
NAMES = "x", "residual", "residual_out", "weight", "out"
NAMES_OF_QUANTIZED = "x", "residual", "residual_out", "weight", "out", "y", "scale", "scales", "upper_bound"
CODES = "float8_e4m3fn", "float8_e5m2", "int8"
NAMES_OF_ROPE = "qkv", "q_weight", "k_weight", "cos_sin", "positions"


def norm(x, residual, residual_out, weight, out, options, names=None, call=kernel):
    """The norm of arrays that DLPack can hand over. Names are what sentences call them, if not NAMES."""
    try:
        call(x, residual, residual_out, weight, out, *options.numbers, names)
    except REFUSALS as refused:
        raise explained(refused, (x, residual, residual_out, weight, out), names) from None


def rope(arrays, numbers, call=qk_norm_rope):
    """The norm and the rotation of heads. The arrays are those of NAMES_OF_ROPE."""
    try:
        call(*arrays, *numbers)
    except REFUSALS as refused:
        raise explained(refused, arrays, NAMES_OF_ROPE) from None


def quantized(arrays, code, block, options, call=_quantized):
    """The norm that ends in 8 bits. The arrays are those of NAMES_OF_QUANTIZED, and out has bytes."""
    try:
        call(*arrays, CODES.index(code), block, *options.numbers)
    except REFUSALS as refused:
        raise explained(refused, arrays, NAMES_OF_QUANTIZED) from None


def name_of_code(dtype):
    """The name of what a number of 8 bits is, given by name or as a library's type."""
    name = dtype if isinstance(dtype, str) else str(getattr(dtype, "name", None) or getattr(dtype, "__name__", dtype))
    name = name.rpartition(".")[2]
    if name not in CODES:
        raise ValueError(f"dtype is {dtype!r}; float8_e4m3fn, float8_e5m2 and int8 are known")
    return name


def check_arrays(arrays, names, needed):
    """Refuses what has no shape, and None where an array is needed."""
    for name, array in zip(names, arrays):
        if not (hasattr(array, "shape") or array is None and name not in needed):
            raise TypeError(f"{name} is {array!r}, which is not an array")


def check_quantized(arrays, block):
    """Refuses shapes that do not fit, also those of arrays without memory."""
    check_arrays(arrays, NAMES_OF_QUANTIZED, ("x", "out"))
    x, residual, residual_out, weight, out, y, scale, scales, upper_bound = arrays
    if not isinstance(block, int) or block not in (0, 64, 128):
        raise ValueError(f"block is {block!r}; 0, 64 and 128 are known")
    if not x.shape:
        raise ValueError("x has no dimension; the last one is normalized")
    shape, cols = tuple(x.shape), x.shape[-1]
    for name, array in (("residual", residual), ("residual_out", residual_out), ("out", out), ("y", y)):
        if array is not None and tuple(array.shape) != shape:
            raise ValueError(f"{name} has the shape {tuple(array.shape)}; {shape} is wanted")
    if weight is not None and tuple(weight.shape) != (cols,):
        raise ValueError(f"weight has the shape {tuple(weight.shape)}; {(cols,)} is wanted")
    if (scale is None) == (scales is None):
        raise ValueError("scale or scales is to be given, and not both")
    if scales is not None:
        rows, blocks = math.prod(shape[:-1]), -(-cols // block) if block else 1
        if tuple(scales.shape) not in ((*shape[:-1], blocks), (rows, blocks)):
            raise ValueError(f"scales has the shape {tuple(scales.shape)}; {(*shape[:-1], blocks)} is wanted")


def check_rope(arrays, q_heads, kv_heads, head_dim):
    """Refuses shapes that do not fit, also those of arrays without memory."""
    check_arrays(arrays, NAMES_OF_ROPE, ("qkv", "cos_sin", "positions"))
    qkv, q_weight, k_weight, cos_sin, positions = arrays
    shape = tuple(qkv.shape)
    if not shape or shape[-1] < (q_heads + kv_heads) * head_dim:
        heads = f"{q_heads} query and {kv_heads} key heads of {head_dim}"
        raise ValueError(f"qkv has the shape {shape}; its last dimension is too short for {heads}")
    for name, weight in (("q_weight", q_weight), ("k_weight", k_weight)):
        if weight is not None and tuple(weight.shape) != (head_dim,):
            raise ValueError(f"{name} has the shape {tuple(weight.shape)}; ({head_dim},) is wanted")
    if len(cos_sin.shape) != 2:
        raise ValueError(f"cos_sin has the shape {tuple(cos_sin.shape)}; (max_positions, rotary_dim) is wanted")
    if tuple(positions.shape) != shape[:-1]:
        raise ValueError(
            f"positions has the shape {tuple(positions.shape)}; {shape[:-1]}, that of the tokens, is wanted"
        )


def explained(refused, arrays, names=None):
    """The error to raise instead of one that kernel() raised."""
    for name, array in zip(names or NAMES, arrays):
        if array is not None and not hasattr(array, "__dlpack__"):
            return TypeError(f"{name} is {array!r}, which is not an array")
    if isinstance(refused, TypeError):
        return refused
    for name, array in zip(names or NAMES, arrays):
        try:
            if array is not None:
                tvm_ffi.from_dlpack(array.detach() if hasattr(array, "detach") else array)
        except Exception as error:  # as PyTorch raises for tensors without memory of their own
            first_line = str(error).partition("\n")[0]
            return ValueError(f"{name} cannot be handed over without a copy: {first_line}")
    return refused


class Library:
    """Any library whose arrays have __dlpack__. Its results cannot be allocated."""

    name = "this library"
    immutable = False
    bfloat16_is_bits = False  # see NumPy

    def empty_like(self, x):
        raise TypeError(f"a {type(x).__name__} cannot be allocated here; give out=, an array for the result")

    def new(self, x, shape, dtype=None):
        """A new array where x lies; of bytes, if no type is given."""
        raise TypeError(f"{self.name}'s arrays cannot be allocated here; PyTorch's, CuPy's and NumPy's can")

    def on_stream(self, x):
        """For as long as it lasts, kernels go to the stream that the library uses where x lies."""
        return contextlib.nullcontext()

    def given(self, name, array, written=False):
        """What is handed over for an array."""
        return array

    def heads(self, x, begin, end, head_dim):
        """Elements begin to end of each row, as heads: shape (..., heads, head_dim). Not a copy."""
        return x[..., begin:end].reshape(*x.shape[:-1], (end - begin) // head_dim, head_dim)

    def norm(self, x, residual, residual_out, weight, out, options, names=None):
        norm(x, residual, residual_out, weight, out, options, names)

    def rope(self, arrays, numbers, options):
        """As rope(), of the numbers that are no options."""
        rope(arrays, (*numbers, *options.of_rope))

    def codes(self, x, code):
        """A new array of the shape of x for numbers of 8 bits."""
        raise TypeError(f"{self.name}'s arrays cannot be allocated here; give out=, an array for the result")

    def scales(self, x, shape):
        """A new array of float32."""
        raise TypeError(f"{self.name}'s arrays cannot be allocated here; give scales=, an array for the scales")

    def float32_beside(self, x, array):
        """The array in float32 where x lies; a copy only if it has another type or lies elsewhere."""
        return array

    def quantized(self, arrays, code, block, options):
        """As quantized(); out has the library's type of these numbers. Returns out."""
        *before, out, y, scale, scales, upper_bound = arrays
        quantized((*before, out.view("uint8"), y, scale, scales, upper_bound), code, block, options)
        return out


class Torch(Library):
    name = "PyTorch"

    def __init__(self):
        import torch

        from ._watched import is_transformed, is_watched

        self.empty_like = torch.empty_like  # type: ignore[method-assign]
        self.is_watched, self.is_transformed = is_watched, is_transformed
        self.uint8, self.float32, self.as_tensor = torch.uint8, torch.float32, torch.as_tensor
        self.code_types = {code: getattr(torch, code) for code in CODES}
        self.is_grad_enabled, self.any_requires_grad = torch.is_grad_enabled, torch._C._any_requires_grad
        self.increment_version = torch._C._increment_version

    def new(self, x, shape, dtype=None):
        return x.new_empty(shape, dtype=dtype or self.uint8)

    def norm(self, x, residual, residual_out, weight, out, options, names=None):
        if _options.is_compiling() or self.is_watched():
            return self.by_operator("norm_out", x, residual, residual_out, weight, out, options)
        given = (x, weight, out) if residual is None else (x, residual, residual_out, weight, out)
        if self.is_grad_enabled() and self.any_requires_grad(*given):
            raise ValueError(
                "a tensor requires grad, and this function has no backward: call that of rms_norm.torch, or this one "
                "under torch.no_grad()"
            )
        try:
            is_negated = x.is_neg() or out.is_neg() or weight is not None and weight.is_neg()
            is_negated = is_negated or residual is not None and (residual.is_neg() or residual_out.is_neg())
        except AttributeError:  # no tensor
            is_negated = False
            of_residual_out, of_out = (names or NAMES)[2], (names or NAMES)[4]
            self.check_written(((of_residual_out, residual_out), (of_out, out)))
        if is_negated:
            named = zip(names or NAMES, (x, residual, residual_out, weight, out))
            name = next(name for name, one in named if one is not None and one.is_neg())
            raise ValueError(
                f"{name} has PyTorch's negative bit, which kernels do not see: call that of rms_norm.torch, or give "
                f"{name}.resolve_neg()"
            )
        try:  # as norm(), a call of which would take the host longer
            kernel(x, residual, residual_out, weight, out, *options.numbers, names)
        except REFUSALS as refused:
            raise explained(refused, (x, residual, residual_out, weight, out), names) from None
        self.increment_version((out,) if residual is None else (out, residual_out))

    def check_written(self, named):
        """Refuses arrays of other libraries, which would be written before PyTorch says that they are no tensors."""
        for name, array in named:
            if hasattr(array, "__dlpack__") and not hasattr(array, "is_neg"):
                raise TypeError(f"{name} is a {type(array).__name__}; it must be a PyTorch tensor, as x is")

    def rope(self, arrays, numbers, options):
        self.by_operator("rope", arrays, numbers, options)

    def codes(self, x, code):
        return x.new_empty(x.shape, dtype=self.code_types[code])

    def scales(self, x, shape):
        return x.new_empty(shape, dtype=self.float32)

    def float32_beside(self, x, array):
        return self.as_tensor(array, dtype=self.float32, device=x.device)

    def quantized(self, arrays, code, block, options):
        out = arrays[4]
        if getattr(out, "dtype", None) != self.code_types[code]:
            raise TypeError(f"out is {getattr(out, 'dtype', out)!r}; a tensor of torch.{code} is wanted")
        self.by_operator("quantized", arrays, block, options)
        return out

    def by_operator(self, name, *given):
        from . import _operators

        if not _options.is_compiling() and self.is_transformed():
            raise ValueError(
                "torch.func and forward differentiation cannot transform a function that writes its result: "
                "rms_norm.torch.rms_norm works under torch.func.vmap, and torch.nn.functional.rms_norm under all of them"
            )
        getattr(_operators, name)(*given)


class NumPy(Library):
    """bfloat16 is that of ml_dtypes, which DLPack does not know: its bits are handed over."""

    name = "NumPy"
    bfloat16_is_bits = True

    def __init__(self):
        import numpy

        self.numpy = numpy
        self.types = {numpy.dtype("float32"), numpy.dtype("float16")}

    def empty_like(self, x):
        return self.numpy.empty(x.shape, self.known(x.dtype, "x"))

    def new(self, x, shape, dtype=None):
        return self.numpy.empty(shape, dtype or self.numpy.uint8)

    def known(self, dtype, name):
        if dtype not in self.types and dtype.name != "bfloat16":
            raise TypeError(f"{name} has elements of type {dtype}; float32, float16 and ml_dtypes.bfloat16 are known")
        return dtype

    def given(self, name, array, written=False):
        numpy = self.numpy
        if array is None:
            return None
        if not isinstance(array, numpy.ndarray):
            raise TypeError(f"{name} is a {type(array).__name__}; it must be a NumPy array")
        if isinstance(array, numpy.ma.MaskedArray):
            raise TypeError(f"{name} is a MaskedArray, whose mask the kernels do not see; give what filled() returns")
        known = name == "positions" or array.dtype == numpy.uint8
        if not known and self.known(array.dtype, name).name == "bfloat16":
            array = array.view(numpy.uint16)
        if array.flags.writeable:
            return array
        if written:
            raise ValueError(f"{name} is read-only, and the result shall be written to it")
        try:
            return tvm_ffi.from_dlpack(array.__dlpack__(max_version=(1, 0)))
        except TypeError:
            raise ValueError(f"{name} is read-only, which needs NumPy 2.1; make a copy first") from None

    def norm(self, x, residual, residual_out, weight, out, options, names=None):
        of_x, of_residual, of_residual_out, of_weight, of_out = names or NAMES
        if residual_out is residual:  # a result that overwrites an array is called as that is
            of_residual_out = of_residual
        x, residual = self.given(of_x, x), self.given(of_residual, residual)
        residual_out, out = self.given(of_residual_out, residual_out, True), self.given(of_out, out, True)
        norm(x, residual, residual_out, self.given(of_weight, weight), out, options, names, _kernel_of_numpy)

    def codes(self, x, code):
        if code == "int8":
            return self.numpy.empty(x.shape, self.numpy.int8)
        import ml_dtypes

        return self.numpy.empty(x.shape, getattr(ml_dtypes, code))

    def scales(self, x, shape):
        return self.numpy.empty(shape, self.numpy.float32)

    def float32_beside(self, x, array):
        return self.numpy.asarray(array, self.numpy.float32)

    def quantized(self, arrays, code, block, options):
        out = arrays[4]
        if getattr(out, "dtype", None) != code:
            raise TypeError(f"out is {getattr(out, 'dtype', out)!r}; an array of {code} is wanted")
        written = "residual_out", "out", "y", "scales"
        views = (*arrays[:4], out.view(self.numpy.uint8), *arrays[5:])
        given = [self.given(name, array, name in written) for name, array in zip(NAMES_OF_QUANTIZED, views)]
        quantized(given, code, block, options, _quantized_of_numpy)
        return out

    def rope(self, arrays, numbers, options):
        given = [self.given(name, array, name == "qkv") for name, array in zip(NAMES_OF_ROPE, arrays)]
        rope(given, (*numbers, *options.of_rope), _qk_norm_rope_of_numpy)


class CuPy(Library):
    name = "CuPy"

    def __init__(self):
        import cupy

        self.cupy = cupy

    def empty_like(self, x):
        with x.device:
            return self.cupy.empty(x.shape, x.dtype)

    def new(self, x, shape, dtype=None):
        with x.device:
            return self.cupy.empty(shape, dtype or self.cupy.uint8)

    @contextlib.contextmanager
    def on_stream(self, x):
        with x.device:
            stream = self.cupy.cuda.get_current_stream().ptr
            with tvm_ffi.use_raw_stream(tvm_ffi.device("cuda", x.device.id), stream):
                yield

    def norm(self, x, *rest):
        with self.on_stream(x):
            super().norm(x, *rest)

    def rope(self, arrays, *rest):
        with self.on_stream(arrays[0]):
            super().rope(arrays, *rest)

    def codes(self, x, code):
        """CuPy has no float8: the bytes of the numbers."""
        return self.new(x, x.shape, self.cupy.int8 if code == "int8" else self.cupy.uint8)

    def scales(self, x, shape):
        return self.new(x, shape, self.cupy.float32)

    def float32_beside(self, x, array):
        with x.device:
            return self.cupy.asarray(array, self.cupy.float32)

    def quantized(self, arrays, *rest):
        with self.on_stream(arrays[0]):
            return super().quantized(arrays, *rest)


class Jax(Library):
    """Waits for the arguments and for the result, since JAX's streams cannot be had. Not for use within jax.jit."""

    name = "JAX"
    immutable = True

    def __init__(self):
        import jax

        self.jax = jax

    def empty_like(self, x):
        if isinstance(x, self.jax.core.Tracer):
            raise TypeError("x is traced by JAX, as within jax.jit; call this function outside")
        return self.jax.device_put(self.jax.numpy.empty(x.shape, x.dtype), x.sharding)

    def norm(self, x, residual, residual_out, weight, out, *rest):
        arrays = (x, residual, residual_out, weight, out)
        self.jax.block_until_ready(arrays)
        super().norm(*arrays, *rest)
        _synchronize(out)

    def codes(self, x, code):
        return self.empty_like(x.astype("uint8"))

    def scales(self, x, shape):
        return self.jax.device_put(self.jax.numpy.empty(shape, "float32"), x.sharding)

    def quantized(self, arrays, code, block, options):
        self.jax.block_until_ready(arrays)
        quantized(arrays, code, block, options)
        out = arrays[4]
        _synchronize(out)
        return self.jax.lax.bitcast_convert_type(out, code)


_LIBRARIES = {"torch": Torch, "numpy": NumPy, "cupy": CuPy, "jax": Jax, "jaxlib": Jax}
_made: Dict[str, Library] = {}  # by name, one of each library
_known: Dict[type, Library] = {}  # by the type of an array
of_compiled_code: Optional[Library] = globals().get("of_compiled_code")  # as _options.is_compiling: see there


def library_of(x, name="x"):
    """The library that x belongs to."""
    if _options.is_compiling():
        return of_compiled_code
    try:
        return _known[type(x)]
    except KeyError:
        return _find(type(x), name)


def _find(kind, called):
    for base in kind.__mro__:
        if base.__name__ == "DTensor" and base.__module__.startswith("torch.distributed."):
            raise TypeError(
                f"{called} is a DTensor, whose parts lie on several devices: call that of rms_norm.torch, or give what "
                "to_local() returns"
            )
        name = base.__module__.partition(".")[0]
        if name in _LIBRARIES and hasattr(kind, "__dlpack__"):
            if name not in _made:
                _made[name] = _LIBRARIES[name]()
            _known[kind] = _made[name]
            return _made[name]
    if not hasattr(kind, "__dlpack__"):
        known = "PyTorch, CuPy, JAX, NumPy or what has __dlpack__"
        raise TypeError(f"{called} is a {kind.__name__}; it must be an array of {known}")
    _known[kind] = Library()
    return _known[kind]
