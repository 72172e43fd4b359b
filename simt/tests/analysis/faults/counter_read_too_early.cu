// A counter in shared memory is read before all have counted; in the next round its reader counts as well.
// hazard: race shared
#include "../program.h"

__global__ void count(const int* in, int* out, int rounds) {
  __shared__ int positive;
  for (int round = 0; round < rounds; ++round) {
    if (threadIdx.x == 0) positive = 0;
    __syncthreads();
    if (in[64 * round + threadIdx.x] >= 0) atomicAdd(&positive, 1);  // fault: first
    out[64 * round + threadIdx.x] = positive;                        // fault: second
    __syncthreads();
  }
}

int main() {
  auto* data = zeros<int>(512);
  count<<<1, 64>>>(data, data + 256, 4);
  return cudaDeviceSynchronize() != cudaSuccess;
}
