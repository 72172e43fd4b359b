// Allocation, copies and what becomes of their misuse.
#include <cuda_fp16.h>
#include <sys/wait.h>

#include <cstdint>
#include <cstring>
#include <memory>

#include "testing.h"

namespace {

__device__ float device_array[64];
__device__ int device_counter;
__constant__ float constant_array[4];
__device__ __managed__ int managed_value;

__global__ void fill(float* out, float value, int begin, int end) {
  for (int i = begin + int(threadIdx.x); i < end; i += int(blockDim.x)) out[i] = value;
}
__global__ void read_one(const float* in, float* out, ptrdiff_t index) { *out = in[index]; }
__global__ void use_symbols(float* out) {
  out[threadIdx.x] = constant_array[threadIdx.x] + device_array[threadIdx.x];
  atomicAdd(&device_counter, 1);
}
__global__ void increment(int* value) { ++*value; }

// The message of a child process that a signal ended.
template <class Action>
std::string message_of_crash(int signal, Action action) {
  return stderr_of([&] {
    const pid_t child = fork();
    if (child == 0) {
      action();
      _exit(0);
    }
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    CHECK(WIFSIGNALED(status));
    CHECK(WTERMSIG(status) == signal);
  });
}

}  // namespace

TEST_CASE("host code that accesses device memory ends as on a GPU, with the reason") {
  Device<float> d(256);
  for (int launched = 0; launched < 2; ++launched) {
    const std::string text = message_of_crash(SIGSEGV, [&] { *static_cast<volatile float*>(d.data) = 1; });
    CHECK(contains(text, "host code accessed device memory"));
    CHECK(contains(text, "inside a 1024-byte allocation (cudaMalloc)"));
    CHECK(contains(text, "memory_test.cu:"));
    fill<<<1, 32>>>(d.data, 1, 0, 256);
    CHECK(d.host() == std::vector<float>(256, 1));
  }
}

TEST_CASE("allocations are aligned, poisoned and not used twice") {
  std::vector<uintptr_t> seen;
  for (size_t size : {1, 4, 255, 256, 257, 4095, 4096, 4097, 1 << 20, 40 << 20}) {
    CAPTURE(size);
    unsigned char* p = nullptr;
    REQUIRE(cudaMalloc(&p, size) == cudaSuccess);
    CHECK(uintptr_t(p) % 256 == 0);
    std::vector<unsigned char> host(size);
    CHECK(cudaMemcpy(host.data(), p, size, cudaMemcpyDeviceToHost) == cudaSuccess);
    CHECK(host == std::vector<unsigned char>(size, 0xFF));
    for (uintptr_t other : seen) CHECK(other != uintptr_t(p));
    seen.push_back(uintptr_t(p));
    CHECK(cudaFree(p) == cudaSuccess);
  }
}

TEST_CASE("allocation's errors are CUDA's") {
  float* p = reinterpret_cast<float*>(16);
  CHECK(cudaMalloc(&p, 0) == cudaSuccess);
  CHECK(p == nullptr);
  CHECK(cudaFree(nullptr) == cudaSuccess);
  fails(cudaErrorInvalidValue, cudaMalloc(static_cast<void**>(nullptr), 4));
  fails(cudaErrorMemoryAllocation, cudaMalloc(&p, ~size_t(0)));
  fails(cudaErrorMemoryAllocation, cudaMalloc(&p, size_t(1) << 43));

  size_t free = 0, total = 0;
  CHECK(cudaMemGetInfo(&free, &total) == cudaSuccess);
  CHECK(free > 0);
  CHECK(free < total);
  fails(cudaErrorMemoryAllocation, cudaMalloc(&p, total));

  float host = 0;
  REQUIRE(cudaMalloc(&p, 1000) == cudaSuccess);
  fails(cudaErrorInvalidValue, cudaFree(&host));
  fails(cudaErrorInvalidValue, cudaFree(p + 1));
  fails(cudaErrorInvalidValue, cudaFreeHost(p));
  CHECK(cudaFree(p) == cudaSuccess);
  fails(cudaErrorInvalidValue, cudaFree(p));
}

