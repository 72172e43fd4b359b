// A shuffle passes values between lanes; it orders nothing that they do to memory.
// hazard: race shared
#include <cuda_runtime.h>

__global__ void rotate(const float* in, float* out) {
  __shared__ float row[32];
  row[threadIdx.x] = in[threadIdx.x];  // fault: first
  const int from = __shfl_sync(0xffffffff, threadIdx.x + 1, threadIdx.x) % 32;
  out[threadIdx.x] = row[from];  // fault: second
}

int main() {
  float* data;
  cudaMalloc(&data, 64 * sizeof(float));
  cudaMemset(data, 0, 64 * sizeof(float));
  rotate<<<1, 32>>>(data, data + 32);
  return cudaDeviceSynchronize() != cudaSuccess;
}
