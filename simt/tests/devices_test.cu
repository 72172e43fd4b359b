// Several devices: whose memory is whose, peers, streams and events across devices, kernels that wait for each other.
#include <algorithm>
#include <cuda/atomic>
#include <thread>

#include "testing.h"

namespace {

constexpr int kDevices = 3;
[[maybe_unused]] const int asked = setenv("SIMT_DEVICES", "3", 1);

struct On {  // the current device, for a scope
  int before = 0;
  explicit On(int device) {
    cudaGetDevice(&before);
    REQUIRE(cudaSetDevice(device) == cudaSuccess);
  }
  ~On() { cudaSetDevice(before); }
};

template <class Use>
void on_each(Use use) {
  for (int device = 0; device < kDevices; ++device) {
    const On on(device);
    use(device);
  }
}

void enable_peers() {
  on_each([](int device) {
    for (int peer = 0; peer < kDevices; ++peer)
      if (peer != device) cudaDeviceEnablePeerAccess(peer, 0);
  });
  cudaGetLastError();
}

void reset_all() {
  on_each([](int) { CHECK(cudaDeviceReset() == cudaSuccess); });
}

__global__ void fill(int* values, int value) { values[blockIdx.x * blockDim.x + threadIdx.x] = value; }
__global__ void add(int* values, const int* others) { values[threadIdx.x] += others[threadIdx.x]; }

struct Flags {
  int* of[kDevices];
};

// Every device tells all others that it is there, and waits for all of them: launched one after the other.
__global__ void meet(Flags flags, int self, int number, int* seen) {
  if (threadIdx.x < kDevices) {
    cuda::atomic_ref<int> theirs(flags.of[threadIdx.x][self]), mine(flags.of[self][threadIdx.x]);
    theirs.store(number, cuda::memory_order_release);
    while (mine.load(cuda::memory_order_acquire) < number) {
    }
  }
  __syncthreads();
  if (threadIdx.x == 32) atomicAdd(seen, 1);
}

// The same with volatile accesses, which give nothing up by themselves.
__global__ void meet_volatile(volatile int* mine, volatile int* theirs, int* seen) {
  *theirs = 1;
  while (*mine == 0) {
  }
  *seen = 1;
}

// A collective whose combine() takes so long, in a function that it calls, that the watchdog wants other kernels to
// run.
__attribute__((noinline)) void take_long() {
  for (volatile int i = 0; i < 10'000'000; ++i) {
  }
}
void combine_slowly(simt::Exchange& exchange, uint32_t mask) {
  take_long();
  for (int lane = 0; lane < 32; ++lane)
    if (mask >> lane & 1) exchange.result[lane] = exchange.value[lane ^ 1] + 1;
}
constexpr simt::Collective kSlow{&combine_slowly, simt::analysis::Operation::other, "a slow collective"};

__global__ void meet_slowly(unsigned mask, int* values) {
  uint64_t value = threadIdx.x;
  for (int i = 0; i < 4; ++i) value = simt::warp_collective(kSlow, mask, value, 0, simt::Site{__FILE__, __LINE__});
  values[threadIdx.x] = static_cast<int>(value);
}

__global__ void wait_for_ever(int* flag) {
  while (atomicAdd(flag, 0) == 0) {
  }
}

__global__ void count_blocks_and_wait(int* count) {
  if (threadIdx.x == 0) atomicAdd(count, 1);
  while (atomicAdd(count, 0) < int(gridDim.x)) {
  }
}

__device__ int counter = 5;
__constant__ int step[2];
__global__ void count_steps() { counter += step[1]; }

// One step of Jacobi's method on rows of 32 values: from[0] and from[rows + 1] are the neighbours' rows.
__global__ void relax(float* to, const float* from, int rows) {
  const int row = 1 + blockIdx.x, column = threadIdx.x;
  const float* centre = from + 32 * row + column;
  const float left = column ? centre[-1] : 0, right = column < 31 ? centre[1] : 0;
  if (row <= rows) to[32 * row + column] = (centre[-32] + centre[32] + left + right) / 4;
}

struct Setting {  // of the environment, for a scope
  const char* name;
  Setting(const char* name, const char* value) : name(name) { setenv(name, value, 1); }
  ~Setting() { unsetenv(name); }
};

}  // namespace

