// A tile is overwritten before all threads have read it.
// hazard: race shared
// detail: write after read
#include "../program.h"

__global__ void reverse_rows(const float* in, float* out, int rows) {
  __shared__ float row[64];
  const int i = threadIdx.x;
  for (int r = 0; r < rows; ++r) {
    row[i] = in[64 * r + i];  // fault: second
    __syncthreads();
    out[64 * r + i] = row[63 - i];  // fault: first
  }
}

int main() {
  auto* data = zeros<float>(512);
  reverse_rows<<<1, 64>>>(data, data + 256, 4);
  return cudaDeviceSynchronize() != cudaSuccess;
}
