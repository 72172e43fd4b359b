// What the scheduler promises: barriers, orders, faults that end with a sentence, results that do not depend on cores.
#include <sys/wait.h>
#include <unistd.h>

#include "simt/stats.h"
#include "testing.h"

__global__ void block_sum(const int* in, int* out) {
  __shared__ int s[128];
  const int t = threadIdx.x;
  s[t] = in[blockIdx.x * blockDim.x + t];
  __syncthreads();
  for (int half = blockDim.x / 2; half > 0; half /= 2) {
    if (t < half) s[t] += s[t + half];
    __syncthreads();
  }
  if (t == 0) out[blockIdx.x] = s[0];
}

TEST_CASE("a block sums through barriers, and the device counts them") {
  constexpr int kBlocks = 50;
  std::vector<int> in(kBlocks * 128);
  for (size_t i = 0; i < in.size(); ++i) in[i] = int(i % 1000);
  Device<int> device_in(in.size()), out(kBlocks);
  cudaMemcpy(device_in.data, in.data(), in.size() * sizeof(int), cudaMemcpyHostToDevice);
  block_sum<<<kBlocks, 128>>>(device_in.data, out.data);
  const auto sums = out.host();
  for (int b = 0; b < kBlocks; ++b) {
    int expected = 0;
    for (int i = 0; i < 128; ++i) expected += in[size_t(b * 128 + i)];
    CHECK(sums[size_t(b)] == expected);
  }
  CHECK(simt::last_launch_stats().barriers == kBlocks * 8);
  CHECK(simt::last_launch_stats().threads == kBlocks * 128);
}

__global__ void neighbour_without_barrier(int* out) {
  __shared__ int s[64];
  const int t = threadIdx.x;
  s[t] = t;
  out[t] = t > 0 ? s[t - 1] : 0;
}

TEST_CASE("a process that was forked runs kernels, too") {
  constexpr int kBlocks = 50;  // enough for all worker threads, none of which is in the new process
  Device<int> in(kBlocks * 128), out(kBlocks);
  cudaMemset(in.data, 0, kBlocks * 128 * sizeof(int));
  block_sum<<<kBlocks, 128>>>(in.data, out.data);
  CHECK(cudaDeviceSynchronize() == cudaSuccess);
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    cudaMemset(out.data, 1, kBlocks * sizeof(int));
    block_sum<<<kBlocks, 128>>>(in.data, out.data);
    _exit(cudaDeviceSynchronize() == cudaSuccess && out.host() == std::vector<int>(kBlocks, 0) ? 7 : 1);
  }
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child);
  CHECK((WIFEXITED(status) && WEXITSTATUS(status) == 7));
}

TEST_CASE("a missing barrier is right in forward order by luck and wrong reversed") {
  Device<int> out(64);
  {
    Environment order("SIMT_ORDER", "forward");
    neighbour_without_barrier<<<1, 64>>>(out.data);
    CHECK(out.host()[5] == 4);
  }
  Environment order("SIMT_ORDER", "reversed");
  neighbour_without_barrier<<<1, 64>>>(out.data);
  CHECK(out.host()[5] == -1);  // what poison is as an int
}

__global__ void record_order(int* order, int* next) { order[atomicAdd(next, 1)] = int(threadIdx.x); }

TEST_CASE("SIMT_ORDER is honoured at each launch, and a seed repeats") {
  const auto run = [](const char* value) {
    Environment order("SIMT_ORDER", value);
    Device<int> out(96), next(1);
    cudaMemset(next.data, 0, sizeof(int));
    record_order<<<1, 96>>>(out.data, next.data);
    return out.host();
  };
  const auto forward = run("forward"), reversed = run("reversed"), seven = run("7");
  for (int i = 0; i < 96; ++i) CHECK(forward[size_t(i)] == i);
  for (int i = 0; i < 96; ++i) CHECK(reversed[size_t(i)] == 95 - i);
  CHECK(seven == run("7"));
  CHECK(seven != run("8"));
  CHECK(seven != forward);
}

