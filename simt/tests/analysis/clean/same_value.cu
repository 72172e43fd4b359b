// Many threads set one flag to the same value, in one instruction, from several warps and blocks.
#include "../program.h"

__global__ void contains(const int* in, int wanted, int* found, int* found_by_block) {
  __shared__ int here;
  if (threadIdx.x == 0) here = 0;
  __syncthreads();
  if (in[blockIdx.x * blockDim.x + threadIdx.x] == wanted) {
    here = 1;
    *found = 1;
  }
  __syncthreads();
  if (threadIdx.x == 0) found_by_block[blockIdx.x] = here;
}

int main() {
  auto* data = zeros<int>(600);
  contains<<<4, 128>>>(data, 0, data + 512, data + 513);
  return cudaDeviceSynchronize() != cudaSuccess;
}
