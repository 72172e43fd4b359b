// Memory is used after it was freed.
// hazard: out_of_bounds
#include <cuda_runtime.h>

__global__ void fill(float* out) {
  out[threadIdx.x] = 1;  // fault: first
}

int main() {
  float* out;
  cudaMalloc(&out, 128 * sizeof(float));
  cudaFree(out);
  fill<<<1, 128>>>(out);
  return cudaDeviceSynchronize() != cudaErrorIllegalAddress;
}