__global__ void float_atomics(float* sum, int* tickets) {
  atomicAdd(sum, 1.0f / float(1 + blockIdx.x * blockDim.x + threadIdx.x));
  if (threadIdx.x == 0) tickets[blockIdx.x] = atomicAdd(&tickets[gridDim.x], 1);
}

TEST_CASE("global atomics happen in block order, whatever the number of cores") {
  Environment order("SIMT_ORDER", "forward");
  Device<float> sum(1);
  Device<int> tickets(1001);
  cudaMemset(sum.data, 0, sizeof(float));
  cudaMemset(tickets.data, 0, 1001 * sizeof(int));
  float_atomics<<<1000, 64>>>(sum.data, tickets.data);
  float expected = 0;
  for (int i = 0; i < 64000; ++i) expected += 1.0f / float(1 + i);
  CHECK(sum.host()[0] == expected);
  const auto order_taken = tickets.host();
  for (int b = 0; b < 1000; ++b) CHECK(order_taken[size_t(b)] == b);
}

__global__ void some_threads_exit(int exiting) {
  if (int(threadIdx.x) < exiting) return;
  __syncthreads();
}

TEST_CASE("a barrier that some threads never reach") {
  const std::string text = fault_of(cudaErrorLaunchFailure, [] { some_threads_exit<<<2, 64>>>(3); });
  CHECK(contains(text, "some_threads_exit"));
  CHECK(contains(text, "block (0,0,0)"));
  CHECK(contains(text, "scheduler_test.cu:"));
  CHECK(contains(text, "61 threads wait"));
  CHECK(contains(text, "3 have exited"));
  Environment volta("SIMT_EXITED", "arrive");
  some_threads_exit<<<2, 64>>>(3);
  CHECK(cudaDeviceSynchronize() == cudaSuccess);
}

__global__ void two_barriers(int split) {
  if (int(threadIdx.x) < split)
    __syncthreads();
  else
    __syncthreads();
}

TEST_CASE("threads of one block at different barriers") {
  const std::string text = fault_of(cudaErrorLaunchFailure, [] { two_barriers<<<1, 64>>>(32); });
  CHECK(contains(text, "diverged"));
  CHECK(contains(text, "two_barriers"));
}

__global__ void half_a_shuffle(int* out) {
  if (threadIdx.x < 16) out[threadIdx.x] = __shfl_down_sync(0xffffffffu, int(threadIdx.x), 1);
}
__global__ void shuffle_against_barrier(int* out) {
  if (threadIdx.x < 16)
    out[threadIdx.x] = __shfl_down_sync(0xffffffffu, int(threadIdx.x), 1);
  else
    __syncthreads();
}

TEST_CASE("a shuffle that some lanes never reach") {
  Device<int>* out = new Device<int>(32);  // freed by the reset
  const std::string text = fault_of(cudaErrorLaunchFailure, [&] { half_a_shuffle<<<1, 32>>>(out->data); });
  CHECK(contains(text, "__shfl_down_sync"));
  CHECK(contains(text, "exit"));
  Device<int>* again = new Device<int>(32);
  const std::string waits = fault_of(cudaErrorLaunchFailure, [&] { shuffle_against_barrier<<<1, 32>>>(again->data); });
  CHECK(contains(waits, "16 threads wait at __shfl_down_sync"));
  CHECK(contains(waits, "16 threads wait at __syncthreads"));
}

