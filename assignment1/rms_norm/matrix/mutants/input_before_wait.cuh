// input_before_wait: 14_dependent_launch, but it reads the input before it waits for the kernel that writes it. Here
// that kernel copies the input to the output, where the mutant then normalizes it in place.
#pragma once

#include "parts.cuh"

namespace ladder::matrix::mutants::input_before_wait {

__global__ void slow_copy(const float* input, float* output, int64_t count) {
#if __CUDA_ARCH__ >= 900
  cudaTriggerProgrammaticLaunchCompletion();  // allowed at any time: the next kernel has to wait, not this one
#endif
  for (int i = 0; i < 50; ++i) __nanosleep(1000);
  const int64_t i = int64_t{blockIdx.x} * parts::kBlockSize + threadIdx.x;
  if (i < count) output[i] = input[i];
}

__global__ void rms_norm_kernel(const float* weight, float* output, int64_t cols, float eps) {
  float* row = output + blockIdx.x * cols;
  const float rstd = parts::row_rstd(row, cols, eps);  // the other end of the fault: too early
#if __CUDA_ARCH__ >= 900
  cudaGridDependencySynchronize();  // the fault: too late
#endif
  parts::scale_row(row, weight, row, cols, rstd);
}

inline void launch(const float* input, const float* weight, float* output, int64_t rows, int64_t cols, float eps,
                   cudaStream_t stream) {
  if (rows == 0) return;
  const auto blocks = static_cast<unsigned>((rows * cols + parts::kBlockSize - 1) / parts::kBlockSize);
  slow_copy<<<blocks, parts::kBlockSize, 0, stream>>>(input, output, rows * cols);

  cudaLaunchAttribute dependent = {};
  dependent.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  dependent.val.programmaticStreamSerializationAllowed = 1;
  parts::launch_with(dependent, rows, stream, rms_norm_kernel, weight, output, cols, eps);
}

inline const Mutant<RmsNorm> mutant{"input_before_wait", "the input is read before the kernel that writes it has ended",
                                    launch, "elements wrong, first at", Shows::on_hopper};

}  // namespace ladder::matrix::mutants::input_before_wait
