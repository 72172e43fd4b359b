// The tile is read before other warps have written their part. The CPU device runs one warp after the other, so that
// it sees the reads first; the program writes first.
// hazard: race shared
// detail: read after write
#include "../program.h"

__global__ void transpose(const float* in, float* out) {
  __shared__ float tile[32][33];
  for (int y = threadIdx.y; y < 32; y += 8) tile[y][threadIdx.x] = in[32 * y + threadIdx.x];   // fault: first
  for (int y = threadIdx.y; y < 32; y += 8) out[32 * y + threadIdx.x] = tile[threadIdx.x][y];  // fault: second
}

int main() {
  auto* data = zeros<float>(2048);
  transpose<<<1, dim3(32, 8)>>>(data, data + 1024);
  return cudaDeviceSynchronize() != cudaSuccess;
}