__global__ void write_to(int* p, int index) { p[index] = 1; }
__global__ void divide_by(int* p, int d) { *p = 7 / d; }
__global__ void remainder_by(int* p, int d) { *p = static_cast<signed char>(*p) % d; }
__global__ void trap(const int* p) {
  if (*p == 0) __builtin_trap();
}
__global__ void spin(volatile int* p) {
  while (*p != 1) {
  }
}
__global__ void spin_in_allocations(volatile int* p) {
  while (*p != 1) free(malloc(64));
}
__global__ void spin_in_mathematics(volatile int* p, volatile double* x) {
  while (*p != 1) *x = tgamma(*x);
}
__global__ void spin_on_atomic(int* p) {
  while (atomicAdd(p, 0) != 1) {
  }
}
__device__ int depth(int n, const volatile int* callers) {
  volatile int frame[1000];
  frame[n % 1000] = n + callers[n % 10];
  return n == 0 ? 0 : depth(n - 1, frame) + frame[n % 1000];
}
__global__ void recurse(int* p) { *p = depth(1000000, p); }
__global__ void assert_equal(int a, int b) { assert(a == b); }

TEST_CASE("illegal accesses name the kernel, the thread and the line") {
  std::string text = fault_of(cudaErrorIllegalAddress, [] { write_to<<<1, 1>>>(nullptr, 0); });
  CHECK(contains(text, "write_to"));
  CHECK(contains(text, "thread (0,0,0)"));
  CHECK(contains(text, "scheduler_test.cu:"));
  text = fault_of(cudaErrorIllegalAddress, [] {
    int* p;
    cudaMalloc(&p, 1024);
    write_to<<<1, 1>>>(p, 4096);
  });
  CHECK(contains(text, "past the end"));
  text = fault_of(cudaErrorIllegalAddress, [] {
    int* p;
    cudaMalloc(&p, 1024);
    cudaFree(p);
    write_to<<<1, 1>>>(p, 0);
  });
  CHECK(contains(text, "freed"));
  text = fault_of(cudaErrorIllegalAddress, [] {
    int* p;
    cudaMalloc(&p, 1000);
    write_to<<<1, 1>>>(p, 250);  // the first word past the end of the allocation
  });
  CHECK(contains(text, "1000-byte"));
  text = fault_of(cudaErrorIllegalAddress, [] {
    int host = 0;
    write_to<<<1, 1>>>(&host, 0);
    CHECK(host == 0);
  });
  CHECK(contains(text, "argument 1 points to host memory"));
}

TEST_CASE("other faults end with a sentence too") {
  const auto with_word = [](auto action) {
    int* p;
    cudaMalloc(&p, sizeof(int));
    cudaMemset(p, 0, sizeof(int));
    action(p);
  };
  CHECK(contains(fault_of(cudaErrorLaunchFailure, [&] { with_word([](int* p) { divide_by<<<1, 1>>>(p, 0); }); }),
                 "division by zero"));
  CHECK(contains(fault_of(cudaErrorLaunchFailure, [&] { with_word([](int* p) { remainder_by<<<1, 1>>>(p, 0); }); }),
                 "division by zero"));
  CHECK(contains(fault_of(cudaErrorLaunchFailure, [&] { with_word([](int* p) { trap<<<1, 1>>>(p); }); }),
                 "the kernel trapped"));
  CHECK(contains(fault_of(cudaErrorLaunchFailure, [&] { with_word([](int* p) { recurse<<<1, 1>>>(p); }); }),
                 "stack overflowed"));
  CHECK(contains(fault_of(cudaErrorAssert, [] { assert_equal<<<1, 1>>>(1, 2); }), "a == b"));
  Environment timeout("SIMT_TIMEOUT", "0.5");
  CHECK(
      contains(fault_of(cudaErrorLaunchTimeout, [&] { with_word([](int* p) { spin<<<1, 1>>>(p); }); }), "no progress"));
}

