// A kernel starts while the one before it in the stream ends. 06 and 07 are the same work: a first launch copies all
// words with their bits flipped, and a second one flips them back.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "common/cuda_check.h"
#include "common/launch.h"
#include "common/operators/copy.h"

namespace ladder::hopper {

constexpr int kFlipThreads = 256;

// 06 (kDependent = false): the first block starts after the last block of the kernel before it has ended and its writes
// are visible. Between two kernels the GPU is idle for about a microsecond, however long they are.
// 07: blocks start as soon as all blocks of the kernel before have let them and there is room. What they do before the
// wait must not touch what that kernel writes, or write what it reads. Here it is little: arguments and addresses.
template <bool kDependent>
__global__ void flip_kernel(const uint32_t* from, uint32_t* to, int64_t n, bool aligned) {
  const int64_t i = (int64_t{blockIdx.x} * kFlipThreads + threadIdx.x) * 4;
#if __CUDA_ARCH__ >= 900
  if (kDependent) cudaGridDependencySynchronize();            // the kernel before has ended
  if (kDependent) cudaTriggerProgrammaticLaunchCompletion();  // the next kernel's blocks may start, and then wait here
#endif
  if (aligned && i + 4 <= n) {
    const uint4 four = *reinterpret_cast<const uint4*>(from + i);
    *reinterpret_cast<uint4*>(to + i) = make_uint4(~four.x, ~four.y, ~four.z, ~four.w);
  } else {
    for (int64_t k = i; k < min(i + 4, n); ++k) to[k] = ~from[k];
  }
}

template <class... Parameters, class... Arguments>
void launch_with_dependency(bool dependent, unsigned blocks, cudaStream_t stream, void (*flip_kernel)(Parameters...),
                            Arguments... arguments) {
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(blocks);
  config.blockDim = dim3(kFlipThreads);
  config.stream = stream;
  config.attrs = &attribute;
  config.numAttrs = dependent ? 1 : 0;
  CUDA_CHECK(cudaLaunchKernelEx(&config, flip_kernel, arguments...));
}

template <bool kDependent>
void launch_flips(const float* from, float* to, int64_t n, cudaStream_t stream) {
  const auto blocks = static_cast<unsigned>(blocks_for(n, 4 * kFlipThreads));
  const auto* words = reinterpret_cast<const uint32_t*>(from);
  auto* flipped = reinterpret_cast<uint32_t*>(to);
  const bool aligned = aligned_for<uint4>(from, to);
  if (blocks == 0) return;
  const auto launch = [&](const uint32_t* source) {
    launch_with_dependency(kDependent, blocks, stream, flip_kernel<kDependent>, source, flipped, n, aligned);
  };
  launch(words);
  launch(flipped);
}

}  // namespace ladder::hopper
