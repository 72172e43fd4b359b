// A sum by a tree with a barrier in each step, over several rows with one array.
#include "../program.h"

__global__ void sums(const float* in, float* out, int rows) {
  __shared__ float partial[256];
  const int t = threadIdx.x;
  for (int row = blockIdx.x; row < rows; row += gridDim.x) {
    partial[t] = in[256 * row + t];
    __syncthreads();
    for (int half = 128; half > 0; half /= 2) {
      if (t < half) partial[t] += partial[t + half];
      __syncthreads();
    }
    if (t == 0) out[row] = partial[0];
    __syncthreads();
  }
}

int main() {
  auto* data = zeros<float>(257 * 16);
  sums<<<3, 256>>>(data, data + 256 * 16, 16);
  return cudaDeviceSynchronize() != cudaSuccess;
}
