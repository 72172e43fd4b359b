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
