// A sorting network in shared memory, where each step pairs other elements.
#include <cuda_runtime.h>

__global__ void sort(int* data) {
  __shared__ int keys[256];
  const unsigned t = threadIdx.x;
  keys[t] = data[t];
  for (unsigned length = 2; length <= 256; length *= 2) {
    for (unsigned distance = length / 2; distance > 0; distance /= 2) {
      __syncthreads();
      const unsigned partner = t ^ distance;
      if (partner > t && (keys[t] > keys[partner]) == ((t & length) == 0)) {
        const int key = keys[t];
        keys[t] = keys[partner];
        keys[partner] = key;
      }
    }
  }
  __syncthreads();
  data[t] = keys[t];
}

int main() {
  int *data, numbers[256];
  for (int i = 0; i < 256; ++i) numbers[i] = i * 7919 % 256;
  cudaMalloc(&data, sizeof numbers);
  cudaMemcpy(data, numbers, sizeof numbers, cudaMemcpyHostToDevice);
  sort<<<1, 256>>>(data);
  return cudaDeviceSynchronize() != cudaSuccess;
}
