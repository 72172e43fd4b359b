// What CUDA's guide makes of atomicCAS: the first look is a plain load, and the swap finds out whether it was stale.
#include "../program.h"

__device__ float atomic_max(float* address, float value) {
  int* word = reinterpret_cast<int*>(address);
  int old = *word, assumed;
  do {
    assumed = old;
    old = atomicCAS(word, assumed, __float_as_int(fmaxf(value, __int_as_float(assumed))));
  } while (assumed != old);
  return __int_as_float(old);
}

__global__ void largest(float* out, int* taken, int most) {
  __shared__ float of_block;
  if (threadIdx.x == 0) of_block = 0;
  __syncthreads();
  atomic_max(&of_block, static_cast<float>(threadIdx.x));
  __syncthreads();
  if (threadIdx.x == 0) atomic_max(out, of_block);
  if (*taken < most) atomicAdd(taken, 1);
}

int main() {
  auto* out = zeros<float>(2);
  largest<<<4, 96>>>(out, reinterpret_cast<int*>(out + 1), 1000);
  return cudaDeviceSynchronize() != cudaSuccess;
}