TEST_CASE("a kernel that hangs is stopped wherever it is, and the next one runs") {
  Environment timeout("SIMT_TIMEOUT", "0.3");
  for (int where = 0; where < 3; ++where) {
    const std::string text = fault_of(cudaErrorLaunchTimeout, [&] {
      int* p;
      double* x;
      cudaMalloc(&p, sizeof(int));
      cudaMemset(p, 0, sizeof(int));
      cudaMalloc(&x, sizeof(double));
      cudaMemset(x, 0, sizeof(double));
      if (where == 0) spin_in_allocations<<<1, 1>>>(p);
      if (where == 1) spin_in_mathematics<<<1, 1>>>(p, x);
      if (where == 2) spin_on_atomic<<<1, 2>>>(p);
    });
    CHECK(contains(text, "no progress"));
    CHECK(contains(text, "scheduler_test.cu:"));
  }
}

__global__ void overrun_shared(int index) {
  __shared__ int s[32];
  s[index] = 1;
}

TEST_CASE("a write past the end of the block's shared memory") {
  CHECK(contains(fault_of(cudaErrorIllegalAddress, [] { overrun_shared<<<1, 1>>>(32); }), "shared memory"));
}

__global__ void take_lock(int* lock, int* counter) {
  while (atomicCAS(lock, 0, 1) != 0) {
  }
  *counter += 1;
  __threadfence();
  atomicExch(lock, 0);
}

TEST_CASE("lanes that spin on a lock let its owner run") {
  Device<int> lock(1), counter(1);
  cudaMemset(lock.data, 0, sizeof(int));
  cudaMemset(counter.data, 0, sizeof(int));
  take_lock<<<20, 64>>>(lock.data, counter.data);
  CHECK(counter.host()[0] == 20 * 64);
}

__global__ void nothing() {}

TEST_CASE("launches that CUDA refuses") {
  const auto launch_error = [](dim3 grid, dim3 block, size_t shared) {
    nothing<<<grid, block, shared>>>();
    const cudaError_t error = cudaGetLastError();
    CHECK(cudaDeviceSynchronize() == cudaSuccess);  // not sticky
    return error;
  };
  CHECK(launch_error(1, 1, 0) == cudaSuccess);
  CHECK(launch_error(0, 1, 0) == cudaErrorInvalidValue);
  CHECK(launch_error(1, 0, 0) == cudaErrorInvalidValue);
  CHECK(launch_error(1, 1025, 0) == cudaErrorInvalidValue);
  CHECK(launch_error(1, dim3(1, 1, 65), 0) == cudaErrorInvalidValue);
  CHECK(launch_error(dim3(1, 65536), 1, 0) == cudaErrorInvalidValue);
  CHECK(launch_error(1, 1, 49 * 1024) == cudaErrorInvalidValue);
  CHECK(cudaFuncSetAttribute(nothing, cudaFuncAttributeMaxDynamicSharedMemorySize, 200 * 1024) == cudaSuccess);
  CHECK(launch_error(1, 1, 200 * 1024) == cudaSuccess);
  CHECK(cudaFuncSetAttribute(nothing, cudaFuncAttributeMaxDynamicSharedMemorySize, 300 * 1024) ==
        cudaErrorInvalidValue);
  cudaGetLastError();
}

template <class T>
__global__ void fill(T* out, T value, int n) {
  const int i = int(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) out[i] = value;
}

template <class T>
using Kernel = void (*)(T*, T, int);

int on_the_host(int x) { return x + 1; }

