// Dynamic shared memory cut into arrays of several types, and used again for others after a barrier.
#include <cuda_fp16.h>
#include <cstring>
#include "../program.h"

struct alignas(16) Item {
  float weights[3];
  short kind;
  char tag;
};

template <class T>
__device__ T* next_piece(char*& at, int count) {
  T* piece = reinterpret_cast<T*>(at);
  at += count * sizeof(T);
  return piece;
}

__global__ void turn(const float* in, float* out) {
  extern __shared__ __align__(16) char memory[];
  char* at = memory;
  const int t = threadIdx.x, n = blockDim.x, other = n - 1 - t;
  Item* items = next_piece<Item>(at, n);
  float* values = next_piece<float>(at, n);
  __half* halves = next_piece<__half>(at, n);
  unsigned char* bytes = next_piece<unsigned char>(at, n);
  items[t].weights[1] = in[t];
  items[t].kind = 3;
  values[t] = in[t];
  halves[t] = __float2half(in[t]);
  bytes[t] = t;
  __syncthreads();
  const float sum = items[other].weights[1] + items[other].kind + values[other] + __half2float(halves[other]);
  const int byte = bytes[other];
  __syncthreads();
  double* wide = reinterpret_cast<double*>(memory);
  wide[t] = sum + byte;
  __syncthreads();
  out[t] = wide[other];
  __syncthreads();
  for (int i = t; i < 4 * n; i += n) memory[i] = i;
  __syncthreads();
  unsigned word;
  std::memcpy(&word, memory + 4 * other, sizeof word);
  out[n + t] = word;
}

int main() {
  constexpr int kThreads = 96;
  auto* data = zeros<float>(3 * kThreads);
  turn<<<1, kThreads, kThreads*(sizeof(Item) + 4 + 2 + 1)>>>(data, data + kThreads);
  return cudaDeviceSynchronize() != cudaSuccess;
}
