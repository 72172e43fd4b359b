// A histogram that starts counting from whatever is in shared memory.
// hazard: uninitialized shared
#include <cuda_runtime.h>

__global__ void histogram(const unsigned char* in, unsigned* out) {
  __shared__ unsigned bins[256];
  atomicAdd(&bins[in[threadIdx.x]], 1);  // fault: first
  __syncthreads();
  if (threadIdx.x == 0) atomicAdd(&out[0], bins[0]);
}

int main() {
  unsigned char* in;
  unsigned* out;
  cudaMalloc(&in, 256);
  cudaMalloc(&out, 256 * sizeof(unsigned));
  cudaMemset(in, 0, 256);
  cudaMemset(out, 0, 256 * sizeof(unsigned));
  histogram<<<1, 256>>>(in, out);
  return cudaDeviceSynchronize() != cudaSuccess;
}
