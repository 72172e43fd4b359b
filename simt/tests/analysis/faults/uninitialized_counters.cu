// A histogram that starts counting from whatever is in shared memory.
// hazard: uninitialized shared
#include "../program.h"

__global__ void histogram(const unsigned char* in, unsigned* out) {
  __shared__ unsigned bins[256];
  atomicAdd(&bins[in[threadIdx.x]], 1);  // fault: first
  __syncthreads();
  if (threadIdx.x == 0) atomicAdd(&out[0], bins[0]);
}

int main() {
  auto* in = zeros<unsigned char>(256);
  auto* out = zeros<unsigned>(256);
  histogram<<<1, 256>>>(in, out);
  return cudaDeviceSynchronize() != cudaSuccess;
}
