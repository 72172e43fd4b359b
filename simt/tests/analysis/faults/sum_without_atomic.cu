// Every block adds its sum to the total without an atomic.
// hazard: race global
// detail: a block reads what another writes
#include "../program.h"

__global__ void count(const int* in, int* total) {
  const int votes = __syncthreads_count(in[blockIdx.x * blockDim.x + threadIdx.x] > 2);
  if (threadIdx.x == 0) *total += votes;  // fault: first, second
}

int main() {
  auto* data = zeros<int>(513);
  cudaMemset(data, 1, 512 * sizeof(int));
  cudaMemset(data + 512, 0, sizeof(int));
  count<<<4, 128>>>(data, data + 512);
  return cudaDeviceSynchronize() != cudaSuccess;
}
