// A cooperative kernel whose blocks wait only for their own threads where they should wait for the grid.
// hazard: race global
#include <cooperative_groups.h>
#include "../program.h"

__global__ void shift(int* data, int* out) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x, count = gridDim.x * blockDim.x;
  data[i] = i;  // fault: first
  __syncthreads();
  out[i] = data[(i + blockDim.x) % count];  // fault: second
  cooperative_groups::this_grid().sync();
}

int main() {
  auto* data = zeros<int>(512);
  int* out = data + 256;
  void* arguments[] = {&data, &out};
  cudaLaunchCooperativeKernel((void*)shift, dim3(4), dim3(64), arguments, 0, nullptr);
  return cudaDeviceSynchronize() != cudaSuccess;
}
