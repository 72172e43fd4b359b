// Two buffers: the next copy goes into the buffer that slower warps still read.
// hazard: race shared
#include <cuda_pipeline.h>
#include "../program.h"

__global__ void reverse_rows(const int* in, int* out, int rows) {
  __shared__ int row[2][64];
  const int i = threadIdx.x;
  __pipeline_memcpy_async(&row[0][i], &in[i], sizeof(int));
  __pipeline_commit();
  for (int r = 0; r < rows; ++r) {
    if (r + 1 < rows)
      __pipeline_memcpy_async(&row[(r + 1) % 2][i], &in[64 * (r + 1) + i], sizeof(int));  // fault: second
    __pipeline_commit();
    __pipeline_wait_prior(1);
    __syncthreads();
    out[64 * r + i] = row[r % 2][63 - i];  // fault: first
  }
}

int main() {
  auto* data = zeros<int>(512);
  reverse_rows<<<1, 64>>>(data, data + 256, 4);
  return cudaDeviceSynchronize() != cudaSuccess;
}
