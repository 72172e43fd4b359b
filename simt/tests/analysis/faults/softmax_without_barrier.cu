// The maximum lies in the first element, which a thread overwrites before all others have read it.
// hazard: race shared
// detail: write after read
#include "../program.h"

__global__ void softmax(const float* in, float* out) {
  __shared__ float values[128];
  const int t = threadIdx.x;
  values[t] = in[t];
  __syncthreads();
  for (int k = 64; k; k /= 2) {
    if (t < k) values[t] = fmaxf(values[t], values[t + k]);
    __syncthreads();
  }
  const float largest = values[0];    // fault: first
  values[t] = expf(in[t] - largest);  // fault: second
  __syncthreads();
  for (int k = 64; k; k /= 2) {
    if (t < k) values[t] += values[t + k];
    __syncthreads();
  }
  out[t] = expf(in[t] - largest) / values[0];
}

int main() {
  auto* data = zeros<float>(256);
  softmax<<<1, 128>>>(data, data + 128);
  return cudaDeviceSynchronize() != cudaSuccess;
}
