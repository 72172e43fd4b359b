// Shared variables whose first access is an exchange: what was there does not matter.
#include <cuda/atomic>
#include "../program.h"

__global__ void count(const int* in, int* out) {
  __shared__ int count;
  __shared__ cuda::atomic<int, cuda::thread_scope_block> largest;
  if (threadIdx.x == 0) atomicExch(&count, 0);
  if (threadIdx.x == 32) largest.exchange(-1);
  __syncthreads();
  if (in[threadIdx.x] == 0) atomicAdd(&count, 1);
  largest.fetch_max(in[threadIdx.x]);
  __syncthreads();
  if (threadIdx.x == 0) out[0] = count;
  if (threadIdx.x == 32) out[1] = largest;
}

int main() {
  auto* data = zeros<int>(66);
  count<<<1, 64>>>(data, data + 64);
  int found[2];
  cudaMemcpy(found, data + 64, sizeof found, cudaMemcpyDeviceToHost);
  return found[0] != 64 || found[1] != 0;
}
