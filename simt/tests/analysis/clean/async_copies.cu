// Two buffers filled by cp.async while the other one is used.
#include <cuda_pipeline.h>
#include "../program.h"

__global__ void reverse_rows(const int4* in, int4* out, int rows) {
  __shared__ int4 row[2][64];
  const int i = threadIdx.x;
  __pipeline_memcpy_async(&row[0][i], &in[i], sizeof(int4));
  __pipeline_commit();
  for (int r = 0; r < rows; ++r) {
    if (r + 1 < rows) __pipeline_memcpy_async(&row[(r + 1) % 2][i], &in[64 * (r + 1) + i], sizeof(int4));
    __pipeline_commit();
    __pipeline_wait_prior(1);
    __syncthreads();
    out[64 * r + i] = row[r % 2][63 - i];
    __syncthreads();
  }
}

__global__ void own_elements(const int* in, int* out, int rows) {  // each thread uses what it has copied itself
  __shared__ int row[64];
  const int i = threadIdx.x;
  for (int r = 0; r < rows; ++r) {
    __pipeline_memcpy_async(&row[i], &in[64 * r + i], sizeof(int), i == 7 ? 4 : 0);
    __pipeline_commit();
    __pipeline_wait_prior(0);
    out[64 * r + i] = row[i];
  }
}

int main() {
  auto* data = zeros<int4>(1024);
  reverse_rows<<<1, 64>>>(data, data + 512, 8);
  own_elements<<<1, 64>>>(&data->x, &data[512].x, 8);
  return cudaDeviceSynchronize() != cudaSuccess;
}