TEST_CASE("large allocations count as used at once, though their pages come later") {
  size_t before = 0, after = 0, total = 0;
  cudaMemGetInfo(&before, &total);
  const size_t size = before / 2;
  if (size < size_t(3) << 30) return;  // smaller ones are poisoned
  char* p = nullptr;
  REQUIRE(cudaMalloc(&p, size) == cudaSuccess);
  cudaMemGetInfo(&after, &total);
  CHECK(after < before - size / 2);  // other processes take and give memory too
  char last = 0;
  CHECK(cudaMemset(p + size - 1, 7, 1) == cudaSuccess);
  CHECK(cudaMemcpy(&last, p + size - 1, 1, cudaMemcpyDefault) == cudaSuccess);
  CHECK(last == 7);
  char* second = nullptr;
  fails(cudaErrorMemoryAllocation, cudaMalloc(&second, size + size / 2));
  CHECK(cudaFree(p) == cudaSuccess);
}

TEST_CASE("copies check both sides against their kind") {
  Device<float> d(100), e(100);
  std::vector<float> h(100), g(100);
  const size_t size = 400;
  CHECK(cudaMemcpy(d.data, h.data(), size, cudaMemcpyHostToDevice) == cudaSuccess);
  CHECK(cudaMemcpy(e.data, d.data, size, cudaMemcpyDeviceToDevice) == cudaSuccess);
  CHECK(cudaMemcpy(g.data(), h.data(), size, cudaMemcpyHostToHost) == cudaSuccess);
  for (void* dst : {static_cast<void*>(d.data), static_cast<void*>(g.data())})
    for (void* src : {static_cast<void*>(e.data), static_cast<void*>(h.data())})
      CHECK(cudaMemcpy(dst, src, size, cudaMemcpyDefault) == cudaSuccess);

  SUBCASE("the wrong kind") {
    fails(cudaErrorInvalidValue, cudaMemcpy(d.data, h.data(), size, cudaMemcpyDeviceToHost));
    fails(cudaErrorInvalidValue, cudaMemcpy(h.data(), d.data, size, cudaMemcpyHostToDevice));
    fails(cudaErrorInvalidValue, cudaMemcpy(d.data, h.data(), size, cudaMemcpyDeviceToDevice));
    fails(cudaErrorInvalidValue, cudaMemcpy(d.data, e.data, size, cudaMemcpyHostToDevice));
    fails(cudaErrorInvalidValue, cudaMemcpy(h.data(), d.data, size, cudaMemcpyHostToHost));
    fails(cudaErrorInvalidMemcpyDirection, cudaMemcpy(d.data, h.data(), size, cudaMemcpyKind(5)));
    fails(cudaErrorInvalidMemcpyDirection, cudaMemcpyAsync(d.data, h.data(), size, cudaMemcpyKind(-1)));
  }
  SUBCASE("ranges that leave the allocation") {
    fails(cudaErrorInvalidValue, cudaMemcpy(d.data, h.data(), size + 1, cudaMemcpyHostToDevice));
    fails(cudaErrorInvalidValue, cudaMemcpy(d.data + 1, h.data(), size, cudaMemcpyHostToDevice));
    fails(cudaErrorInvalidValue, cudaMemcpy(h.data(), d.data - 1, 4, cudaMemcpyDeviceToHost));
    fails(cudaErrorInvalidValue, cudaMemcpy(h.data(), d.data + 100, 4, cudaMemcpyDeviceToHost));
    fails(cudaErrorInvalidValue, cudaMemcpy(h.data(), d.data, size_t(-4), cudaMemcpyDeviceToHost));
    fails(cudaErrorInvalidValue, cudaMemset(d.data, 0, size + 1));
  }
  SUBCASE("no memory at all") {
    fails(cudaErrorInvalidValue, cudaMemcpy(d.data, nullptr, size, cudaMemcpyHostToDevice));
    fails(cudaErrorInvalidValue, cudaMemcpy(nullptr, h.data(), size, cudaMemcpyHostToDevice));
    fails(cudaErrorInvalidValue, cudaMemcpy(d.data, reinterpret_cast<void*>(4096), size, cudaMemcpyHostToDevice));
    fails(cudaErrorInvalidValue, cudaMemset(h.data(), 0, size));
    CHECK(cudaMemcpy(nullptr, nullptr, 0, cudaMemcpyHostToDevice) == cudaSuccess);
    CHECK(cudaMemset(nullptr, 0, 0) == cudaSuccess);
  }
  SUBCASE("freed memory") {
    float* freed = nullptr;
    REQUIRE(cudaMalloc(&freed, size) == cudaSuccess);
    REQUIRE(cudaFree(freed) == cudaSuccess);
    fails(cudaErrorInvalidValue, cudaMemcpy(freed, h.data(), size, cudaMemcpyHostToDevice));
    fails(cudaErrorInvalidValue, cudaMemcpy(h.data(), freed, size, cudaMemcpyDefault));
  }
}

