// Streams, events and host functions.
#include <chrono>
#include <thread>

#include "testing.h"

namespace {

__global__ void add(int* value, int n) { atomicAdd(value, n); }

struct Streams {
  cudaStream_t a, b;
  Streams() {
    REQUIRE(cudaStreamCreate(&a) == cudaSuccess);
    REQUIRE(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking) == cudaSuccess);
  }
  ~Streams() {
    cudaStreamDestroy(a);
    cudaStreamDestroy(b);
    cudaGetLastError();
  }
};

}  // namespace

TEST_CASE("work in streams is done, in every kind of stream") {
  Streams s;
  Device<int> d(1);
  int sum = 0;
  for (cudaStream_t stream : {cudaStream_t(nullptr), cudaStreamLegacy, cudaStreamPerThread, s.a, s.b}) {
    add<<<2, 32, 0, stream>>>(d.data, 1);
    CHECK(cudaGetLastError() == cudaSuccess);
    sum += 64;
    int host = 0;
    CHECK(cudaMemcpyAsync(&host, d.data, sizeof host, cudaMemcpyDeviceToHost, stream) == cudaSuccess);
    CHECK(cudaStreamSynchronize(stream) == cudaSuccess);
    CHECK(cudaStreamQuery(stream) == cudaSuccess);
    CHECK(host == sum);
  }
}

TEST_CASE("a stream tells what it was made with") {
  cudaStream_t stream;
  int priority = 1, least = 0, greatest = 0, device = -1;
  unsigned flags = 9;
  CHECK(cudaDeviceGetStreamPriorityRange(&least, &greatest) == cudaSuccess);
  CHECK(greatest < least);
  REQUIRE(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, greatest - 10) == cudaSuccess);
  CHECK(cudaStreamGetPriority(stream, &priority) == cudaSuccess);
  CHECK(priority == greatest);
  CHECK(cudaStreamGetFlags(stream, &flags) == cudaSuccess);
  CHECK(flags == cudaStreamNonBlocking);
  CHECK(cudaStreamGetDevice(stream, &device) == cudaSuccess);
  CHECK(device == 0);
  unsigned long long id = 0, other = 0;
  CHECK(cudaStreamGetId(stream, &id) == cudaSuccess);
  CHECK(cudaStreamGetId(nullptr, &other) == cudaSuccess);
  CHECK(id != other);
  CHECK(cudaStreamDestroy(stream) == cudaSuccess);
  CHECK(cudaStreamCreateWithFlags(&stream, 2) == cudaErrorInvalidValue);
  CHECK(cudaStreamCreate(nullptr) == cudaErrorInvalidValue);
  cudaGetLastError();
}

TEST_CASE("handles that are none are refused") {
  cudaStream_t stream;
  REQUIRE(cudaStreamCreate(&stream) == cudaSuccess);
  REQUIRE(cudaStreamDestroy(stream) == cudaSuccess);
  Device<int> d(1);
  int host = 0;
  for (cudaStream_t wrong : {stream, cudaStream_t(0x3), cudaStream_t(&host)}) {
    CHECK(cudaStreamDestroy(wrong) == cudaErrorInvalidResourceHandle);
    CHECK(cudaStreamSynchronize(wrong) == cudaErrorInvalidResourceHandle);
    CHECK(cudaMemcpyAsync(&host, d.data, 4, cudaMemcpyDeviceToHost, wrong) == cudaErrorInvalidResourceHandle);
    CHECK(cudaGetLastError() == cudaErrorInvalidResourceHandle);
    add<<<1, 1, 0, wrong>>>(d.data, 1);
    CHECK(cudaGetLastError() == cudaErrorInvalidResourceHandle);
  }
  CHECK(cudaStreamDestroy(nullptr) == cudaErrorInvalidResourceHandle);
  CHECK(cudaEventRecord(cudaEvent_t(stream)) == cudaErrorInvalidResourceHandle);
  cudaGetLastError();
  CHECK(d.host()[0] == 0);
}

