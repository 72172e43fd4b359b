// A vote called by lanes that its mask does not name.
// hazard: mask
#include <cuda_runtime.h>

__global__ void vote(int* data) {
  const int x = data[threadIdx.x];
  data[threadIdx.x] = __any_sync(0x0000ffff, x > 0);  // fault: first
}

int main() {
  int* data;
  cudaMalloc(&data, 32 * sizeof(int));
  cudaMemset(data, 0, 32 * sizeof(int));
  vote<<<1, 32>>>(data);
  return cudaDeviceSynchronize() == cudaSuccess;
}
