// A kernel with a race, then an end that its argument names.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

__global__ void races(int* a) { a[0] = threadIdx.x; }
__global__ void leaves_shared(int* a, int i) {
  __shared__ int s[32];
  s[threadIdx.x] = 1;
  if (threadIdx.x == 0) s[i] = 2;
  __syncthreads();
  a[threadIdx.x] = s[threadIdx.x];
}
__global__ void leaves_global(int* a, int i) { a[i] = 1; }
__global__ void spins(volatile int* a) {
  while (!a[1]) {
  }
}
__global__ void comes_after(int* a) { a[threadIdx.x] = 3; }

int main(int, char** arguments) {
  const char* how = arguments[1];
  int *a, *later;
  cudaMalloc(&a, 128);
  cudaMemset(a, 0, 128);
  races<<<1, 64>>>(a);
  if (!strcmp(how, "throw")) throw std::runtime_error("text");
  if (!strcmp(how, "abort")) abort();
  if (!strcmp(how, "fault")) *reinterpret_cast<volatile int*>(how - how) = 1;
  if (!strcmp(how, "quick")) quick_exit(3);
  if (!strcmp(how, "shared")) leaves_shared<<<1, 32>>>(a, 32);
  if (!strcmp(how, "global")) leaves_global<<<1, 1>>>(a, 32);
  if (!strcmp(how, "spin")) {
    puts("spins");
    fflush(stdout);
    spins<<<1, 1>>>(a);
  }
  cudaMalloc(&later, 128);
  comes_after<<<1, 32>>>(later);
  return cudaDeviceSynchronize() == cudaSuccess ? 0 : 4;
}
