// A flag that is neither volatile nor atomic.
// hazard: race global
#include "../program.h"

__global__ void search(const int* in, int* found, int* looked) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (*found) return;  // fault: first
  looked[i] = 1;
  if (in[i] == 77) *found = 1;  // fault: second
}

int main() {
  int number = 77;
  auto* data = zeros<int>(1025);
  cudaMemcpy(data + 200, &number, sizeof number, cudaMemcpyHostToDevice);
  search<<<4, 128>>>(data, data + 512, data + 513);
  return cudaDeviceSynchronize() != cudaSuccess;
}
