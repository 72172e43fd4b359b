// What 08_dependent introduces: kernels that are brought to the SMs while the one before them still runs.
#pragma once

#include "assignment3/tensor_parallel/shared.cuh"

namespace ladder::tensor_parallel {

// Before this call a kernel must not touch what an earlier kernel writes, nor write what one still uses.
__device__ inline void wait_for_previous_kernel() {
#if __CUDA_ARCH__ >= 900
  cudaGridDependencySynchronize();
#endif
}
// Once every block has called this, the next kernel's blocks may come where there is room.
__device__ inline void let_next_kernel_start() {
#if __CUDA_ARCH__ >= 900
  cudaTriggerProgrammaticLaunchCompletion();
#endif
}

struct DependentLaunch {
  cudaLaunchAttribute attribute = {};
  cudaLaunchConfig_t config = {};

  DependentLaunch(unsigned blocks, unsigned threads, cudaStream_t stream) {
    attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute.val.programmaticStreamSerializationAllowed = 1;
    config.gridDim = dim3(blocks);
    config.blockDim = dim3(threads);
    config.stream = stream;
    config.attrs = &attribute;
    config.numAttrs = 1;
  }
  DependentLaunch(const DependentLaunch&) = delete;
  DependentLaunch& operator=(const DependentLaunch&) = delete;
};

}  // namespace ladder::tensor_parallel
