// An asynchronous copy is read after a barrier of the block, which does not wait for copies.
// hazard: race shared
#include <cuda_pipeline.h>
#include "../program.h"

__global__ void reverse(const int* in, int* out) {
  __shared__ int row[64];
  const int i = threadIdx.x;
  __pipeline_memcpy_async(&row[i], &in[i], sizeof(int));  // fault: first
  __pipeline_commit();
  __syncthreads();
  out[i] = row[63 - i];  // fault: second
  __pipeline_wait_prior(0);
}

int main() {
  auto* data = zeros<int>(128);
  reverse<<<1, 64>>>(data, data + 64);
  return cudaDeviceSynchronize() != cudaSuccess;
}