TEST_CASE("overlapping device copies move as memmove does") {
  std::vector<int> h(1000);
  for (int i = 0; i < 1000; ++i) h[size_t(i)] = i;
  Device<int> d(h);
  CHECK(cudaMemcpy(d.data + 1, d.data, 999 * sizeof(int), cudaMemcpyDeviceToDevice) == cudaSuccess);
  const std::vector<int> moved = d.host();
  for (int i = 1; i < 1000; ++i) REQUIRE(moved[size_t(i)] == i - 1);
}

template <class T>
__global__ void copy_at(char* p, int from, int to) {
  *reinterpret_cast<T*>(p + to) = *reinterpret_cast<const T*>(p + from);
}

template <class T>
void needs_a_multiple_of(int size) {
  const auto copy = [](int from, int to) {
    char* p = nullptr;
    CHECK(cudaMalloc(&p, 256) == cudaSuccess);
    copy_at<T><<<1, 1>>>(p, from, to);
  };
  copy(64, 128);
  CHECK(cudaDeviceSynchronize() == cudaSuccess);
  const std::string needed = "this access needs a multiple of " + std::to_string(size) + " bytes";
  for (int shift = 1; shift < size; shift *= 2) {
    CHECK(contains(fault_of(cudaErrorMisalignedAddress, [&] { copy(64 + shift, 128); }), needed));
    CHECK(contains(fault_of(cudaErrorMisalignedAddress, [&] { copy(64, 128 + shift); }), needed));
  }
}

TEST_CASE("an access needs an address that is a multiple of its size, whatever instructions the CPU has") {
  needs_a_multiple_of<char>(1);
  needs_a_multiple_of<short>(2);
  needs_a_multiple_of<int>(4);
  needs_a_multiple_of<double>(8);
  needs_a_multiple_of<float2>(8);
  needs_a_multiple_of<float4>(16);
  needs_a_multiple_of<uint4>(16);
}

TEST_CASE("host code reads memory at any address") {
  alignas(16) const char bytes[8] = {0, 1, 0, 0, 0, 2, 0, 0};
  CHECK(*reinterpret_cast<const int*>(bytes + 1) == 1);
}

template <class T>
__global__ void double_at(T* p, int i) {
  p[i] = p[i] * T(2);
}

template <class T>
std::string overrun_in_place(T) {
  T* data;
  REQUIRE(cudaMalloc(&data, 1000) == cudaSuccess);
  return fault_of(cudaErrorIllegalAddress, [&] { double_at<<<1, 1>>>(data, int(1000 / sizeof(T))); });
}

__global__ void leave_shared(float* out, int i) {
  __shared__ float s[32];
  s[threadIdx.x] = 1;
  if (threadIdx.x == 0 && blockIdx.x == 2) s[i] = 2;
  __syncthreads();
  out[0] = s[31 - threadIdx.x];
}

