// Tiles of two matrices in dynamic shared memory, and sums in registers.
#include "../program.h"

__global__ void multiply(const float* a, const float* b, float* c, int n) {
  extern __shared__ float memory[];
  float(*tile_a)[16] = reinterpret_cast<float(*)[16]>(memory);
  float(*tile_b)[16] = tile_a + 16;
  const int x = threadIdx.x, y = threadIdx.y, row = blockIdx.y * 16 + y, col = blockIdx.x * 16 + x;
  float sum = 0;
  for (int k = 0; k < n; k += 16) {
    tile_a[y][x] = row < n && k + x < n ? a[row * n + k + x] : 0;
    tile_b[y][x] = k + y < n && col < n ? b[(k + y) * n + col] : 0;
    __syncthreads();
    for (int i = 0; i < 16; ++i) sum += tile_a[y][i] * tile_b[i][x];
    __syncthreads();
  }
  if (row < n && col < n) c[row * n + col] = sum;
}

int main() {
  constexpr int n = 40;
  auto* data = zeros<float>(3 * n * n);
  multiply<<<dim3(3, 3), dim3(16, 16), 2 * 256 * sizeof(float)>>>(data, data + n * n, data + 2 * n * n, n);
  return cudaDeviceSynchronize() != cudaSuccess;
}
