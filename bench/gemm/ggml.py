"""llama.cpp's own matrix product: ggml's mul_mat of q4_0 weights by float32 activations, through its graph API.

    backend = Backend(folder_of_package(), "cuda")
    weights = Weights(backend, blocks, m, k, copies=18)   # blocks: m rows of k / 32 blocks of 18 bytes
    product = Product(weights, x)                         # x: float32 [n, k]
    product.run(); y = product.get(0)                     # float32 [n, m]: x times the first copy
    product.microseconds()                                # of one product; the copies take turns

ctypes and NumPy alone. The libraries are those of `pip install llama-cpp-python`, in llama_cpp/lib, or of any build of
ggml: libggml-base, and libggml-cuda or libggml-cpu, with CUDA's own where they are found.
"""

import contextlib
import ctypes
import importlib.util
import math
import pathlib
import sys
import time

try:
    import numpy
except ImportError:  # PyTorch, without which nothing here is called, brings it
    numpy = None

INSTALL = "CMAKE_ARGS=-DGGML_CUDA=ON pip install llama-cpp-python, or --ggml with the folder of its libggml files"
BYTES_OF_BLOCK = 18
F32, Q4_0 = 0, 2  # of enum ggml_type
POINTER, NUMBER, ENUM, SIZE = ctypes.c_void_p, ctypes.c_int64, ctypes.c_int, ctypes.c_size_t
LEAST_NODES = 16
SAMPLE_SECONDS = 0.01  # of a sample, of which the host's wait at its end is a thousandth


class NotThere(Exception):
    """Which library is missing, and how it is installed."""


class InitParams(ctypes.Structure):
    _fields_ = [("mem_size", SIZE), ("mem_buffer", POINTER), ("no_alloc", ctypes.c_bool)]


def folder_of_package():
    """llama_cpp/lib of the installed package; NotThere if there is none."""
    found = importlib.util.find_spec("llama_cpp")
    if not found or not found.submodule_search_locations:
        raise NotThere(f"not installed: {INSTALL}")
    return pathlib.Path(next(iter(found.submodule_search_locations))) / "lib"


def library(folder, name):
    paths = sorted(pathlib.Path(folder).glob(f"lib{name}.so*"))
    if not paths:
        raise NotThere(f"{folder} has no lib{name}.so: {INSTALL}")
    try:
        return ctypes.CDLL(str(paths[0].resolve()), mode=ctypes.RTLD_GLOBAL)
    except OSError as error:
        raise NotThere(f"lib{name}.so cannot be loaded: {error}")


def load_cuda_libraries():
    """CUDA's own libraries, from the toolkit or from NVIDIA's wheels, unless the loader finds them by itself."""
    folders = [pathlib.Path("/usr/local/cuda/lib64")]
    folders += [folder for path in sys.path for folder in pathlib.Path(path).glob("nvidia/*/lib")]
    for name in ("cudart", "cublasLt", "cublas"):
        for path in [path for folder in folders for path in sorted(folder.glob(f"lib{name}.so.*"))]:
            with contextlib.suppress(OSError):
                ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)
                break


class Backend:
    """ggml on the first GPU, or on the CPU."""

    def __init__(self, folder, kind):
        self.base = library(folder, "ggml-base")
        if kind == "cuda":
            load_cuda_libraries()
            self.handle = self.call(library(folder, "ggml-cuda").ggml_backend_cuda_init, POINTER, ENUM(0))
        else:
            self.handle = self.call(library(folder, "ggml-cpu").ggml_backend_cpu_init, POINTER)
        if not self.handle:
            raise NotThere(f"its {kind} back end finds no device")
        self.version = "ggml"
        if hasattr(self.base, "ggml_version"):
            self.version += " " + self.call(self.base.ggml_version, ctypes.c_char_p).decode()

    def call(self, function, result, *arguments):
        function.restype = result
        function.argtypes = [type(argument) for argument in arguments]
        return function(*arguments)

    def context(self, tensors, nodes=0):
        """Room for the descriptions of so many tensors, and of a graph of so many nodes if there are any."""
        size = tensors * self.call(self.base.ggml_tensor_overhead, SIZE)
        if nodes:
            size += self.call(self.base.ggml_graph_overhead_custom, SIZE, SIZE(nodes), ctypes.c_bool(False))
        return Context(self, POINTER(self.call(self.base.ggml_init, POINTER, InitParams(size, None, True))))

    def put(self, tensor, array):
        to = self.base.ggml_backend_tensor_set
        self.call(to, None, tensor, POINTER(array.ctypes.data), SIZE(0), SIZE(array.nbytes))