TEST_CASE("events measure the host's time") {
  cudaEvent_t start, end, untimed;
  REQUIRE(cudaEventCreate(&start) == cudaSuccess);
  REQUIRE(cudaEventCreateWithFlags(&end, cudaEventBlockingSync) == cudaSuccess);
  REQUIRE(cudaEventCreate(&untimed, cudaEventDisableTiming) == cudaSuccess);
  float ms = -1;
  CHECK(cudaEventQuery(start) == cudaSuccess);
  CHECK(cudaEventRecord(start) == cudaSuccess);
  CHECK(cudaEventElapsedTime(&ms, start, end) == cudaErrorInvalidResourceHandle);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  CHECK(cudaEventRecord(end, cudaStreamPerThread) == cudaSuccess);
  CHECK(cudaEventSynchronize(end) == cudaSuccess);
  CHECK(cudaEventElapsedTime(&ms, start, end) == cudaSuccess);
  CHECK(ms >= 20);
  CHECK(ms < 20000);
  CHECK(cudaEventRecord(untimed) == cudaSuccess);
  CHECK(cudaEventElapsedTime(&ms, start, untimed) == cudaErrorInvalidResourceHandle);
  CHECK(cudaEventElapsedTime(nullptr, start, end) == cudaErrorInvalidValue);
  CHECK(cudaStreamWaitEvent(nullptr, end) == cudaSuccess);
  CHECK(cudaEventDestroy(start) == cudaSuccess);
  CHECK(cudaEventDestroy(start) == cudaErrorInvalidResourceHandle);
  CHECK(cudaEventSynchronize(start) == cudaErrorInvalidResourceHandle);
  CHECK(cudaStreamWaitEvent(nullptr, start) == cudaErrorInvalidResourceHandle);
  CHECK(cudaEventCreateWithFlags(&start, 0x40) == cudaErrorInvalidValue);
  cudaEventDestroy(end);
  cudaEventDestroy(untimed);
  cudaGetLastError();
}

TEST_CASE("host functions run in order and make no API calls") {
  Streams s;
  Device<int> d(1);
  struct State {
    int* device;
    int seen = 0, calls = 0;
    cudaError_t inside = cudaSuccess;
  } state{d.data};
  int host = 0;
  add<<<1, 1, 0, s.a>>>(d.data, 5);
  CHECK(cudaMemcpyAsync(&host, d.data, 4, cudaMemcpyDeviceToHost, s.a) == cudaSuccess);
  CHECK(cudaLaunchHostFunc(
            s.a,
            [](void* p) {
              auto& state = *static_cast<State*>(p);
              ++state.calls;
              state.inside = cudaMemset(state.device, 0, 4);
            },
            &state) == cudaSuccess);
  CHECK(cudaStreamAddCallback(
            s.a, [](cudaStream_t, cudaError_t status, void* p) { static_cast<State*>(p)->seen = int(status) + 7; },
            &state, 0) == cudaSuccess);
  CHECK(cudaStreamSynchronize(s.a) == cudaSuccess);
  CHECK(host == 5);
  CHECK(state.calls == 1);
  CHECK(state.inside == cudaErrorNotPermitted);
  CHECK(state.seen == 7);
  CHECK(d.host()[0] == 5);
  CHECK(cudaLaunchHostFunc(s.a, nullptr, nullptr) == cudaErrorInvalidValue);
  cudaGetLastError();
}

TEST_CASE("several host threads use the device at once") {
  Device<int> d(1);
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&d, t] {
      cudaStream_t stream;
      int* own = nullptr;
      int host = -1;
      bool right = cudaStreamCreate(&stream) == cudaSuccess;
      for (int i = 0; i < 50; ++i) {
        right &= cudaMalloc(&own, 4 + t) == cudaSuccess && cudaMemsetAsync(own, 0, 4, stream) == cudaSuccess;
        add<<<1, 32, 0, stream>>>(own, t);
        add<<<1, 1, 0, stream>>>(d.data, 1);
        right &= cudaMemcpyAsync(&host, own, 4, cudaMemcpyDeviceToHost, stream) == cudaSuccess;
        right &= cudaStreamSynchronize(stream) == cudaSuccess && host == 32 * t && cudaFree(own) == cudaSuccess;
      }
      right &= cudaStreamDestroy(stream) == cudaSuccess && cudaGetLastError() == cudaSuccess;
      if (!right) add<<<1, 1>>>(d.data, 1 << 20);
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(d.host()[0] == 400);
}

TEST_CASE("the last error is each thread's own") {
  cudaGetLastError();
  CHECK(cudaSetDevice(5) == cudaErrorInvalidDevice);
  cudaError_t other = cudaErrorUnknown;
  std::thread([&other] { other = cudaGetLastError(); }).join();
  CHECK(other == cudaSuccess);
  CHECK(cudaGetLastError() == cudaErrorInvalidDevice);
}