TEST_CASE("kernels that leave an allocation fail with a sentence") {
  Device<float> d(250), out(1);
  float* p = d.data;
  SUBCASE("into the slack past its end") {
    const std::string text = fault_of(cudaErrorIllegalAddress, [&] { fill<<<1, 32>>>(p, 0, 0, 251); });
    CHECK(contains(text, "just past the end of a 1000-byte allocation (cudaMalloc)"));
  }
  SUBCASE("by arithmetic on what stands there") {
    CHECK(contains(overrun_in_place(1.f), "just past the end of a 1000-byte allocation"));
    CHECK(contains(overrun_in_place(1.), "past the end of a 1000-byte allocation"));
    CHECK(contains(overrun_in_place(1), "just past the end of a 1000-byte allocation"));
    CHECK(contains(overrun_in_place(__half(1)), "past the end of a 1000-byte allocation"));
    CHECK(contains(overrun_in_place(static_cast<unsigned char>(1)), "just past the end of a 1000-byte allocation"));
    CHECK(contains(fault_of(cudaErrorIllegalAddress, [&] { double_at<<<1, 1>>>(p, -1); }), "4 bytes before the start"));
  }
  SUBCASE("within shared memory, but far past the block's own") {
    const std::string text = fault_of(cudaErrorIllegalAddress, [&] { leave_shared<<<4, 32>>>(out.data, 3000); });
    CHECK(contains(text, "wrote 11872 bytes past the end of its shared memory (128 bytes)"));
  }
  SUBCASE("just before it") {
    const std::string text = fault_of(cudaErrorIllegalAddress, [&] { fill<<<1, 32>>>(p, 0, -1, 250); });
    CHECK(contains(text, "4 bytes before the start of a 1000-byte allocation (cudaMalloc)"));
  }
  SUBCASE("into the page after it") {
    const std::string text = fault_of(cudaErrorIllegalAddress, [&] { read_one<<<1, 1>>>(p, out.data, 256); });
    CHECK(contains(text, "24 bytes past the end of a 1000-byte allocation (cudaMalloc)"));
  }
  SUBCASE("far away") {
    const std::string text = fault_of(cudaErrorIllegalAddress, [&] { read_one<<<1, 1>>>(p, out.data, 1 << 28); });
    CHECK(contains(text, "near no allocation"));
  }
  SUBCASE("after it was freed") {
    float* freed = nullptr;
    REQUIRE(cudaMalloc(&freed, 512) == cudaSuccess);
    REQUIRE(cudaFree(freed) == cudaSuccess);
    const std::string text = fault_of(cudaErrorIllegalAddress, [&] { read_one<<<1, 1>>>(freed, out.data, 3); });
    CHECK(contains(text, "inside a freed 512-byte allocation (cudaMalloc)"));
  }
  SUBCASE("null") {
    CHECK(contains(fault_of(cudaErrorIllegalAddress, [&] { read_one<<<1, 1>>>(nullptr, out.data, 4); }),
                   "null plus 16 bytes"));
  }
}

TEST_CASE("a fault sticks to every call until the device is reset") {
  Device<float> out(1);
  stderr_of([&] { read_one<<<1, 1>>>(nullptr, out.data, 0); });
  float host = 0;
  float* p = nullptr;
  CHECK(cudaMalloc(&p, 4) == cudaErrorIllegalAddress);
  CHECK(cudaMemcpy(&host, out.data, 4, cudaMemcpyDeviceToHost) == cudaErrorIllegalAddress);
  CHECK(cudaGetLastError() == cudaErrorIllegalAddress);
  CHECK(cudaGetLastError() == cudaErrorIllegalAddress);
  int count = 0;
  CHECK(cudaGetDeviceCount(&count) == cudaSuccess);
  CHECK(cudaDeviceReset() == cudaSuccess);
  CHECK(cudaGetLastError() == cudaSuccess);
  CHECK(cudaMalloc(&p, 4) == cudaSuccess);
  CHECK(cudaFree(p) == cudaSuccess);
}

TEST_CASE("pinned memory is the host's and the device's") {
  float *p = nullptr, *mapped = nullptr;
  unsigned flags = 0;
  REQUIRE(cudaHostAlloc(&p, 400, cudaHostAllocMapped) == cudaSuccess);
  p[99] = 1;
  REQUIRE(cudaHostGetDevicePointer(&mapped, p, 0) == cudaSuccess);
  fill<<<1, 32>>>(mapped, 5, 0, 100);
  CHECK(p[99] == 5);
  CHECK(cudaHostGetFlags(&flags, p) == cudaSuccess);
  CHECK(flags == cudaHostAllocMapped);

  Device<float> d(100);
  for (cudaMemcpyKind kind : {cudaMemcpyHostToDevice, cudaMemcpyDeviceToDevice, cudaMemcpyDefault})
    CHECK(cudaMemcpy(d.data, p, 400, kind) == cudaSuccess);
  CHECK(d.host() == std::vector<float>(100, 5));
  fails(cudaErrorInvalidValue, cudaMemcpy(d.data, p + 1, 400, cudaMemcpyHostToDevice));
  fails(cudaErrorInvalidValue, cudaFree(p));
  CHECK(cudaFreeHost(p) == cudaSuccess);
  fails(cudaErrorInvalidValue, cudaFreeHost(p));
  fails(cudaErrorInvalidValue, cudaHostAlloc(&p, 4, 0x80));
}