class Context:
    """Tensors, and the device memory of all of them together."""

    def __init__(self, backend, handle):
        self.backend, self.handle, self.buffer = backend, handle, None

    def matrix(self, kind, cols, rows):
        base = self.backend.base
        made = self.backend.call(base.ggml_new_tensor_2d, POINTER, self.handle, ENUM(kind), NUMBER(cols), NUMBER(rows))
        return POINTER(made)

    def allocate(self):
        backend = self.backend
        made = backend.call(backend.base.ggml_backend_alloc_ctx_tensors, POINTER, self.handle, POINTER(backend.handle))
        if not made:
            raise MemoryError("ggml has no memory for the tensors")
        self.buffer = POINTER(made)

    def close(self):
        if self.buffer:
            self.backend.call(self.backend.base.ggml_backend_buffer_free, None, self.buffer)
        if self.handle:
            self.backend.call(self.backend.base.ggml_free, None, self.handle)
        self.buffer = self.handle = None


class Weights:
    """Copies of one matrix of q4_0."""

    def __init__(self, backend, blocks, m, k, copies=1):
        if blocks.dtype != numpy.uint8 or blocks.size != m * k // 32 * BYTES_OF_BLOCK:
            raise ValueError(f"blocks must be {m} · {k} / 32 blocks of {BYTES_OF_BLOCK} bytes")
        self.backend, self.m, self.k = backend, m, k
        self.context = backend.context(copies)
        self.tensors = [self.context.matrix(Q4_0, k, m) for _ in range(copies)]
        self.context.allocate()
        blocks = numpy.ascontiguousarray(blocks)
        for tensor in self.tensors:
            backend.put(tensor, blocks)

    def close(self):
        self.context.close()


class Product:
    """A graph of at least 16 products with the first `copies` of the weights in turn, all with the same x. The CUDA back end
    quantizes x in each product. A graph that it has met before it replays as a CUDA graph, after the
    host has looked at its nodes; with several of them the host is ahead of the GPU."""

    def __init__(self, weights, x, copies=None):
        self.backend, self.m, self.n = weights.backend, weights.m, len(x)
        tensors = weights.tensors[:copies]
        tensors = tensors * math.ceil(LEAST_NODES / len(tensors))
        base, call = self.backend.base, self.backend.call
        nodes = 2 * len(tensors) + 16
        self.context = self.backend.context(len(tensors) + 8, nodes)
        handle = self.context.handle
        self.x = self.context.matrix(F32, weights.k, self.n)
        self.y = [POINTER(call(base.ggml_mul_mat, POINTER, handle, tensor, self.x)) for tensor in tensors]
        self.graph = POINTER(call(base.ggml_new_graph_custom, POINTER, handle, SIZE(nodes), ctypes.c_bool(False)))
        for y in self.y:
            call(base.ggml_build_forward_expand, None, self.graph, y)
        self.context.allocate()
        self.backend.put(self.x, numpy.ascontiguousarray(x, numpy.float32))

    def start(self):
        backend = self.backend
        compute = backend.base.ggml_backend_graph_compute_async
        status = backend.call(compute, ENUM, POINTER(backend.handle), self.graph)
        if status != 0:
            raise RuntimeError(f"ggml_backend_graph_compute_async returns {status}")

    def run(self, times=1):
        for _ in range(times):
            self.start()
        self.backend.call(self.backend.base.ggml_backend_synchronize, None, POINTER(self.backend.handle))

    def get(self, which):
        y = numpy.empty((self.n, self.m), numpy.float32)
        read = self.backend.base.ggml_backend_tensor_get
        self.backend.call(read, None, self.y[which], POINTER(y.ctypes.data), SIZE(0), SIZE(y.nbytes))
        return y

    def forget(self):
        """Writes NaN over all results."""
        nothing = numpy.full((self.n, self.m), numpy.nan, numpy.float32)
        for y in self.y:
            self.backend.put(y, nothing)

    def seconds(self, times):
        begin = time.perf_counter()
        self.run(times)
        return time.perf_counter() - begin

    def warm_up(self):
        """Until ggml replays its graph; finds out how many runs a sample needs."""
        self.run(5)
        self.times = max(2, round(SAMPLE_SECONDS / self.seconds(5) * 5))

    def microseconds(self):
        """Of one product: runs that follow each other without a wait, by the host's clock."""
        return 1e6 * self.seconds(self.times) / self.times / len(self.y)

    def close(self):
        self.context.close()
