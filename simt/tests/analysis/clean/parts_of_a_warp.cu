// Lanes that diverge and meet in parts: each part exchanges values through shared memory with a __syncwarp of its own.
#include "../program.h"

__global__ void rotate(const int* in, int* out) {
  __shared__ int row[64];
  const int lane = threadIdx.x % 32, base = threadIdx.x - lane;
  row[threadIdx.x] = in[threadIdx.x];
  if (lane < 12) {
    __syncwarp(0x00000fff);
    out[threadIdx.x] = row[base + (lane + 1) % 12];
    __syncwarp(0x00000fff);
    row[threadIdx.x] = 0;
  } else {
    __syncwarp(0xfffff000);
    out[threadIdx.x] = row[base + 12 + (lane - 11) % 20];
  }
  __syncwarp();
  out[64 + threadIdx.x] = row[base + 31 - lane];
}

int main() {
  auto* data = zeros<int>(192);
  rotate<<<1, 64>>>(data, data + 64);
  return cudaDeviceSynchronize() != cudaSuccess;
}
