// broadcast_not_awaited: the second barrier of block_reduce_sum is gone: threads read the broadcast before thread 0 has
// written it. The document's count of two barriers is the least that its form needs.
#pragma once

#include "parts.cuh"

namespace ladder::inference::mutants::broadcast_not_awaited {

__global__ void row_rmsnorm_kernel(const float* in, const float* wei, float* out, int size, float eps) {
  in += int64_t{blockIdx.x} * size, out += int64_t{blockIdx.x} * size;
  __shared__ float smem[parts::kBlockDim / 32];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  float sum = warp_reduce_sum(parts::sum_of_squares(in, 0, size));
  if (lane == 0) smem[warp] = sum;
  __syncthreads();
  if (warp == 0) {
    sum = warp_reduce_sum(lane < parts::kBlockDim / 32 ? smem[lane] : 0.0f);
    if (lane == 0) smem[0] = sum;
  }  // the fault: no __syncthreads() here
  parts::write(in, wei, out, 0, size, rsqrtf(smem[0] / static_cast<float>(size) + eps));
}

constexpr RmsNormAllF32::Launch launch = parts::launch<float, float, row_rmsnorm_kernel>;

inline const Mutant<RmsNormAllF32> mutant{"broadcast_not_awaited", "no barrier before the broadcast sum is read",
                                          launch, "thread order reversed", Shows::on_cpu_device};

}  // namespace ladder::inference::mutants::broadcast_not_awaited
