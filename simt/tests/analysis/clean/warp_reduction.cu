// The end of a reduction by one warp in shared memory, with __syncwarp between reading and writing.
#include "../program.h"

__device__ void warp_sum(volatile float* partial, int lane) {
  float sum = partial[lane] + partial[lane + 32];
  __syncwarp();
  partial[lane] = sum;
  __syncwarp();
  for (int half = 16; half > 0; half /= 2) {
    sum += partial[lane + half];
    __syncwarp();
    partial[lane] = sum;
    __syncwarp();
  }
}

__global__ void sum(const float* in, float* out) {
  __shared__ float partial[64];
  partial[threadIdx.x] = in[64 * blockIdx.x + threadIdx.x];
  __syncthreads();
  if (threadIdx.x < 32) warp_sum(partial, threadIdx.x);
  if (threadIdx.x == 0) out[blockIdx.x] = partial[0];
}

int main() {
  auto* data = zeros<float>(260);
  sum<<<4, 64>>>(data, data + 256);
  return cudaDeviceSynchronize() != cudaSuccess;
}
