// What an editor's clang reads before a CUDA file, in place of the translator: see tools/ladder/core/editor.py. Every
// function may be called from a kernel, as on the CPU device; clang itself knows __global__, for kernel<<<...>>>(...).
#pragma once
// What clang or its headers for CUDA, which need __device__, have declared already stays for the host alone.
#include <stdlib.h>
#define __device__ __attribute__((device))
#include <functional>
#include <iostream>
#include <memory>
#include <new>
#include <optional>
#include <variant>
#undef __device__

#pragma clang force_cuda_host_device begin
#define __builtin_assume __builtin_assume_of_nvcc
#define __global__ __attribute__((global))
#define __device__
#define __host__
#define __shared__
#define __launch_bounds__(...)
#define __cluster_dims__(...)
#define __maxnreg__(...)
#define __noinline__ __attribute__((noinline))
#include <cuda_runtime.h>
cudaError_t __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared = 0, cudaStream_t stream = nullptr);
