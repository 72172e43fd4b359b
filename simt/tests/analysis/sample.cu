// What sample_dump.json speaks of: a transpose through an unpadded tile, whose barrier is missing.
#include <cstdio>

constexpr int kTile = 32;

__global__ void transpose(const float* in, float* out, int n) {
  __shared__ float tile[kTile][kTile];
  const int x = blockIdx.x * kTile + threadIdx.x, y = blockIdx.y * kTile + threadIdx.y;
  tile[threadIdx.y][threadIdx.x] = in[y * n + x];
  out[y * n + x] = tile[threadIdx.x][threadIdx.y];
}

__global__ void column_sums(const float* in, float* out, int n) {
  float sum = 0.0f;
  for (int i = 0; i < n; ++i) sum += in[threadIdx.x * n + i];
  if (threadIdx.x % 2 == 0) out[threadIdx.x] = sum;
  __syncthreads();
}

int main() {
  float *in, *out;
  cudaMalloc(&in, 64 * 64 * sizeof(float));
  cudaMalloc(&out, 64 * 64 * sizeof(float));
  cudaMemset(in, 0, 64 * 64 * sizeof(float));
  transpose<<<dim3(2, 2), dim3(32, 32)>>>(in, out, 64);
  column_sums<<<1, 32>>>(in, out, 64);
  printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
}
