// Bugs of kernels, and what the device says of them; the program's argument chooses one.
#include <cstdio>
#include <cstdlib>

__global__ void dot(const int* a, int* sum) { sum[0] = sum[0] + a[threadIdx.x]; }
__global__ void neighbour(int* a) { a[threadIdx.x] += a[threadIdx.x + 1]; }
// clang-format off
__global__ void barriers(int *a) { if (threadIdx.x % 2) { a[threadIdx.x] = 1; __syncthreads(); } else { a[threadIdx.x] = 2; __syncthreads(); } }
// clang-format on
__global__ void wrapped(float* a, int n) { a[n * n] = 1; }
__global__ void half_a_warp(int* a) {
  int value = a[threadIdx.x];
  if (threadIdx.x < 16) value += __shfl_down_sync(0xffffffff, value, 8);
  __syncthreads();
  a[threadIdx.x] = value;
}
__global__ void four(float4* a) { a[0] = make_float4(1, 2, 3, 4); }
__global__ void past_a_local_array(int* a, int n) {
  int own[8];
  for (int i = 0; i <= n; ++i) own[i] = i;
  for (int i = 0; i < n; ++i) a[i] = own[i];
}
__global__ void into_its_neighbour(int* a, int n) {
  __shared__ int first[32], second[1];
  if (threadIdx.x == 0) second[0] = 7;
  __syncthreads();
  first[threadIdx.x + n] = 1;
  __syncthreads();
  a[threadIdx.x] = first[threadIdx.x] + second[0];
}
__global__ void to_the_end(int* a, int n) {
  extern __shared__ int dynamic[];
  int own[8];
  own[n & 7] = 1;
  dynamic[threadIdx.x] = static_cast<int>(&own[8] - own);
  a[threadIdx.x] = own[n & 7] + dynamic[threadIdx.x];
}

int main(int, char** argv) {
  int *a, *sum;
  cudaMalloc(&a, 4096);
  cudaMalloc(&sum, 4);
  cudaMemset(a, 0, 4096);
  cudaMemset(sum, 0, 4);
  float* large;
  // clang-format off
  switch (std::atoi(argv[1])) {
    case 1: dot<<<1, 32>>>(a, sum); break;  // a sum by one warp
    case 2: dot<<<1, 256>>>(a, sum); break;  // a sum by one block
    case 3: neighbour<<<1, 32>>>(a); break;  // a stencil in place
    case 4: barriers<<<1, 64>>>(a); break;  // two barriers of one line
    case 5: cudaMalloc(&large, size_t{3} << 30); wrapped<<<1, 1>>>(large, 46341); break;  // an int index that overflows
    case 6: half_a_warp<<<1, 32>>>(a); break;  // a mask of lanes that do not come
    case 7: four<<<1, 1>>>(reinterpret_cast<float4 *>(a + 1)); break;  // a vector at a wrong address
    case 8: past_a_local_array<<<1, 1>>>(a, 8); break;  // past a local array
    case 9: into_its_neighbour<<<1, 32>>>(a, 1); break;  // past a shared array
    case 10: to_the_end<<<1, 32, 128>>>(a, 1); break;  // arrays to their ends
  }
  // clang-format on
  return cudaDeviceSynchronize() != cudaSuccess;
}
