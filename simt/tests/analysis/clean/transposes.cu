// Transposes through a tile, padded and not, of 32 x 32 and of bytes.
#include "../program.h"

template <class T, int padding>
__global__ void transpose(const T* in, T* out, int rows, int cols) {
  __shared__ T tile[32][32 + padding];
  int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
  for (int i = 0; i < 32; i += 8)
    if (x < cols && y + i < rows) tile[threadIdx.y + i][threadIdx.x] = in[(y + i) * cols + x];
  __syncthreads();
  x = blockIdx.y * 32 + threadIdx.x;
  y = blockIdx.x * 32 + threadIdx.y;
  for (int i = 0; i < 32; i += 8)
    if (x < rows && y + i < cols) out[(y + i) * rows + x] = tile[threadIdx.x][threadIdx.y + i];
}

int main() {
  auto* data = zeros<float>(2 * 70 * 100);
  const dim3 grid(4, 3), block(32, 8);
  transpose<float, 0><<<grid, block>>>(data, data + 7000, 70, 100);
  transpose<float, 1><<<grid, block>>>(data, data + 7000, 70, 100);
  auto* bytes = reinterpret_cast<unsigned char*>(data);
  transpose<unsigned char, 4><<<grid, block>>>(bytes, bytes + 28000, 70, 100);
  return cudaDeviceSynchronize() != cudaSuccess;
}
