// Functions that take and return structures of the student's own.
#include "../program.h"

struct Complex {
  float re, im;
};
struct Row {
  float of[5];
};

__device__ Complex times(Complex a, Complex b) { return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re}; }

__device__ Row scaled(Row row, float factor) {
  for (float& x : row.of) x = x > 0 ? x * factor : x / (1 + x * x);
  return row;
}

__global__ void multiply(const Complex* a, Complex* out) {
  __shared__ Complex tile[64];
  tile[threadIdx.x] = times(a[threadIdx.x], a[64 + threadIdx.x]);
  __syncthreads();
  out[threadIdx.x] = tile[63 - threadIdx.x];
}

__global__ void scale(const Row* a, Row* out) {
  __shared__ Row tile[64];
  tile[threadIdx.x] = scaled(a[threadIdx.x], 2.0f);
  __syncthreads();
  out[threadIdx.x] = scaled(tile[63 - threadIdx.x], 3.0f);
}

int main() {
  auto* data = zeros<float>(4096);
  multiply<<<1, 64>>>(reinterpret_cast<Complex*>(data), reinterpret_cast<Complex*>(data + 2048));
  scale<<<1, 64>>>(reinterpret_cast<Row*>(data), reinterpret_cast<Row*>(data + 2048));
  return cudaDeviceSynchronize() != cudaSuccess;
}
