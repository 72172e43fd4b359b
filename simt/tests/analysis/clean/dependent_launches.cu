// Dependent launches in their right order: each waits before it lets the next one start, and reads early only what no
// launch that may still run writes.
#include "../program.h"

__global__ void write(int* to) {
  cudaTriggerProgrammaticLaunchCompletion();
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  to[i] = 1;
}

__global__ void between(const int* from, int* to) {
  cudaGridDependencySynchronize();
  cudaTriggerProgrammaticLaunchCompletion();
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  to[i] = from[i];
}

// One thread waits for its block.
__global__ void one_waits(const int* from, int* to) {
  if (threadIdx.x == 0) cudaGridDependencySynchronize();
  __syncthreads();
  cudaTriggerProgrammaticLaunchCompletion();
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  to[i] = from[i];
}

// No block lets the next launch start before it ends, and only the first one waits.
__global__ void first_block_waits(int* to) {
  if (blockIdx.x > 0) return;
  cudaGridDependencySynchronize();
  to[threadIdx.x] = 2;
}

__global__ void multiply(const int* weight, const int* x, int* y) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  const int early = weight[i];
  cudaGridDependencySynchronize();
  y[i] = early * x[i];
}

__global__ void add_late(const int* a, int* to) {
  cudaGridDependencySynchronize();
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  to[i] += a[i];
}

int main() {
  auto* weight = zeros<int>(256);
  auto* x = zeros<int>(256);
  auto* numbers = zeros<int>(256);
  auto* y = zeros<int>(256);
  cudaStream_t own, other;
  cudaStreamCreateWithFlags(&own, cudaStreamNonBlocking), cudaStreamCreate(&other);
  for (cudaStream_t stream : {cudaStream_t{nullptr}, own, other}) {
    write<<<2, 128, 0, stream>>>(weight);
    launch_dependent(stream, between, x, numbers);
    launch_dependent(stream, multiply, weight, numbers, y);
    launch_dependent(stream, between, y, numbers);

    launch_dependent(stream, write, weight);  // it reads nothing, and a copy follows
    cudaMemcpyAsync(numbers, x, 1024, cudaMemcpyDefault, stream);
    launch_dependent(stream, multiply, weight, numbers, y);
    cudaStreamSynchronize(stream);

    write<<<2, 128, 0, stream>>>(weight);
    launch_dependent(stream, one_waits, x, numbers);
    launch_dependent(stream, multiply, weight, numbers, y);

    write<<<2, 128, 0, stream>>>(weight);
    launch_dependent(stream, first_block_waits, numbers);
    launch_dependent(stream, multiply, weight, numbers, y);

    write<<<2, 128, 0, stream>>>(weight);
    cudaStreamSynchronize(stream);
    launch_dependent(stream, multiply, weight, numbers, y);
    launch_dependent(stream, add_late, y, numbers);
    cudaStreamSynchronize(stream);
  }
  return cudaDeviceSynchronize();
}
