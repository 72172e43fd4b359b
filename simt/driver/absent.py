"""The parts of CUDA that the CPU device does not have, and the sentences that refuse them."""

import os
import re
from pathlib import Path

from .failure import Failure

DROPPED_LIBRARIES = {
    "cudart",
    "cudart_static",
    "cuda",
    "cudadevrt",
    "nvToolsExt",
    "culibos",
    "cublas",
    "cublasLt",
    "curand",
    "nccl",
    "nccl_static",
}
REFUSED_LIBRARIES = re.compile(
    r"(cublas(?!(Lt)?$)|cufft|cusparse|cusolver|cutensor|cudnn|npp|nvrtc|nvjpeg|nvml|"
    r"nvidia-ml|cupti|cufile|nvJitLink|nvptxcompiler)"
)
ABSENT_HEADERS = [  # the start of an included path, and what it belongs to
    ("cublas", "this part of cuBLAS"),
    ("curand", "this part of cuRAND"),
    ("cufft", "cuFFT"),
    ("cusparse", "cuSPARSE"),
    ("cusolver", "cuSOLVER"),
    ("cudnn", "cuDNN"),
    ("nccl", "this part of NCCL"),
    ("npp", "NPP"),
    ("nvrtc", "NVRTC"),
    ("nvml", "NVML"),
    ("cupti", "CUPTI"),
    ("thrust/", "this part of Thrust"),
    ("cub/", "this part of CUB"),
    ("cuda/std/", "this part of cuda::std"),
    ("cutlass/", "CUTLASS"),
    ("cute/", "CUTLASS"),
    ("texture_", "textures"),
    ("surface_", "surfaces"),
    ("cuda_gl_interop", "CUDA's OpenGL interoperability"),
    ("cuda_d3d", "CUDA's Direct3D interoperability"),
    ("cuda_egl", "CUDA's EGL interoperability"),
    ("cuda_vdpau", "CUDA's VDPAU interoperability"),
    ("cudaGL", "CUDA's OpenGL interoperability"),
    ("cudaEGL", "CUDA's EGL interoperability"),
    ("cooperative_groups/", "this part of cooperative groups"),
]
ABSENT_NAMES = [  # what g++ finds undeclared
    (
        r"cu[A-Z]\w*|CU[a-z]\w*|CUDA_[A-Z]\w*",
        "CUDA's driver API; use the functions of the runtime, cudaMalloc and its like",
    ),
    (r"cuda\w*Surface\w*|surf[123]D\w+", "surfaces; write the memory through a pointer"),
    (r"cuda(Graphics|GL|D3D|EGL|VDPAU)[A-Z]\w*", "CUDA's graphics interoperability; copy with cudaMemcpy instead"),
    (r"cuda\w*(External|NvSci|MemPool(Export|Import|Ptr))\w*", "memory of other processes and programs"),
    (r"cuda\w*Mipmapped\w*", "mipmaps; create a texture object for each level"),
    (r"cudaGraph[A-Z]\w*|cudaStream\w*Capture\w+|cudaDevice\w*GraphMem\w+", "this part of CUDA's graphs"),
    (
        r"cuda(Library|Logs|UserObject)[A-Z]\w*|cudaMem(RangeGet|[GS]et(Default)?MemPool|\w+BatchAsync)\w*|"
        r"cudaMemcpy(2D)?(ArrayTo|FromArray|ToArray)\w*|cudaMemcpy3DPeer\w*|cudaArrayGet(Mem|Plane|Sparse)\w*|"
        r"cuda(FuncGet(Name|Param)|Get(Driver|Export|Func|Kernel)|KernelSet|Stream(Copy|Get)Attribute)\w*",
        "this function of CUDA's runtime",
    ),
    (r"cublas\w+|CUBLAS_\w+", "this part of cuBLAS; it has the levels 1 and 2, and the products of matrices"),
    (r"nccl[A-Z]\w+|NCCL_\w+", "this part of NCCL; its kernels have windows, teams and ncclLsaBarrierSession"),
    (r"curand\w+|CURAND_\w+", "this part of cuRAND; its kernels have the generators XORWOW and Philox"),
]
NAMESPACES = {"thrust": "Thrust", "cub": "CUB", "cooperative_groups": "cooperative groups", "cuda": "libcu++"}
WHAT_THERE_IS = "it has CUDA's runtime, and most of Thrust, cuBLAS, cuRAND and NCCL"
REMOVED_NAMES = re.compile(r"__(shfl|shfl_up|shfl_down|shfl_xor|all|any|ballot)")  # since compute capability 7.0
TOOLKIT_HEADERS = [(start, "this CUDA header") for start in ("cuda", "crt/", "nv", "sm_")]


def refuse_header(header, known=ABSENT_HEADERS):
    """Say so where an included path belongs to a part of CUDA that the device does not have."""
    for start, owner in known:
        if header.startswith(start):
            raise Failure(f"the CPU device does not have {owner} ({header}); {WHAT_THERE_IS}")


def is_toolkit(folder):
    return os.path.exists(os.path.join(folder, "crt/host_config.h"))


def refuse_toolkit(paths):
    """The same for headers of a CUDA toolkit that g++ found on this machine: they are for nvcc."""
    headers = [
        str(Path(path).relative_to(folder)).replace("cccl/", "")
        for path in paths
        for folder in Path(path).parents
        if is_toolkit(folder)
    ]
    for known in (ABSENT_HEADERS, TOOLKIT_HEADERS):
        for header in headers:
            refuse_header(header, known)