TEST_CASE("there are as many devices as are asked for, and each thread uses its own") {
  int count = 0, device = -1;
  CHECK(cudaGetDeviceCount(&count) == cudaSuccess);
  CHECK(count == kDevices);
  CHECK(cudaSetDevice(kDevices) == cudaErrorInvalidDevice);
  CHECK(cudaGetLastError() == cudaErrorInvalidDevice);
  const On on(2);
  std::thread([&] { cudaGetDevice(&device); }).join();
  CHECK(device == 0);
  CHECK(cudaGetDevice(&device) == cudaSuccess);
  CHECK(device == 2);
  cudaDeviceProp one, other;
  CHECK(cudaGetDeviceProperties(&one, 0) == cudaSuccess);
  CHECK(cudaGetDeviceProperties(&other, 1) == cudaSuccess);
  CHECK(one.pciBusID != other.pciBusID);
  CHECK(memcmp(&one.uuid, &other.uuid, sizeof one.uuid) != 0);
  char bus[16];
  CHECK(cudaDeviceGetPCIBusId(bus, sizeof bus, 2) == cudaSuccess);
  CHECK(cudaDeviceGetByPCIBusId(&device, bus) == cudaSuccess);
  CHECK(device == 2);
}

TEST_CASE("memory belongs to the device that was current") {
  int* data[kDevices];
  on_each([&](int device) {
    REQUIRE(cudaMalloc(&data[device], 256) == cudaSuccess);
    fill<<<2, 32>>>(data[device], device);
  });
  on_each([&](int device) {
    cudaPointerAttributes attributes;
    CHECK(cudaPointerGetAttributes(&attributes, data[device]) == cudaSuccess);
    CHECK(attributes.type == cudaMemoryTypeDevice);
    CHECK(attributes.device == device);
    int host[64];
    CHECK(cudaMemcpy(host, data[device], sizeof host, cudaMemcpyDefault) == cudaSuccess);  // any device's
    CHECK(host[63] == device);
  });
  CHECK(cudaMemcpyPeer(data[0], 0, data[2], 2, 256) == cudaSuccess);
  CHECK(cudaMemcpyPeer(data[0], 1, data[2], 2, 256) == cudaErrorInvalidValue);
  CHECK(cudaMemcpyPeer(data[0], 0, data[2], kDevices, 256) == cudaErrorInvalidDevice);
  cudaGetLastError();
  int host[64];
  CHECK(cudaMemcpy(host, data[0], sizeof host, cudaMemcpyDeviceToHost) == cudaSuccess);
  CHECK(host[5] == 2);
  int *pinned, *managed;
  REQUIRE(cudaMallocHost(&pinned, 256) == cudaSuccess);
  REQUIRE(cudaMallocManaged(&managed, 256) == cudaSuccess);
  on_each([&](int device) {
    fill<<<1, 64>>>(pinned, device + 1);
    fill<<<1, 64>>>(managed, device + 2);
    CHECK(cudaDeviceSynchronize() == cudaSuccess);
    CHECK(pinned[63] == device + 1);
    CHECK(managed[63] == device + 2);
  });
  on_each([&](int device) { CHECK(cudaFree(data[device]) == cudaSuccess); });
  cudaFreeHost(pinned);
  cudaFree(managed);
}

