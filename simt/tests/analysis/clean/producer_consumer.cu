// Two cuda::barriers between a warp that fills two buffers and one that empties them.
#include <cuda/barrier>
#include "../program.h"

using Barrier = cuda::barrier<cuda::thread_scope_block>;

__global__ void pass_on(const int* in, int* out, int rows) {
  __shared__ int buffer[2][32];
  __shared__ Barrier full[2], empty[2];
  if (threadIdx.x < 2) {
    init(&full[threadIdx.x], 64);
    init(&empty[threadIdx.x], 64);
  }
  __syncthreads();
  const int lane = threadIdx.x % 32;
  if (threadIdx.x < 32) {
    for (int r = 0; r < rows; ++r) {
      empty[r % 2].arrive_and_wait();
      buffer[r % 2][lane] = in[32 * r + lane];
      Barrier::arrival_token token = full[r % 2].arrive();
      (void)token;
    }
  } else {
    Barrier::arrival_token first = empty[0].arrive(), second = empty[1].arrive();
    (void)first, (void)second;
    for (int r = 0; r < rows; ++r) {
      full[r % 2].arrive_and_wait();
      out[32 * r + lane] = buffer[r % 2][31 - lane];
      if (r + 2 < rows) {
        Barrier::arrival_token token = empty[r % 2].arrive();
        (void)token;
      }
    }
  }
}

int main() {
  auto* data = zeros<int>(1024);
  pass_on<<<1, 64>>>(data, data + 512, 16);
  return cudaDeviceSynchronize() != cudaSuccess;
}
