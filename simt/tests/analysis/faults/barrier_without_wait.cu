// Threads arrive at a barrier in memory and read before its phase has ended.
// hazard: race shared
#include <cuda/barrier>
#include "../program.h"

__global__ void reverse(const int* in, int* out) {
  __shared__ int row[64];
  __shared__ cuda::barrier<cuda::thread_scope_block> barrier;
  const int i = threadIdx.x;
  if (i == 0) init(&barrier, 64);
  __syncthreads();
  row[i] = in[i];  // fault: first
  auto token = barrier.arrive();
  out[i] = row[63 - i];  // fault: second
  barrier.wait(std::move(token));
}

int main() {
  auto* data = zeros<int>(128);
  reverse<<<1, 64>>>(data, data + 64);
  return cudaDeviceSynchronize() != cudaSuccess;
}
