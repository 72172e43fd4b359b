// cuda::pipeline of a block: all threads copy and all use; and with a warp that only copies.
#include <cooperative_groups.h>
#include <cuda/pipeline>
#include "../program.h"

constexpr int kStages = 2, kRow = 64;

__global__ void all_do_both(const int* in, int* out, int rows) {
  __shared__ int buffer[kStages][kRow];
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, kStages> state;
  auto block = cooperative_groups::this_thread_block();
  auto pipe = cuda::make_pipeline(block, &state);
  const int i = threadIdx.x;
  for (int r = 0, ahead = 0; r < rows; ++r) {
    for (; ahead < rows && ahead < r + kStages; ++ahead) {
      pipe.producer_acquire();
      cuda::memcpy_async(block, buffer[ahead % kStages], in + kRow * ahead, sizeof(int) * kRow, pipe);
      pipe.producer_commit();
    }
    pipe.consumer_wait();
    out[kRow * r + i] = buffer[r % kStages][kRow - 1 - i];
    pipe.consumer_release();
  }
}

__global__ void one_warp_copies(const int* in, int* out, int rows) {
  __shared__ int buffer[kStages][kRow];
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, kStages> state;
  auto block = cooperative_groups::this_thread_block();
  const bool copies = threadIdx.x < 32;
  auto pipe =
      cuda::make_pipeline(block, &state, copies ? cuda::pipeline_role::producer : cuda::pipeline_role::consumer);
  for (int r = 0; r < rows; ++r) {
    if (copies) {
      pipe.producer_acquire();
      for (int i = threadIdx.x; i < kRow; i += 32)
        cuda::memcpy_async(&buffer[r % kStages][i], in + kRow * r + i, sizeof(int), pipe);
      pipe.producer_commit();
    } else {
      pipe.consumer_wait();
      const int i = threadIdx.x - 32;
      out[kRow * r + i] = buffer[r % kStages][kRow - 1 - i];
      pipe.consumer_release();
    }
  }
}

int main() {
  auto* data = zeros<int>(2 * 8 * kRow);
  all_do_both<<<1, kRow>>>(data, data + 8 * kRow, 8);
  one_warp_copies<<<1, 32 + kRow>>>(data, data + 8 * kRow, 8);
  return cudaDeviceSynchronize() != cudaSuccess;
}