TEST_CASE("a pointer that is no kernel") {
  int number = on_the_host(-1);
  for (const void* function : {static_cast<const void*>(&number), static_cast<const void*>(nullptr),
                               reinterpret_cast<const void*>(on_the_host)}) {
    const cudaError_t invalid = cudaErrorInvalidDeviceFunction;
    cudaFuncAttributes attributes;
    CHECK(cudaFuncSetAttribute(function, cudaFuncAttributeMaxDynamicSharedMemorySize, 1 << 16) == invalid);
    CHECK(cudaFuncGetAttributes(&attributes, function) == invalid);
    CHECK(cudaFuncSetCacheConfig(function, cudaFuncCachePreferL1) == invalid);
    CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&number, function, 32, 0) == invalid);
    CHECK(cudaOccupancyMaxPotentialBlockSize(&number, &number, function) == invalid);
    CHECK(cudaLaunchKernel(function, dim3(1), dim3(1), nullptr, 0, nullptr) == invalid);
    CHECK(cudaLaunchCooperativeKernel(function, dim3(1), dim3(1), nullptr, 0, nullptr) == invalid);
    CHECK(cudaGetLastError() == invalid);
    CHECK(cudaDeviceSynchronize() == cudaSuccess);
  }
  const Kernel<float> kernel = fill;
  cudaFuncAttributes attributes;
  CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, 1 << 16) == cudaSuccess);
  CHECK(cudaFuncGetAttributes(&attributes, kernel) == cudaSuccess);
  CHECK(attributes.maxDynamicSharedSizeBytes == 1 << 16);
  CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&number, kernel, 1024, 0) == cudaSuccess);
  CHECK(number == 2);
  const void* address = *reinterpret_cast<const void* const*>(&kernel);
  const std::string text = stderr_of([&] {
    CHECK(cudaLaunchKernel(address, dim3(1), dim3(1), nullptr, 0, nullptr) == cudaErrorInvalidDeviceFunction);
  });
  CHECK(contains(text, "(void*)kernel"));
  CHECK(cudaGetLastError() == cudaErrorInvalidDeviceFunction);
}

TEST_CASE("an environment variable with a value that is not allowed") {
  for (const char* variable : {"SIMT_ORDER", "SIMT_COPIES", "SIMT_WORKERS", "SIMT_MULTIPROCESSORS"}) {
    Environment wrong(variable, "sideways");
    const std::string text = fault_of(cudaErrorInitializationError, [] { nothing<<<1, 1>>>(); });
    CHECK(contains(text, std::string(variable) + " is 'sideways'; it must be"));
  }
  nothing<<<1, 1>>>();
  CHECK(cudaDeviceSynchronize() == cudaSuccess);
}

TEST_CASE("the device's own threads read no environment variable, since the program may change them at any time") {
  nothing<<<8, 1024>>>();
  const UnreadableEnvironment unreadable;
  usleep(300000);  // the watchdog looks every 100 ms
}

TEST_CASE("every way to launch a kernel") {
  Device<int> out(100);
  const auto all = [&](int value) { return out.host() == std::vector<int>(100, value); };
  fill<<<4, 32>>>(out.data, 1, 100);
  CHECK(all(1));
  fill<int><<<4, 32>>>(out.data, 2, 100);
  CHECK(all(2));
  void (*pointer)(int*, int, int) = fill<int>;
  pointer<<<4, 32>>>(out.data, 3, 100);
  CHECK(all(3));
  int value = 4, n = 100;
  void* arguments[] = {&out.data, &value, &n};
  CHECK(cudaLaunchKernel((void*)fill<int>, dim3(4), dim3(32), arguments, 0, nullptr) == cudaSuccess);
  CHECK(all(4));
  value = 5;
  CHECK(cudaLaunchCooperativeKernel((const void*)fill<int>, dim3(4), dim3(32), arguments, 0, nullptr) == cudaSuccess);
  CHECK(all(5));
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(4);
  config.blockDim = dim3(32);
  CHECK(cudaLaunchKernelEx(&config, fill<int>, out.data, 6, 100) == cudaSuccess);
  CHECK(all(6));
  config.gridDim = dim3(1u << 20);
  cudaLaunchAttribute cooperative = {};
  cooperative.id = cudaLaunchAttributeCooperative;
  cooperative.val.cooperative = 1;
  config.attrs = &cooperative;
  config.numAttrs = 1;
  CHECK(cudaLaunchKernelEx(&config, fill<int>, out.data, 7, 100) == cudaErrorCooperativeLaunchTooLarge);
  CHECK(cudaGetLastError() == cudaErrorCooperativeLaunchTooLarge);
}