TEST_CASE("peer access has CUDA's error codes") {
  int can = -1;
  CHECK(cudaDeviceCanAccessPeer(&can, 0, 1) == cudaSuccess);
  CHECK(can == 1);
  CHECK(cudaDeviceCanAccessPeer(&can, 1, 1) == cudaSuccess);
  CHECK(can == 0);
  CHECK(cudaDeviceCanAccessPeer(&can, 0, kDevices) == cudaErrorInvalidDevice);
  CHECK(cudaDeviceEnablePeerAccess(0, 0) == cudaErrorInvalidDevice);
  CHECK(cudaDeviceEnablePeerAccess(1, 1) == cudaErrorInvalidValue);
  CHECK(cudaDeviceDisablePeerAccess(1) == cudaErrorPeerAccessNotEnabled);
  CHECK(cudaDeviceEnablePeerAccess(1, 0) == cudaSuccess);
  CHECK(cudaDeviceEnablePeerAccess(1, 0) == cudaErrorPeerAccessAlreadyEnabled);
  CHECK(cudaDeviceDisablePeerAccess(1) == cudaSuccess);
  cudaGetLastError();
}

TEST_CASE("a kernel reaches a peer's memory where that was enabled, and nowhere else") {
  int *here, *there;
  REQUIRE(cudaMalloc(&here, 128) == cudaSuccess);
  {
    const On on(1);
    REQUIRE(cudaMalloc(&there, 128) == cudaSuccess);
    fill<<<1, 32>>>(there, 7);
    CHECK(cudaDeviceSynchronize() == cudaSuccess);
  }
  REQUIRE(cudaDeviceEnablePeerAccess(1, 0) == cudaSuccess);
  fill<<<1, 32>>>(here, 1);
  add<<<1, 32>>>(here, there);
  int host[32];
  CHECK(cudaMemcpy(host, here, sizeof host, cudaMemcpyDeviceToHost) == cudaSuccess);
  CHECK(host[31] == 8);
  const std::string text = stderr_of([&] {
    const On on(1);  // access has a direction
    add<<<1, 32>>>(there, here);
    CHECK(cudaDeviceSynchronize() == cudaErrorIllegalAddress);
  });
  CHECK(contains(text, "device 1 has no access to the memory of device 0"));
  CHECK(contains(text, "call cudaDeviceEnablePeerAccess(0, 0) after cudaSetDevice(1)"));
  CHECK(contains(text, "devices_test.cu:"));
  reset_all();
}

TEST_CASE("streams and events belong to devices") {
  cudaStream_t stream;
  cudaEvent_t event;
  int device = -1;
  int* data;
  {
    const On on(1);
    REQUIRE(cudaStreamCreate(&stream) == cudaSuccess);
    REQUIRE(cudaEventCreate(&event) == cudaSuccess);
    REQUIRE(cudaMalloc(&data, 128) == cudaSuccess);
    CHECK(cudaStreamGetDevice(nullptr, &device) == cudaSuccess);
    CHECK(device == 1);
  }
  CHECK(cudaStreamGetDevice(stream, &device) == cudaSuccess);
  CHECK(device == 1);
  fill<<<1, 32, 0, stream>>>(data, 1);
  CHECK(cudaGetLastError() == cudaErrorInvalidResourceHandle);
  CHECK(cudaEventRecord(event, nullptr) == cudaErrorInvalidResourceHandle);
  cudaGetLastError();
  CHECK(cudaMemsetAsync(data, 0, 128, stream) == cudaSuccess);  // what is no kernel may
  CHECK(cudaEventRecord(event, stream) == cudaSuccess);
  CHECK(cudaStreamWaitEvent(nullptr, event, 0) == cudaSuccess);
  CHECK(cudaStreamSynchronize(nullptr) == cudaSuccess);
  CHECK(cudaEventQuery(event) == cudaSuccess);
  CHECK(cudaStreamQuery(stream) == cudaSuccess);
  reset_all();
}

