// dependent_without_wait: the second kernel starts early and reads what the first one has not written yet.
#pragma once
#include <algorithm>

#include "../dependent_launch.cuh"

namespace ladder::hopper::mutants::dependent_without_wait {

// Few blocks, so that those of the second kernel find room on the GPU while the first one is still at work.
__global__ void flip_kernel(const uint32_t* from, uint32_t* to, int64_t n, bool from_the_end) {
#if __CUDA_ARCH__ >= 900
  cudaTriggerProgrammaticLaunchCompletion();  // the fault: no thread waits for what comes before
#endif
  const int64_t step = int64_t{gridDim.x} * kFlipThreads;
  for (int64_t i = int64_t{blockIdx.x} * kFlipThreads + threadIdx.x; i < n; i += step) {
    const int64_t at = from_the_end ? n - 1 - i : i;
    to[at] = ~from[at];
  }
}

inline void launch(const float* from, float* to, int64_t n, cudaStream_t stream) {
  const auto blocks = static_cast<unsigned>(std::min<int64_t>(blocks_for(n, kFlipThreads), multiprocessors()));
  const auto* words = reinterpret_cast<const uint32_t*>(from);
  auto* flipped = reinterpret_cast<uint32_t*>(to);
  if (blocks == 0) return;
  launch_with_dependency(true, blocks, stream, flip_kernel, words, flipped, n, false);
  launch_with_dependency(true, blocks, stream, flip_kernel, static_cast<const uint32_t*>(flipped), flipped, n, true);
}

inline const Mutant<Copy> mutant{"dependent_without_wait",
                                 "a dependent launch that does not wait",
                                 launch,
                                 "elements wrong",
                                 Shows::on_hopper,
                                 {{1 << 22}}};

}  // namespace ladder::hopper::mutants::dependent_without_wait
