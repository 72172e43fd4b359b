// A row is reversed through shared memory; no thread waits until all elements are there.
// hazard: race shared
// detail: read after write
#include "../program.h"

__global__ void reverse(const float* in, float* out) {
  __shared__ float row[128];
  const int i = threadIdx.x;
  row[i] = in[i];         // fault: first
  out[i] = row[127 - i];  // fault: second
}

int main() {
  auto* data = zeros<float>(256);
  reverse<<<1, 128>>>(data, data + 128);
  return cudaDeviceSynchronize() != cudaSuccess;
}
