// A stencil in place: a thread reads its neighbour, which may have been written already.
// hazard: race global
#include "../program.h"

__global__ void smooth(float* data, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i + 1 >= count) return;
  const float next = data[i + 1];         // fault: first
  data[i] = 0.5f * (data[i] + next) + i;  // fault: second
}

int main() {
  auto* data = zeros<float>(512);
  smooth<<<4, 128>>>(data, 512);
  return cudaDeviceSynchronize() != cudaSuccess;
}
