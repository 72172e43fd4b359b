// input_before_wait: 11_dependent_launch, but it reads the input before it waits for the kernel that writes it. Here
// that kernel copies the input to the output, where the mutant then normalizes it in place.
#pragma once

#include "parts.cuh"

namespace ladder::vector::mutants::input_before_wait {

__global__ void slow_copy(const float* input, float* output, int64_t n) {
#if __CUDA_ARCH__ >= 900
  cudaTriggerProgrammaticLaunchCompletion();  // allowed at any time: the next kernel has to wait, not this one
#endif
  for (int i = 0; i < 50; ++i) __nanosleep(1000);
  const parts::Share share = parts::share_of_block(n);
  for (int64_t i = share.begin + threadIdx.x; i < share.end; i += parts::kBlockSize) output[i] = input[i];
}

__global__ void rms_norm_kernel(const float* weight, float* output, int64_t n, float eps) {
  const float sum = parts::sum_of_squares(output, {0, n});
#if __CUDA_ARCH__ >= 900
  cudaGridDependencySynchronize();  // the fault: too late
#endif
  parts::scale(output, weight, output, parts::share_of_block(n), parts::rstd(sum, n, eps));
}

inline void launch(const float* input, const float* weight, float* output, float*, int64_t n, float eps,
                   cudaStream_t stream) {
  slow_copy<<<parts::blocks_of(n), parts::kBlockSize, 0, stream>>>(input, output, n);
  cudaLaunchAttribute dependent = {};
  dependent.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  dependent.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(1);
  config.blockDim = dim3(parts::kBlockSize);
  config.stream = stream;
  config.attrs = &dependent;
  config.numAttrs = 1;
  cudaLaunchKernelEx(&config, rms_norm_kernel, weight, output, n, eps);
}

inline const Mutant<RmsNormVector> mutant{"input_before_wait",
                                          "the input is read before the kernel that writes it has ended", launch,
                                          "elements wrong, first at", Shows::on_hopper};

}  // namespace ladder::vector::mutants::input_before_wait
