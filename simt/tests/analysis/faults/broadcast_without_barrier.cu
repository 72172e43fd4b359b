// One thread leaves a result for all, and the others do not wait for it. In one order of threads the answer is right.
// hazard: race shared
#include "../program.h"

__global__ void scale(float* data) {
  __shared__ float factor;
  if (threadIdx.x == 0) factor = 0;
  __syncthreads();
  if (threadIdx.x == 0) factor = data[0] + 1;  // fault: first
  data[threadIdx.x + 1] *= factor;             // fault: second
}

int main() {
  auto* data = zeros<float>(257);
  scale<<<1, 256>>>(data);
  return cudaDeviceSynchronize() != cudaSuccess;
}
