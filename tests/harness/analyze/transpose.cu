// A transpose through a tile of shared memory. PADDING 0 leaves every column of the tile in one bank.
#include <cstdio>

constexpr int kTile = 32, kSize = 64;

__global__ void transpose(const float* in, float* out) {
  __shared__ float tile[kTile][kTile + PADDING];
  const int x = blockIdx.x * kTile, y = blockIdx.y * kTile;
  tile[threadIdx.y][threadIdx.x] = in[(y + threadIdx.y) * kSize + x + threadIdx.x];
  __syncthreads();
  out[(x + threadIdx.y) * kSize + y + threadIdx.x] = tile[threadIdx.x][threadIdx.y];
}

int main(int argc, char**) {
  float *in, *out;
  cudaMalloc(&in, kSize * kSize * sizeof(float));
  cudaMalloc(&out, kSize * kSize * sizeof(float));
  cudaMemset(in, 0, kSize * kSize * sizeof(float));
  transpose<<<dim3(kSize / kTile, kSize / kTile), dim3(kTile, kTile)>>>(in, out);
  std::printf("%s, %d arguments\n", cudaGetErrorString(cudaDeviceSynchronize()), argc - 1);
  std::fprintf(stderr, "to stderr\n");
}
