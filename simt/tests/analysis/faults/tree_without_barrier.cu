// A tree of sums without a barrier between two steps.
// hazard: race shared
#include "../program.h"

__global__ void sum(const float* in, float* out) {
  __shared__ float partial[256];
  partial[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  for (int half = 128; half > 0; half /= 2)
    if (threadIdx.x < half) partial[threadIdx.x] += partial[threadIdx.x + half];  // fault: first, second
  if (threadIdx.x == 0) *out = partial[0];
}

int main() {
  auto* data = zeros<float>(257);
  sum<<<1, 256>>>(data, data + 256);
  return cudaDeviceSynchronize() != cudaSuccess;
}
