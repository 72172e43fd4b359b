// Device properties and settings, and CUDA's error codes.
#include <cuda.h>
#include <cuda_profiler_api.h>

#include <cstring>

#include "testing.h"

namespace {

int attribute(cudaDeviceAttr which) {
  int value = -12345;
  CHECK(cudaDeviceGetAttribute(&value, which, 0) == cudaSuccess);
  return value;
}

__global__ void nothing() {}

}  // namespace

TEST_CASE("there is one device") {
  int value = -1;
  CHECK(cudaGetDeviceCount(&value) == cudaSuccess);
  CHECK(value == 1);
  CHECK(cudaSetDevice(0) == cudaSuccess);
  CHECK(cudaGetDevice(&value) == cudaSuccess);
  CHECK(value == 0);
  for (int wrong : {-1, 1, 1000}) {
    CHECK(cudaSetDevice(wrong) == cudaErrorInvalidDevice);
    cudaDeviceProp p;
    CHECK(cudaGetDeviceProperties(&p, wrong) == cudaErrorInvalidDevice);
    CHECK(cudaDeviceGetAttribute(&value, cudaDevAttrWarpSize, wrong) == cudaErrorInvalidDevice);
  }
  CHECK(cudaGetDeviceCount(nullptr) == cudaErrorInvalidValue);
  CHECK(cudaGetLastError() == cudaErrorInvalidValue);
  CHECK(cudaDeviceCanAccessPeer(&value, 0, 0) == cudaSuccess);
  CHECK(value == 0);
  cudaDeviceProp wanted = {};
  wanted.major = 7;
  CHECK(cudaChooseDevice(&value, &wanted) == cudaSuccess);
  CHECK(value == 0);
  char bus[16];
  CHECK(cudaDeviceGetPCIBusId(bus, sizeof bus, 0) == cudaSuccess);
  CHECK(cudaDeviceGetByPCIBusId(&value, bus) == cudaSuccess);
  CHECK(cudaDeviceGetByPCIBusId(&value, "0000:01:00.0") == cudaErrorInvalidDevice);
  CHECK(cudaDeviceGetByPCIBusId(&value, "nonsense") == cudaErrorInvalidValue);
  cudaGetLastError();
}

TEST_CASE("properties and attributes agree") {
  cudaDeviceProp p;
  std::memset(&p, 0x5A, sizeof p);
  REQUIRE(cudaGetDeviceProperties(&p, 0) == cudaSuccess);
  CHECK(std::string(p.name) == "CPU device (simt)");
  CHECK(p.major == 9);
  CHECK(p.minor == 0);
  CHECK(p.multiProcessorCount == 4);
  CHECK(p.sharedMemPerBlock == 48 * 1024);
  CHECK(p.sharedMemPerBlockOptin == 227 * 1024);
  CHECK(p.totalGlobalMem > 0);
  CHECK(p.maxGridSize[0] == 2147483647);
  CHECK(p.memoryBusWidth == 0);
  CHECK(p.clockRate == 0);
  CHECK(attribute(cudaDevAttrMaxThreadsPerBlock) == p.maxThreadsPerBlock);
  CHECK(attribute(cudaDevAttrMaxBlockDimZ) == p.maxThreadsDim[2]);
  CHECK(attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin) == int(p.sharedMemPerBlockOptin));
  CHECK(attribute(cudaDevAttrComputeCapabilityMajor) == p.major);
  CHECK(attribute(cudaDevAttrMemoryClockRate) == 0);
  CHECK(attribute(cudaDevAttrGlobalMemoryBusWidth) == 0);
  CHECK(attribute(cudaDevAttrCooperativeLaunch) == 1);
  CHECK(attribute(cudaDevAttrClusterLaunch) == 1);
  int value = 0;
  CHECK(cudaDeviceGetAttribute(&value, cudaDeviceAttr(44), 0) == cudaErrorInvalidValue);
  CHECK(cudaDeviceGetAttribute(&value, cudaDeviceAttr(100000), 0) == cudaErrorInvalidValue);
  cudaGetLastError();
}