TEST_CASE("host memory can be registered for the device") {
  std::vector<float> h(100, 2);
  fails(cudaErrorHostMemoryNotRegistered, cudaHostUnregister(h.data()));
  REQUIRE(cudaHostRegister(h.data(), 400, cudaHostRegisterMapped) == cudaSuccess);
  fails(cudaErrorHostMemoryAlreadyRegistered, cudaHostRegister(h.data() + 10, 40, 0));
  float* mapped = nullptr;
  CHECK(cudaHostGetDevicePointer(&mapped, h.data(), 0) == cudaSuccess);
  fill<<<1, 32>>>(mapped, 3, 0, 100);
  CHECK(cudaDeviceSynchronize() == cudaSuccess);
  CHECK(h == std::vector<float>(100, 3));
  CHECK(cudaHostUnregister(h.data()) == cudaSuccess);
  fails(cudaErrorInvalidValue, cudaHostGetDevicePointer(&mapped, h.data(), 0));
  fails(cudaErrorInvalidValue, cudaHostRegister(nullptr, 4, 0));
}

TEST_CASE("managed memory is shared") {
  int* m = nullptr;
  REQUIRE(cudaMallocManaged(&m, 4) == cudaSuccess);
  *m = 41;
  increment<<<1, 1>>>(m);
  CHECK(cudaDeviceSynchronize() == cudaSuccess);
  CHECK(*m == 42);
  CHECK(cudaMemPrefetchAsync(m, 4, 0) == cudaSuccess);
  CHECK(cudaMemPrefetchAsync(m, 4, cudaMemLocation{cudaMemLocationTypeDevice, 0}, 0) == cudaSuccess);
  CHECK(cudaMemAdvise(m, 4, cudaMemAdviseSetReadMostly, cudaCpuDeviceId) == cudaSuccess);
  fails(cudaErrorInvalidDevice, cudaMemPrefetchAsync(m, 4, 7));
  fails(cudaErrorInvalidValue, cudaMemPrefetchAsync(m, 5, 0));
  CHECK(cudaFree(m) == cudaSuccess);
  CHECK(cudaMallocManaged(&m, 0) == cudaSuccess);

  managed_value = 1;
  increment<<<1, 1>>>(&managed_value);
  CHECK(cudaDeviceSynchronize() == cudaSuccess);
  CHECK(managed_value == 2);
}

TEST_CASE("pitched and boxed copies") {
  float* p = nullptr;
  size_t pitch = 0;
  REQUIRE(cudaMallocPitch(&p, &pitch, 100 * sizeof(float), 7) == cudaSuccess);
  CHECK(pitch == 512);
  std::vector<float> h(700), back(700);
  for (size_t i = 0; i < h.size(); ++i) h[i] = float(i);
  const size_t row = 400;
  CHECK(cudaMemcpy2D(p, pitch, h.data(), row, row, 7, cudaMemcpyHostToDevice) == cudaSuccess);
  CHECK(cudaMemcpy2DAsync(back.data(), row, p, pitch, row, 7, cudaMemcpyDeviceToHost) == cudaSuccess);
  CHECK(back == h);
  CHECK(cudaMemset2D(p, pitch, 0, 4, 7) == cudaSuccess);
  CHECK(cudaMemcpy2D(back.data(), row, p, pitch, row, 7, cudaMemcpyDeviceToHost) == cudaSuccess);
  CHECK(back[600] == 0);
  CHECK(back[601] == 601);
  fails(cudaErrorInvalidPitchValue, cudaMemcpy2D(p, 399, h.data(), row, row, 7, cudaMemcpyHostToDevice));
  fails(cudaErrorInvalidValue, cudaMemcpy2D(p, pitch, h.data(), row, row, 8, cudaMemcpyHostToDevice));
  fails(cudaErrorInvalidValue, cudaMemcpy2D(p, ~size_t(0) / 2, h.data(), row, row, 7, cudaMemcpyHostToDevice));
  CHECK(cudaFree(p) == cudaSuccess);

  cudaPitchedPtr box;
  REQUIRE(cudaMalloc3D(&box, make_cudaExtent(40, 5, 3)) == cudaSuccess);
  std::vector<char> cube(600), copy(600, -1);
  for (size_t i = 0; i < cube.size(); ++i) cube[i] = char(i);
  cudaMemcpy3DParms to = {}, from = {};
  to.srcPtr = make_cudaPitchedPtr(cube.data(), 40, 40, 5);
  to.dstPtr = from.srcPtr = box;
  from.dstPtr = make_cudaPitchedPtr(copy.data(), 40, 40, 5);
  to.extent = from.extent = make_cudaExtent(40, 5, 3);
  to.kind = cudaMemcpyHostToDevice;
  from.kind = cudaMemcpyDeviceToHost;
  CHECK(cudaMemcpy3D(&to) == cudaSuccess);
  CHECK(cudaMemcpy3D(&from) == cudaSuccess);
  CHECK(copy == cube);
  to.dstPos.z = 1;
  fails(cudaErrorInvalidValue, cudaMemcpy3D(&to));
  CHECK(cudaFree(box.ptr) == cudaSuccess);
}