TEST_CASE("an event orders two devices") {
  enable_peers();
  int *source, *target;
  cudaStream_t streams[2];
  cudaEvent_t written;
  for (int device = 0; device < 2; ++device) {
    const On on(device);
    REQUIRE(cudaStreamCreateWithFlags(&streams[device], cudaStreamNonBlocking) == cudaSuccess);
    REQUIRE(cudaMalloc(device ? &target : &source, 128) == cudaSuccess);
  }
  REQUIRE(cudaEventCreate(&written) == cudaSuccess);
  for (const char* order : {"forward", "reversed"}) {  // of the devices: device 1 would go first
    const Setting setting("SIMT_ORDER", order);
    fill<<<1, 32, 0, streams[0]>>>(source, 5);
    CHECK(cudaEventRecord(written, streams[0]) == cudaSuccess);
    const On on(1);
    CHECK(cudaMemsetAsync(target, 0, 128, streams[1]) == cudaSuccess);
    CHECK(cudaStreamWaitEvent(streams[1], written, 0) == cudaSuccess);
    add<<<1, 32, 0, streams[1]>>>(target, source);
    int host[32];
    CHECK(cudaMemcpyAsync(host, target, sizeof host, cudaMemcpyDeviceToHost, streams[1]) == cudaSuccess);
    CHECK(cudaStreamSynchronize(streams[1]) == cudaSuccess);
    CHECK(host[9] == 5);
    CHECK(cudaMemset(source, 0, 128) == cudaSuccess);
  }
  reset_all();
}

TEST_CASE("kernels that wait for each other run, in every order of the devices and from a graph") {
  enable_peers();
  Flags flags;
  int* seen[kDevices];
  cudaStream_t streams[kDevices];
  on_each([&](int device) {
    REQUIRE(cudaMalloc(&flags.of[device], sizeof(int) * kDevices) == cudaSuccess);
    REQUIRE(cudaMemset(flags.of[device], 0, sizeof(int) * kDevices) == cudaSuccess);
    REQUIRE(cudaMalloc(&seen[device], sizeof(int)) == cudaSuccess);
    REQUIRE(cudaMemset(seen[device], 0, sizeof(int)) == cudaSuccess);
    REQUIRE(cudaStreamCreate(&streams[device]) == cudaSuccess);
    REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
  });
  int number = 0;
  for (const char* order : {"forward", "reversed", "5"}) {
    const Setting setting("SIMT_ORDER", order);
    for (int round = 0; round < 3; ++round) {
      ++number;
      on_each([&](int device) { meet<<<1, 64, 0, streams[device]>>>(flags, device, number, seen[device]); });
    }
    on_each([&](int) { CHECK(cudaDeviceSynchronize() == cudaSuccess); });
  }
  ++number;  // one host thread for each device
  std::vector<std::thread> threads;
  for (int device = 0; device < kDevices; ++device)
    threads.emplace_back([&, device] {
      cudaSetDevice(device);
      meet<<<1, 64>>>(flags, device, number, seen[device]);
      CHECK(cudaDeviceSynchronize() == cudaSuccess);
    });
  for (std::thread& thread : threads) thread.join();

  ++number;  // a graph on all devices
  cudaEvent_t fork, joined;
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  REQUIRE(cudaEventCreate(&fork) == cudaSuccess);
  REQUIRE(cudaStreamBeginCapture(streams[0], cudaStreamCaptureModeGlobal) == cudaSuccess);
  REQUIRE(cudaEventRecord(fork, streams[0]) == cudaSuccess);
  for (int device = kDevices - 1; device >= 0; --device) {
    const On on(device);
    if (device) REQUIRE(cudaStreamWaitEvent(streams[device], fork, 0) == cudaSuccess);
    meet<<<1, 64, 0, streams[device]>>>(flags, device, number, seen[device]);
  }
  for (int device = 1; device < kDevices; ++device) {
    const On on(device);
    REQUIRE(cudaEventCreate(&joined) == cudaSuccess);
    REQUIRE(cudaEventRecord(joined, streams[device]) == cudaSuccess);
    REQUIRE(cudaStreamWaitEvent(streams[0], joined, 0) == cudaSuccess);
  }
  REQUIRE(cudaStreamEndCapture(streams[0], &graph) == cudaSuccess);
  REQUIRE(cudaGraphInstantiate(&exec, graph, 0) == cudaSuccess);
  for (int replay = 0; replay < 3; ++replay) {
    on_each([&](int device) { CHECK(cudaMemset(flags.of[device], 0, sizeof(int) * kDevices) == cudaSuccess); });
    on_each([&](int) { CHECK(cudaDeviceSynchronize() == cudaSuccess); });
    CHECK(cudaGraphLaunch(exec, streams[0]) == cudaSuccess);
    CHECK(cudaStreamSynchronize(streams[0]) == cudaSuccess);
  }
  on_each([&](int device) {
    int count = 0;
    CHECK(cudaMemcpy(&count, seen[device], sizeof count, cudaMemcpyDeviceToHost) == cudaSuccess);
    CHECK(count == 13);
  });
  reset_all();
}

