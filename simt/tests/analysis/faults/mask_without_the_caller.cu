// A vote called by lanes that its mask does not name.
// hazard: mask
#include "../program.h"

__global__ void vote(int* data) {
  const int x = data[threadIdx.x];
  data[threadIdx.x] = __any_sync(0x0000ffff, x > 0);  // fault: first
}

int main() {
  auto* data = zeros<int>(32);
  vote<<<1, 32>>>(data);
  return cudaDeviceSynchronize() == cudaSuccess;
}
