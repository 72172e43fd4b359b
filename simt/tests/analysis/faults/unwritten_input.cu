// The copy from the host brings half of the input only.
// hazard: uninitialized global
#include <thrust/device_ptr.h>
#include <thrust/fill.h>
#include "../program.h"

__global__ void twice(const float* in, float* out) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = 2 * in[i];  // fault: first
}

int main() {
  constexpr int n = 256;
  float host[n] = {};
  float *in, *out;
  cudaMalloc(&in, sizeof host);
  cudaMalloc(&out, sizeof host);
  cudaMemcpy(in, host, n / 2 * sizeof(float), cudaMemcpyHostToDevice);
  thrust::fill_n(thrust::device_pointer_cast(out), n, 0.0f);  // other memory
  twice<<<2, n / 2>>>(in, out);
  return cudaDeviceSynchronize() != cudaSuccess;
}
