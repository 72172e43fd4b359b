// One warp waits for another through a volatile flag in shared memory, with fences on both sides.
#include "../program.h"

__global__ void pass_on(const int* in, int* out) {
  __shared__ int values[32];
  __shared__ volatile int ready;
  if (threadIdx.x == 0) ready = 0;
  __syncthreads();
  const int lane = threadIdx.x % 32;
  if (threadIdx.x < 32) {
    values[lane] = in[lane];
    __threadfence_block();
    __syncwarp();
    if (lane == 0) ready = 1;
  } else {
    while (ready == 0) {
    }
    __threadfence_block();
    out[lane] = values[31 - lane];
  }
}

int main() {
  auto* data = zeros<int>(64);
  pass_on<<<1, 64>>>(data, data + 32);
  return cudaDeviceSynchronize() != cudaSuccess;
}