TEST_CASE("a spin on a volatile word makes room for the other device") {
  enable_peers();
  int *flags[2], *seen[2];
  for (int device = 0; device < 2; ++device) {
    const On on(device);
    REQUIRE(cudaMalloc(&flags[device], 4) == cudaSuccess);
    REQUIRE(cudaMemset(flags[device], 0, 4) == cudaSuccess);
    REQUIRE(cudaMalloc(&seen[device], 4) == cudaSuccess);
    REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
  }
  for (int device = 0; device < 2; ++device) {
    const On on(device);
    meet_volatile<<<1, 1>>>(flags[device], flags[1 - device], seen[device]);
  }
  for (int device = 0; device < 2; ++device) {
    int host = 0;
    CHECK(cudaMemcpy(&host, seen[device], 4, cudaMemcpyDeviceToHost) == cudaSuccess);
    CHECK(host == 1);
  }
  reset_all();
}

TEST_CASE("no other lane runs while a collective is combined") {
  for (const int threads : {32, 30}) {
    int* values[2];
    for (int device = 0; device < 2; ++device) {
      const On on(device);
      REQUIRE(cudaMalloc(&values[device], 32 * sizeof(int)) == cudaSuccess);
    }
    for (int device = 0; device < 2; ++device) {
      const On on(device);
      meet_slowly<<<1, threads>>>(~0u >> (32 - threads), values[device]);
    }
    for (const int* found : values) {
      int host[32];
      CHECK(cudaMemcpy(host, found, sizeof host, cudaMemcpyDeviceToHost) == cudaSuccess);
      for (int i = 0; i < threads; ++i) CHECK(host[i] == i + 4);
    }
  }
  reset_all();
}

TEST_CASE("all blocks that fit are on the device at once, and more of them that wait are named") {
  int* count;
  REQUIRE(cudaMalloc(&count, 4) == cudaSuccess);
  REQUIRE(cudaMemset(count, 0, 4) == cudaSuccess);
  count_blocks_and_wait<<<8, 1024>>>(count);
  CHECK(cudaDeviceSynchronize() == cudaSuccess);
  REQUIRE(cudaMemset(count, 0, 4) == cudaSuccess);
  const Setting setting("SIMT_TIMEOUT", "0.3");
  const std::string text = stderr_of([&] {
    count_blocks_and_wait<<<9, 1024>>>(count);
    CHECK(cudaDeviceSynchronize() == cudaErrorLaunchTimeout);
  });
  CHECK(contains(text, "of its 9 blocks 8 are on the device at once"));
  reset_all();
}

TEST_CASE("a wait that nothing will end is named, with what each device does") {
  int* flag;
  {
    const On on(1);
    REQUIRE(cudaMalloc(&flag, 4) == cudaSuccess);
    REQUIRE(cudaMemset(flag, 0, 4) == cudaSuccess);
  }
  const Setting setting("SIMT_TIMEOUT", "0.3");
  const std::string text = stderr_of([&] {
    const On on(1);
    wait_for_ever<<<1, 1>>>(flag);
    CHECK(cudaDeviceSynchronize() == cudaErrorLaunchTimeout);
  });
  CHECK(contains(text, "kernel wait_for_ever on device 1, block (0,0,0), thread (0,0,0)"));
  CHECK(contains(text, "device 0 has nothing to do; device 1 is in kernel wait_for_ever; device 2 has nothing to do"));
  CHECK(contains(text, "devices_test.cu:"));
  reset_all();
}

