// All lanes store their own value to one place in one instruction.
// hazard: race global
#include "../program.h"

__global__ void pick(const int* in, int* out) {
  if (in[threadIdx.x] > 3) *out = in[threadIdx.x];  // fault: first, second
}

int main() {
  auto* data = zeros<int>(33);
  int numbers[32];
  for (int i = 0; i < 32; ++i) numbers[i] = i;
  cudaMemcpy(data, numbers, sizeof numbers, cudaMemcpyHostToDevice);
  pick<<<1, 32>>>(data, data + 32);
  return cudaDeviceSynchronize() != cudaSuccess;
}