TEST_CASE("symbols") {
  const float four[4] = {1, 2, 3, 4};
  const std::vector<float> tens(64, 10);
  CHECK(cudaMemcpyToSymbol(constant_array, four, sizeof four) == cudaSuccess);
  CHECK(cudaMemcpyToSymbol(device_array, tens.data(), 64 * sizeof(float)) == cudaSuccess);
  const float changed = 20;
  CHECK(cudaMemcpyToSymbol(device_array, &changed, 4, 3 * sizeof(float)) == cudaSuccess);
  Device<float> out(4);
  use_symbols<<<1, 4>>>(out.data);
  CHECK(out.host() == std::vector<float>{11, 12, 13, 24});
  int count = 0;
  CHECK(cudaMemcpyFromSymbol(&count, device_counter, sizeof count) == cudaSuccess);
  CHECK(count == 4);

  float* address = nullptr;
  size_t size = 0;
  CHECK(cudaGetSymbolSize(&size, device_array) == cudaSuccess);
  CHECK(size == sizeof device_array);
  REQUIRE(cudaGetSymbolAddress(&address, device_array) == cudaSuccess);
  fill<<<1, 32>>>(address, 9, 0, 64);
  CHECK(cudaMemcpy(out.data, address + 60, 16, cudaMemcpyDeviceToDevice) == cudaSuccess);
  CHECK(out.host() == std::vector<float>(4, 9));

  float local = 0;
  fails(cudaErrorInvalidValue, cudaMemcpyToSymbol(constant_array, four, sizeof four, 1));
  fails(cudaErrorInvalidValue, cudaMemcpyFromSymbol(&count, device_counter, 5));
  fails(cudaErrorInvalidMemcpyDirection,
        cudaMemcpyToSymbol(constant_array, four, sizeof four, 0, cudaMemcpyDeviceToHost));
  fails(cudaErrorInvalidSymbol, cudaMemcpyToSymbol(local, four, sizeof local));
  fails(cudaErrorInvalidSymbol, cudaMemcpyToSymbol("constant_array", four, 4));
}

TEST_CASE("pointers tell where they point") {
  cudaPointerAttributes a;
  float host = 0;
  Device<float> d(4);
  float *pinned = nullptr, *managed = nullptr;
  REQUIRE(cudaMallocHost(&pinned, 4) == cudaSuccess);
  REQUIRE(cudaMallocManaged(&managed, 4) == cudaSuccess);
  CHECK(cudaPointerGetAttributes(&a, d.data + 1) == cudaSuccess);
  CHECK(a.type == cudaMemoryTypeDevice);
  CHECK(a.device == 0);
  CHECK(a.devicePointer == d.data + 1);
  CHECK(a.hostPointer == nullptr);
  CHECK(cudaPointerGetAttributes(&a, pinned) == cudaSuccess);
  CHECK(a.type == cudaMemoryTypeHost);
  CHECK(cudaPointerGetAttributes(&a, managed) == cudaSuccess);
  CHECK(a.type == cudaMemoryTypeManaged);
  CHECK(cudaPointerGetAttributes(&a, &host) == cudaSuccess);
  CHECK(a.type == cudaMemoryTypeUnregistered);
  CHECK(cudaFreeHost(pinned) == cudaSuccess);
  CHECK(cudaFree(managed) == cudaSuccess);
}

TEST_CASE("memory of other processes is refused with a sentence") {
  Device<int> data(1);
  cudaIpcMemHandle_t handle;
  const std::string said = stderr_of([&] { CHECK(cudaIpcGetMemHandle(&handle, data.data) == cudaErrorNotSupported); });
  CHECK(contains(said, "cudaIpcGetMemHandle: the CPU device's memory and events belong to one process"));
  CHECK(cudaGetLastError() == cudaErrorNotSupported);
}
