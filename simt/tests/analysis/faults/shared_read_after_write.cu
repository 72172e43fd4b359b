// A row is reversed through shared memory; no thread waits until all elements are there.
// hazard: race shared
// detail: read after write
#include <cuda_runtime.h>

__global__ void reverse(const float* in, float* out) {
  __shared__ float row[128];
  const int i = threadIdx.x;
  row[i] = in[i];         // fault: first
  out[i] = row[127 - i];  // fault: second
}

int main() {
  float* data;
  cudaMalloc(&data, 256 * sizeof(float));
  cudaMemset(data, 0, 128 * sizeof(float));
  reverse<<<1, 128>>>(data, data + 128);
  return cudaDeviceSynchronize() != cudaSuccess;
}
