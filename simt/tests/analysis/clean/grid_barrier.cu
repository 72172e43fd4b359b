// A stencil in rounds, with the barrier of a cooperative grid between them.
#include <cooperative_groups.h>
#include "../program.h"

__global__ void smooth(float* one, float* other, int rounds) {
  cooperative_groups::grid_group grid = cooperative_groups::this_grid();
  const int i = blockIdx.x * blockDim.x + threadIdx.x, count = gridDim.x * blockDim.x;
  for (int round = 0; round < rounds; ++round) {
    other[i] = 0.5f * (one[i] + one[(i + 1) % count]);
    grid.sync();
    float* swap = one;
    one = other;
    other = swap;
  }
}

int main() {
  auto* one = zeros<float>(512);
  float* other = one + 256;
  int rounds = 5;
  void* arguments[] = {&one, &other, &rounds};
  cudaLaunchCooperativeKernel((void*)smooth, dim3(4), dim3(64), arguments, 0, nullptr);
  return cudaDeviceSynchronize() != cudaSuccess;
}