TEST_CASE("a kernel that runs later does not read the environment, since the program may change it meanwhile") {
  int *flag, *filled;
  REQUIRE(cudaMallocHost(&flag, 4) == cudaSuccess);
  *flag = 0;
  const On on(1);
  REQUIRE(cudaMalloc(&filled, 4) == cudaSuccess);
  wait_for_ever<<<1, 1>>>(flag);
  fill<<<1, 1>>>(filled, 1);
  {
    const UnreadableEnvironment unreadable;
    usleep(50000);
    __atomic_store_n(flag, 1, __ATOMIC_SEQ_CST);
    CHECK(cudaDeviceSynchronize() == cudaSuccess);
  }
  cudaFreeHost(flag);
  reset_all();
}

TEST_CASE("a fault ends the kernels that would wait for ever") {
  enable_peers();
  int* flag;
  REQUIRE(cudaMalloc(&flag, 4) == cudaSuccess);
  REQUIRE(cudaMemset(flag, 0, 4) == cudaSuccess);
  const std::string text = stderr_of([&] {
    wait_for_ever<<<1, 1>>>(flag);
    const On on(1);
    fill<<<1, 1>>>(nullptr, 1);
    CHECK(cudaDeviceSynchronize() == cudaErrorIllegalAddress);
    cudaSetDevice(0);
    CHECK(cudaDeviceSynchronize() == cudaErrorIllegalAddress);
  });
  CHECK(contains(text, "kernel fill on device 1"));
  CHECK(text.find("wait_for_ever") == std::string::npos);
  reset_all();
}

TEST_CASE("pools belong to devices, and what is freed in a stream is freed in its order") {
  cudaMemPool_t pools[2];
  CHECK(cudaDeviceGetDefaultMemPool(&pools[0], 0) == cudaSuccess);
  CHECK(cudaDeviceGetDefaultMemPool(&pools[1], 1) == cudaSuccess);
  CHECK(pools[0] != pools[1]);
  CHECK(cudaDeviceSetMemPool(0, pools[1]) == cudaErrorInvalidValue);
  cudaGetLastError();
  const On on(1);
  int* data;
  int host[32];
  REQUIRE(cudaMallocAsync(&data, 128, nullptr) == cudaSuccess);
  cudaPointerAttributes attributes;
  CHECK(cudaPointerGetAttributes(&attributes, data) == cudaSuccess);
  CHECK(attributes.device == 1);
  fill<<<1, 32>>>(data, 3);
  CHECK(cudaMemcpyAsync(host, data, sizeof host, cudaMemcpyDeviceToHost, nullptr) == cudaSuccess);
  CHECK(cudaFreeAsync(data, nullptr) == cudaSuccess);
  CHECK(cudaStreamSynchronize(nullptr) == cudaSuccess);
  CHECK(host[31] == 3);
}

TEST_CASE("each device has its own copy of a __device__ and of a __constant__ variable") {
  on_each([](int device) {
    const int steps[2] = {0, 10 * device};
    CHECK(cudaMemcpyToSymbol(step, steps, sizeof steps) == cudaSuccess);
    count_steps<<<1, 1>>>();
  });
  on_each([](int device) {
    int value = 0;
    count_steps<<<1, 1>>>();
    CHECK(cudaMemcpyFromSymbol(&value, counter, sizeof value) == cudaSuccess);
    CHECK(value == 5 + 20 * device);
  });
  void* address;
  const std::string text = stderr_of([&] { CHECK(cudaGetSymbolAddress(&address, counter) == cudaErrorNotSupported); });
  CHECK(contains(text, "allocate the memory with cudaMalloc"));
  cudaGetLastError();
}

