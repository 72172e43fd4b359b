// The last block to finish adds up what all blocks left; by thread 0 alone, and by all threads with their own fences.
#include "../program.h"

__global__ void sum(const float* in, volatile float* partial, unsigned* done, float* out) {
  __shared__ float values[64];
  __shared__ bool is_last;
  const int t = threadIdx.x;
  values[t] = in[64 * blockIdx.x + t];
  __syncthreads();
  if (t == 0) {
    float total = 0;
    for (int i = 0; i < 64; ++i) total += values[i];
    partial[blockIdx.x] = total;
    __threadfence();
    is_last = atomicInc(done, gridDim.x - 1) == gridDim.x - 1;
  }
  __syncthreads();
  if (!is_last) return;
  float total = 0;
  for (unsigned i = t; i < gridDim.x; i += blockDim.x) total += partial[i];
  atomicAdd(out, total);
}

__global__ void copy_then_sum(const float* in, float* copy, unsigned* done, float* out) {
  __shared__ bool is_last;
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  copy[i] = 2 * in[i];
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) is_last = atomicAdd(done, 1) == gridDim.x - 1;
  __syncthreads();
  if (is_last)
    for (unsigned block = 0; block < gridDim.x; ++block) atomicAdd(out, copy[block * blockDim.x + threadIdx.x]);
}

int main() {
  auto* in = zeros<float>(64 * 70);
  auto* partial = zeros<float>(64 * 70);
  auto* out = zeros<float>(2);
  auto* done = zeros<unsigned>(2);
  sum<<<70, 64>>>(in, partial, done, out);
  sum<<<70, 64>>>(in, partial, done, out);
  copy_then_sum<<<70, 64>>>(in, partial, done + 1, out + 1);
  return cudaDeviceSynchronize() != cudaSuccess;
}
