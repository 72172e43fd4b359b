// Each thread writes two bytes, and one of them belongs to its neighbour.
// hazard: race shared
#include "../program.h"

__global__ void mark(unsigned char* out) {
  __shared__ unsigned char marks[65];
  const int i = threadIdx.x;
  marks[i] = i;      // fault: first
  marks[i + 1] = 0;  // fault: second
  __syncthreads();
  out[i] = marks[i];
}

int main() {
  auto* data = zeros<unsigned char>(64);
  mark<<<1, 64>>>(data);
  return cudaDeviceSynchronize() != cudaSuccess;
}