TEST_CASE("Jacobi's method on rows of several devices, with halos that peers copy under events") {
  constexpr int kRows = 4, kSteps = 6, kSize = 32 * (kRows + 2);
  std::vector<float> all(32 * (kDevices * kRows + 2)), next = all;
  for (size_t i = 0; i < all.size(); ++i) all[i] = float(i * 37 % 101);
  next = all;
  float* grids[2][kDevices];
  cudaStream_t streams[kDevices];
  cudaEvent_t steps[kDevices], copies[kDevices];
  on_each([&](int device) {
    REQUIRE(cudaStreamCreate(&streams[device]) == cudaSuccess);
    REQUIRE(cudaEventCreateWithFlags(&steps[device], cudaEventDisableTiming) == cudaSuccess);
    REQUIRE(cudaEventCreateWithFlags(&copies[device], cudaEventDisableTiming) == cudaSuccess);
    for (auto& grid : grids) {
      REQUIRE(cudaMalloc(&grid[device], kSize * sizeof(float)) == cudaSuccess);
      REQUIRE(cudaMemcpy(grid[device], &all[size_t(32 * kRows * device)], kSize * sizeof(float), cudaMemcpyDefault) ==
              cudaSuccess);
    }
  });
  for (int step = 0; step < kSteps; ++step) {
    auto &from = grids[step % 2], &to = grids[1 - step % 2];
    on_each([&](int device) {
      for (int peer : {device - 1, device + 1})
        if (step && peer >= 0 && peer < kDevices) cudaStreamWaitEvent(streams[device], copies[peer], 0);
      relax<<<kRows, 32, 0, streams[device]>>>(to[device], from[device], kRows);
      CHECK(cudaEventRecord(steps[device], streams[device]) == cudaSuccess);
    });
    on_each([&](int device) {  // its first and last row become the neighbours' halos, once these have read the old ones
      for (int peer : {device - 1, device + 1}) {
        if (peer < 0 || peer >= kDevices) continue;
        CHECK(cudaStreamWaitEvent(streams[device], steps[peer], 0) == cudaSuccess);
        const int row = peer < device ? 1 : kRows, halo = peer < device ? kRows + 1 : 0;
        CHECK(cudaMemcpyPeerAsync(to[peer] + 32 * halo, peer, to[device] + 32 * row, device, 32 * sizeof(float),
                                  streams[device]) == cudaSuccess);
      }
      CHECK(cudaEventRecord(copies[device], streams[device]) == cudaSuccess);
    });
    for (int row = 1; row <= kDevices * kRows; ++row)
      for (int column = 0; column < 32; ++column) {
        const float* centre = &all[size_t(32 * row + column)];
        const float left = column ? centre[-1] : 0, right = column < 31 ? centre[1] : 0;
        next[size_t(32 * row + column)] = (centre[-32] + centre[32] + left + right) / 4;
      }
    all.swap(next);
  }
  on_each([&](int) { CHECK(cudaDeviceSynchronize() == cudaSuccess); });
  on_each([&](int device) {
    std::vector<float> rows(32 * kRows);
    CHECK(cudaMemcpy(rows.data(), grids[kSteps % 2][device] + 32, rows.size() * sizeof(float), cudaMemcpyDefault) ==
          cudaSuccess);
    CHECK(std::equal(rows.begin(), rows.end(), all.begin() + 32 * (1 + kRows * device)));
  });
  reset_all();
}

TEST_CASE("a device is reset alone") {
  int* data[2];
  for (int device = 0; device < 2; ++device) {
    const On on(device);
    REQUIRE(cudaMalloc(&data[device], 128) == cudaSuccess);
  }
  CHECK(cudaDeviceReset() == cudaSuccess);
  CHECK(cudaFree(data[0]) == cudaErrorInvalidValue);
  cudaGetLastError();
  CHECK(cudaFree(data[1]) == cudaSuccess);
}

TEST_CASE("handles for other processes are refused") {
  int* data;
  REQUIRE(cudaMalloc(&data, 128) == cudaSuccess);
  cudaIpcMemHandle_t handle;
  const std::string text = stderr_of([&] { CHECK(cudaIpcGetMemHandle(&handle, data) == cudaErrorNotSupported); });
  CHECK(contains(text, "belong to one process"));
  cudaGetLastError();
  cudaFree(data);
}
