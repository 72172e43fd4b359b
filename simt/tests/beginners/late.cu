// What the host does before a kernel has ended; the program's argument chooses one.
#include <cstdio>
#include <cstdlib>

__global__ void fill(int* a) { a[threadIdx.x] = 5; }
__global__ void read(const int* a, int* b) { b[threadIdx.x] = a[threadIdx.x]; }
__global__ void set(volatile int* flag) { *flag = 1; }
__global__ void hello() { printf("hello %d\n", threadIdx.x); }

int main(int, char** argv) {
  int *managed, *mapped, *device, sum = 0;
  cudaMallocManaged(&managed, 400);
  cudaHostAlloc(&mapped, 400, cudaHostAllocMapped);
  cudaMalloc(&device, 400);
  cudaEvent_t event;
  cudaEventCreate(&event);
  // clang-format off
  switch (std::atoi(argv[1])) {
    case 1: fill<<<1, 100>>>(managed); sum = managed[7]; break;  // managed memory without a wait
    case 2: fill<<<1, 100>>>(mapped); mapped[0] = 3; break;  // mapped memory without a wait
    case 3: set<<<1, 1>>>(mapped); for (int n = 0; n < 9 && *static_cast<volatile int *>(mapped) != 2; ++n) {} break;  // a flag of a running kernel
    case 4: hello<<<1, 2>>>(); break;  // printing without a wait
    case 5: fill<<<1, 100>>>(managed); cudaDeviceSynchronize(); sum = managed[7]; hello<<<1, 1>>>(); cudaFree(device); break;  // waits of the device
    case 6: fill<<<1, 100>>>(mapped); cudaEventRecord(event); cudaEventSynchronize(event); sum = mapped[7]; break;  // a wait for an event
    case 7: managed[7] = 1; read<<<1, 100>>>(managed, device); sum = managed[7]; break;  // memory that is only read
  }
  // clang-format on
  return sum < 0;
}
