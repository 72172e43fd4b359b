// A prefix sum of one warp in shared memory, in steps that nothing separates.
// hazard: race shared
#include "../program.h"

__global__ void scan(int* data) {
  __shared__ int sums[32];
  const int lane = threadIdx.x;
  sums[lane] = data[lane];
  __syncwarp();
  for (int step = 1; step < 32; step *= 2) {
    const int before = lane >= step ? sums[lane - step] : 0;  // fault: first
    sums[lane] += before;                                     // fault: second
  }
  data[lane] = sums[lane];
}

int main() {
  auto* data = zeros<int>(32);
  const int one = 1;
  cudaMemcpy(data + 3, &one, sizeof one, cudaMemcpyHostToDevice);
  scan<<<1, 32>>>(data);
  return cudaDeviceSynchronize() != cudaSuccess;
}
