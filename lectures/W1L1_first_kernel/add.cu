// A whole program: two vectors go to the GPU, their sum comes back.
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

// Ends the program with a sentence if a call has failed.
#define CHECK(call) check((call), #call, __FILE__, __LINE__)

void check(cudaError_t error, const char* call, const char* file, int line) {
  if (error == cudaSuccess) return;
  std::printf("%s:%d: %s: %s\n", file, line, call, cudaGetErrorString(error));
  std::exit(1);
}

__global__ void add(const float* a, const float* b, float* c, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) c[i] = a[i] + b[i];
}

int main() {
  const int n = 1000;
  std::vector<float> a(n), b(n), c(n);
  for (int i = 0; i < n; ++i) a[i] = i, b[i] = 2 * i;

  // Memory of the device. Names that begin with d_ are its addresses: only kernels may look there.
  float *d_a, *d_b, *d_c;
  const size_t bytes = n * sizeof(float);
  CHECK(cudaMalloc(&d_a, bytes));
  CHECK(cudaMalloc(&d_b, bytes));
  CHECK(cudaMalloc(&d_c, bytes));

  // Copies to the device: first where to, then where from.
  CHECK(cudaMemcpy(d_a, a.data(), bytes, cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(d_b, b.data(), bytes, cudaMemcpyHostToDevice));

  // One thread for each element: as many blocks of 256 threads as it takes, rounded up.
  const int threads = 256, blocks = (n + threads - 1) / threads;
  add<<<blocks, threads>>>(d_a, d_b, d_c, n);
  CHECK(cudaGetLastError());       // could the kernel be launched?
  CHECK(cudaDeviceSynchronize());  // did it end without a fault?

  CHECK(cudaMemcpy(c.data(), d_c, bytes, cudaMemcpyDeviceToHost));
  CHECK(cudaFree(d_a));
  CHECK(cudaFree(d_b));
  CHECK(cudaFree(d_c));

  int wrong = 0;
  for (int i = 0; i < n; ++i) wrong += !(c[i] == 3 * i);
  std::printf("%d blocks of %d threads added %d elements, %d of them wrong\n", blocks, threads, n, wrong);
  return wrong > 0;
}
