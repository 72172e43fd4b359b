// The first kernel: eight threads on the GPU each print a line.
#include <cuda_runtime.h>

#include <cstdio>

__global__ void hello() { printf("Hello from thread %d of block %d\n", threadIdx.x, blockIdx.x); }

int main() {
  hello<<<2, 4>>>();        // two blocks of four threads
  cudaDeviceSynchronize();  // waits for them; without it the program may end before they have printed
}
