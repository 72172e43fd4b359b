// Where does a thread run? Prints it for the first and the last thread of each warp: ./who_am_i BLOCKS THREADS
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>

// The number of the SM that runs this thread. CUDA C++ has no name for it, so this asks the GPU in its own language;
// the CPU device has no SMs.
__device__ int sm_number() {
  int number = 0;
#ifndef __SIMT__
  asm("mov.u32 %0, %%smid;" : "=r"(number));
#endif
  return number;
}

__global__ void who_am_i() {
  int thread = threadIdx.x;                   // within its block
  int warp = thread / warpSize;               // warpSize is 32
  int lane = thread % warpSize;               // the thread's place in its warp
  bool last = threadIdx.x == blockDim.x - 1;  // of its block
  int element = blockIdx.x * blockDim.x + thread;
  if (lane == 0 || lane == warpSize - 1 || last)
    printf("block %d on SM %d: thread %2d is lane %2d of warp %d, and takes element %d\n", blockIdx.x, sm_number(),
           thread, lane, warp, element);
}

int main(int argc, char** argv) {
  int blocks = argc > 1 ? std::atoi(argv[1]) : 2;
  int threads = argc > 2 ? std::atoi(argv[2]) : 40;
  std::printf("a grid of %d blocks of %d threads\n", blocks, threads);
  std::fflush(stdout);
  who_am_i<<<blocks, threads>>>();
  cudaError_t error = cudaDeviceSynchronize();
  if (error == cudaSuccess) error = cudaGetLastError();
  if (error != cudaSuccess) std::printf("%s\n", cudaGetErrorString(error));
  return error != cudaSuccess;
}
