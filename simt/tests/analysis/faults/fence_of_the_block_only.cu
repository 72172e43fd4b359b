// The same with a fence that only the block's own threads can rely on.
// hazard: race global
#include "../program.h"

__global__ void sum(const float* in, float* partial, unsigned* done, float* out) {
  if (threadIdx.x != 0) return;
  partial[blockIdx.x] = in[blockIdx.x];  // fault: first
  __threadfence_block();
  if (atomicAdd(done, 1) != gridDim.x - 1) return;
  float total = 0;
  for (unsigned i = 0; i < gridDim.x; ++i) total += partial[i];  // fault: second
  *out = total;
}

int main() {
  auto* data = zeros<float>(33);
  auto* done = zeros<unsigned>(1);
  sum<<<16, 64>>>(data, data + 16, done, data + 32);
  return cudaDeviceSynchronize() != cudaSuccess;
}
