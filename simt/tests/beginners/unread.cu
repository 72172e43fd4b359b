// Launches and calls that are refused; the program's argument chooses one.
#include <cstdlib>
#include <vector>

__constant__ float table[4];
__global__ void k(int* d) {
  if (d) d[threadIdx.x] = 1;
}
__global__ void big(float* d) {
  extern __shared__ float s[];
  if (d) s[0] = 0;
}
__global__ void use(float* d) { d[0] = table[0]; }

int main(int, char** argv) {
  float *d, h[100] = {};
  int* i;
  cudaMalloc(&d, 400);
  i = reinterpret_cast<int*>(d);
  cudaEvent_t event;
  const size_t huge = size_t{1} << 50;
  // clang-format off
  switch (std::atoi(argv[1])) {
    case 1: k<<<1, 4096>>>(i); cudaDeviceSynchronize(); break;  // a block too large
    case 2: big<<<1, 32, 64 * 1024>>>(d); break;  // too much shared memory
    case 3: use<<<1, 1>>>(std::vector<float>(100).data()); break;  // host memory as an argument
    case 4: cudaFree(d), cudaFree(d); if (d) cudaFree(d); break;  // double free
    case 5: { cudaFree(h); break; }  // free of host memory
    case 6: k<<<100 / 256, 256>>>(i); break;  // a grid of 0 blocks
    case 7: { cudaMemcpy(table, h, sizeof table, cudaMemcpyHostToDevice); use<<<1, 1>>>(d); break; }  // copy to a constant's name
    case 8: { cudaMemcpy(h, d, 400, cudaMemcpyHostToDevice); break; }  // swapped copy
    case 9: { cudaMemcpy(d, h, 4000, cudaMemcpyHostToDevice); break; }  // copy past the end
    case 10: { cudaMalloc(&d, huge); use<<<1, 1>>>(d); break; }  // memory that was not there
    case 11: for (int n = 0; n < 5; ++n) k<<<1, 4096>>>(i); return cudaDeviceReset();  // lost by a reset
    case 12: k<<<1, 4096>>>(i); return cudaMalloc(&d, huge) != cudaGetLastError();  // lost by another error
    case 13: k<<<1, 4096>>>(i); return cudaGetLastError() != cudaErrorInvalidValue;  // asked for after the launch
    case 14: { cudaError_t e = cudaFree(h); return e == cudaSuccess || cudaMemcpy(h, d, 400, cudaMemcpyHostToDevice) == cudaSuccess; }  // codes that are tested
    case 15: { cudaFree(h); cudaFree(d); return cudaPeekAtLastError() == cudaSuccess; }  // asked for at the end
    case 16: { cudaEventCreate(&event); cudaEventRecord(event); cudaEventQuery(event); (void)cudaFree(h); break; }  // no error, or cast to void
  }
}
