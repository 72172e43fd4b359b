// Elements changed in place, by kernels one after another, with vectors and with halves; threads that share a word.
#include <cuda_fp16.h>
#include "../program.h"

__global__ void twice(float4* data, int count) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
    float4 v = data[i];
    v.x *= 2, v.y *= 2, v.z *= 2, v.w *= 2;
    data[i] = v;
  }
}

__global__ void halves(__half* data, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) data[i] = __hmul(data[i], __float2half(0.5f));
}

__global__ void bytes(char* data, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) data[count - 1 - i] += 1;
}

int main() {
  auto* data = zeros<float4>(256);
  twice<<<3, 32>>>(data, 256);
  halves<<<33, 63>>>(reinterpret_cast<__half*>(data), 2048);
  bytes<<<67, 63>>>(reinterpret_cast<char*>(data), 4096);
  twice<<<2, 64>>>(data, 256);
  return cudaDeviceSynchronize() != cudaSuccess;
}