TEST_CASE("settings") {
  size_t size = 0;
  CHECK(cudaDeviceSetLimit(cudaLimitMallocHeapSize, 1 << 20) == cudaSuccess);
  CHECK(cudaDeviceGetLimit(&size, cudaLimitMallocHeapSize) == cudaSuccess);
  CHECK(size == 1 << 20);
  CHECK(cudaDeviceSetLimit(cudaLimitStackSize, 1024) == cudaSuccess);
  CHECK(contains(stderr_of([] { CHECK(cudaDeviceSetLimit(cudaLimitStackSize, 1 << 30) == cudaErrorNotSupported); }),
                 "256 KB of stack"));
  CHECK(cudaDeviceSetLimit(cudaLimit(77), 1) == cudaErrorInvalidValue);
  CHECK(cudaSetDeviceFlags(cudaDeviceScheduleYield) == cudaSuccess);
  unsigned flags = 0;
  CHECK(cudaGetDeviceFlags(&flags) == cudaSuccess);
  CHECK((flags & cudaDeviceScheduleMask) == cudaDeviceScheduleYield);
  CHECK(cudaSetDeviceFlags(3) == cudaErrorInvalidValue);
  CHECK(cudaDeviceSetCacheConfig(cudaFuncCachePreferShared) == cudaSuccess);
  cudaFuncCache config;
  CHECK(cudaDeviceGetCacheConfig(&config) == cudaSuccess);
  CHECK(config == cudaFuncCachePreferShared);
  CHECK(cudaProfilerStop() == cudaSuccess);
  CHECK(cudaProfilerStart() == cudaSuccess);
  cudaGetLastError();
}

TEST_CASE("versions") {
  int driver = 0, runtime = 0;
  CHECK(cudaDriverGetVersion(&driver) == cudaSuccess);
  CHECK(cudaRuntimeGetVersion(&runtime) == cudaSuccess);
  CHECK(runtime == CUDART_VERSION);
  CHECK(driver >= runtime);
  CHECK(CUDA_VERSION == 13000);
}

TEST_CASE("error names and texts are CUDA's") {
  struct {
    int number;
    const char *name, *text;
  } const known[] = {{0, "cudaSuccess", "no error"},
                     {1, "cudaErrorInvalidValue", "invalid argument"},
                     {2, "cudaErrorMemoryAllocation", "out of memory"},
                     {9, "cudaErrorInvalidConfiguration", "invalid configuration argument"},
                     {100, "cudaErrorNoDevice", "no CUDA-capable device is detected"},
                     {400, "cudaErrorInvalidResourceHandle", "invalid resource handle"},
                     {700, "cudaErrorIllegalAddress", "an illegal memory access was encountered"},
                     {719, "cudaErrorLaunchFailure", "unspecified launch failure"},
                     {720, "cudaErrorCooperativeLaunchTooLarge", "too many blocks in cooperative launch"},
                     {999, "cudaErrorUnknown", "unknown error"},
                     {3000, "unrecognized error code", "unrecognized error code"},
                     {-1, "unrecognized error code", "unrecognized error code"}};
  for (const auto& k : known) {
    CHECK(std::string(cudaGetErrorName(cudaError_t(k.number))) == k.name);
    CHECK(std::string(cudaGetErrorString(cudaError_t(k.number))) == k.text);
  }
}

TEST_CASE("the last error is kept until it is asked for") {
  cudaGetLastError();
  nothing<<<1, 2000>>>();
  nothing<<<1, 1>>>();
  CHECK(cudaDeviceSynchronize() == cudaSuccess);
  CHECK(cudaPeekAtLastError() == cudaErrorInvalidValue);
  CHECK(cudaPeekAtLastError() == cudaErrorInvalidValue);
  CHECK(cudaGetLastError() == cudaErrorInvalidValue);
  CHECK(cudaGetLastError() == cudaSuccess);
}

TEST_CASE("reset frees everything") {
  float *device = nullptr, *pinned = nullptr;
  cudaStream_t stream;
  cudaEvent_t event;
  REQUIRE(cudaMalloc(&device, 400) == cudaSuccess);
  REQUIRE(cudaMallocHost(&pinned, 400) == cudaSuccess);
  REQUIRE(cudaStreamCreate(&stream) == cudaSuccess);
  REQUIRE(cudaEventCreate(&event) == cudaSuccess);
  CHECK(cudaDeviceReset() == cudaSuccess);
  CHECK(cudaFree(device) == cudaErrorInvalidValue);
  CHECK(cudaFreeHost(pinned) == cudaErrorInvalidValue);
  CHECK(cudaStreamDestroy(stream) == cudaErrorInvalidResourceHandle);
  CHECK(cudaEventDestroy(event) == cudaErrorInvalidResourceHandle);
  CHECK(cudaMalloc(&device, 400) == cudaSuccess);
  CHECK(cudaFree(device) == cudaSuccess);
  cudaGetLastError();
}

