// A chain of three launches that a graph repeats: the order of the second is wrong.
// hazard: race global
// detail: a launch reads what an earlier one may still write
#include "../program.h"

__global__ void write(int* to) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  to[i] = 1;  // fault: first
}

__global__ void between(const int* from, int* to) {
  cudaTriggerProgrammaticLaunchCompletion();
  cudaGridDependencySynchronize();
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  to[i] = from[i];
}

__global__ void multiply(const int* weight, const int* x, int* y) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  const int early = weight[i];  // fault: second
  cudaGridDependencySynchronize();
  y[i] = early * x[i];
}

int main() {
  auto* weight = zeros<int>(256);
  auto* x = zeros<int>(256);
  auto* numbers = zeros<int>(256);
  auto* y = zeros<int>(256);
  cudaStream_t stream;
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  cudaStreamCreate(&stream);
  cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
  write<<<2, 128, 0, stream>>>(weight);
  launch_dependent(stream, between, x, numbers);
  launch_dependent(stream, multiply, weight, numbers, y);
  cudaStreamEndCapture(stream, &graph);
  cudaGraphInstantiate(&exec, graph, 0);
  cudaGraphLaunch(exec, stream);
  return cudaDeviceSynchronize();
}
