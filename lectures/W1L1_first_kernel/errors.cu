// What goes wrong on the first day, one case at a time: ./errors CASE, or ./errors CASE checked
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#define CHECK(call) check((call), #call, __FILE__, __LINE__)

void check(cudaError_t error, const char* call, const char* file, int line) {
  if (error == cudaSuccess) return;
  std::printf("%s:%d: %s: %s\n", file, line, call, cudaGetErrorString(error));
  std::exit(1);
}

void say(const char* what, cudaError_t error) { std::printf("%s: %s\n", what, cudaGetErrorString(error)); }

__global__ void fill(int* to, int n, int value) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) to[i] = value;
}

// 2048 threads in a block: a block has at most 1024.
void launch(bool checked) {
  const int n = 2048;
  int *d_out, first = -1;
  CHECK(cudaMalloc(&d_out, n * sizeof(int)));
  fill<<<2, 1024>>>(d_out, n, 7);
  fill<<<1, 2048>>>(d_out, n, 8);
  if (checked) CHECK(cudaGetLastError());
  cudaMemcpy(&first, d_out, sizeof(int), cudaMemcpyDeviceToHost);
  std::printf("should be 8: %d\n", first);
}

__global__ void think_then_write(int* answer) {
  for (long long begin = clock64(); clock64() - begin < 100000000;) continue;  // some 50 ms on a GPU
  *answer = 42;
}

// The host looks at the result before the kernel has written it. The memory is the host's, and the device sees it too.
void early(bool checked) {
  int *answer, *d_answer;
  CHECK(cudaHostAlloc(&answer, sizeof(int), cudaHostAllocMapped));
  CHECK(cudaHostGetDevicePointer(&d_answer, answer, 0));
  *answer = 0;
  think_then_write<<<1, 1>>>(d_answer);
  CHECK(cudaGetLastError());
  if (checked) CHECK(cudaDeviceSynchronize());
  std::printf("the host reads %d\n", *static_cast<volatile int*>(answer));
  CHECK(cudaDeviceSynchronize());
  std::printf("after cudaDeviceSynchronize it reads %d\n", *answer);
}

__global__ void write_at(int* to, long long place) { to[place + threadIdx.x] = 1; }

// An address at which there is nothing, four terabytes past the allocation.
void address(bool checked) {
  int* d_out;
  CHECK(cudaMalloc(&d_out, 32 * sizeof(int)));
  write_at<<<1, 32>>>(d_out, 1LL << 40);
  if (checked) {
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());
  }
  say("cudaGetLastError right after the launch", cudaGetLastError());
  say("cudaDeviceSynchronize", cudaDeviceSynchronize());
  int* more;
  say("cudaMalloc, which did nothing wrong", cudaMalloc(&more, 4));
}

// One element past the end of an allocation.
void overrun(bool checked) {
  int* d_out;
  CHECK(cudaMalloc(&d_out, 32 * sizeof(int)));
  write_at<<<1, 32>>>(d_out, 1);
  if (checked) {
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());
  }
  say("cudaDeviceSynchronize", cudaDeviceSynchronize());
}

int main(int argc, char** argv) {
  std::string name = argc > 1 ? argv[1] : "";
  const bool checked = argc == 3 && argv[2] == std::string("checked");
  if (argc > 2 && !checked) name = "";
  if (name == "launch") return launch(checked), 0;
  if (name == "early") return early(checked), 0;
  if (name == "address") return address(checked), 0;
  if (name == "overrun") return overrun(checked), 0;
  std::printf("give one of launch, early, address, overrun, and checked after it if you like\n");
  return 2;
}