// A launch copies its arguments once, as a call of the host would, and then their bytes: no thread makes or ends one.
namespace {

struct Counted {
  int value;
  static int made, ended;
  explicit Counted(int value) : value(value) {}
  __host__ __device__ Counted(const Counted& other) : value(other.value) { ++made; }
  __host__ __device__ ~Counted() { ++ended; }
};
int Counted::made = 0, Counted::ended = 0;

__global__ void by_value(Counted counted, int* sum) {
  atomicAdd(sum, counted.value);
  counted.value = 0;  // each thread's own
}
template <class T, class Number>
__global__ void by_template(const Number* one, T counted, int* sum, unsigned factor) {
  atomicAdd(sum, counted.value * *one * static_cast<int>(factor));
  counted.value = 0;
}
__global__ void by_reference(const Counted& counted, int* sum) { atomicAdd(sum, counted.value); }

}  // namespace

__global__ void count(int* sum) { atomicAdd(sum, 1); }

TEST_CASE("a pointer to a kernel may have the name of another kernel") {
  int* sum;
  REQUIRE(cudaMallocManaged(&sum, sizeof(int)) == cudaSuccess);
  *sum = 0;
  auto* by_template = count;
  by_template<<<2, 32>>>(sum);
  CHECK(cudaDeviceSynchronize() == cudaSuccess);
  CHECK(*sum == 64);
  cudaFree(sum);
}

TEST_CASE("a kernel's arguments are copied as bytes") {
  int *sum, *one;
  REQUIRE(cudaMallocManaged(&sum, sizeof(int)) == cudaSuccess);
  REQUIRE(cudaMallocManaged(&one, sizeof(int)) == cudaSuccess);
  *one = 1;
  Counted counted(5);
  void* arguments[] = {&counted, &sum};
  cudaLaunchConfig_t config = {};
  config.gridDim = 2;
  config.blockDim = 32;
  const auto check = [&](int copies) {
    CHECK(cudaDeviceSynchronize() == cudaSuccess);
    CHECK(*sum == 320);
    CHECK(Counted::made == copies);
    CHECK(Counted::ended == copies);
    *sum = Counted::made = Counted::ended = 0;
  };
  *sum = 0;
  by_value<<<2, 32>>>(counted, sum);
  check(1);
  by_template<<<2, 32>>>(one, counted, sum, 1ull);
  check(1);
  by_reference<<<2, 32>>>(counted, sum);
  check(0);
  CHECK(cudaLaunchKernelEx(&config, by_value, counted, sum) == cudaSuccess);
  check(1);
  CHECK(cudaLaunchKernel(by_value, dim3(2), dim3(32), arguments) == cudaSuccess);
  check(0);
  cudaFree(sum);
  cudaFree(one);
}

namespace {

__host__ __device__ int runs_on_the_device() {
#ifdef __CUDA_ARCH__
  return 1;
#else
  return 0;
#endif
}
#ifdef __CUDA_ARCH__
#define REFUSE_NEGATIVE() __trap()
#else
#define REFUSE_NEGATIVE() throw std::string("negative")
#endif
__host__ __device__ int not_negative(int n) {
  if (n < 0) REFUSE_NEGATIVE();
  return n;
}
__global__ void ask_where(int* answer) { *answer = not_negative(runs_on_the_device()); }

}  // namespace

TEST_CASE("__CUDA_ARCH__ divides a __host__ __device__ function: host code runs the host's half") {
  int* answer;
  REQUIRE(cudaMallocManaged(&answer, sizeof(int)) == cudaSuccess);
  ask_where<<<1, 1>>>(answer);
  CHECK(cudaDeviceSynchronize() == cudaSuccess);
  CHECK(*answer == 1);
  CHECK(runs_on_the_device() == 0);
  CHECK_THROWS_AS(not_negative(-1), std::string);
  cudaFree(answer);
}
