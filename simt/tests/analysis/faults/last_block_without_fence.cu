// The last block adds up what the others wrote, but a fence before the counter is missing.
// hazard: race global
#include "../program.h"

__global__ void sum(const float* in, float* partial, unsigned* done, float* out) {
  __shared__ bool is_last;
  if (threadIdx.x == 0) {
    partial[blockIdx.x] = in[blockIdx.x];  // fault: first
    is_last = atomicAdd(done, 1) == gridDim.x - 1;
  }
  __syncthreads();
  if (is_last && threadIdx.x == 0) {
    float total = 0;
    for (unsigned i = 0; i < gridDim.x; ++i) total += partial[i];  // fault: second
    *out = total;
  }
}

int main() {
  auto* data = zeros<float>(33);
  auto* done = zeros<unsigned>(1);
  sum<<<16, 64>>>(data, data + 16, done, data + 32);
  return cudaDeviceSynchronize() != cudaSuccess;
}
