// Two devices exchange a value under a flag. The argument says what is wrong with it: nothing, or one of the mistakes
// that an analysis must name.
#include <cstdio>
#include <cstring>
#include <cuda/atomic>

constexpr int kThreads = 64, kRounds = 2;

struct Rank {
  int* data;   // where the peer puts its values
  int* flag;   // which says that they are there
  int* count;  // an atomic of both devices
  int* sums;
};

enum Mistake { kNone, kNoFence, kDeviceFence, kDeviceFlag, kNoAcquire, kDeviceAtomic, kStale, kOwnPointer, kLaunches };
const char* const kNames[] = {"none",       "no-fence", "device-fence", "device-flag", "no-acquire",
                              "own-atomic", "stale",    "own-pointer",  "launches"};

template <Mistake mistake>
__global__ void exchange(Rank mine, Rank peer, int number, int value) {
  int* const to = mistake == kOwnPointer ? mine.data : peer.data;
  to[threadIdx.x] = value;  // the store
  __syncthreads();
  if (threadIdx.x == 0) {
    if (mistake == kDeviceFence)
      __threadfence();
    else if (mistake != kNoFence && mistake != kDeviceFlag)
      __threadfence_system();
    const int flag = mistake == kStale ? 1 : number;
    if (mistake == kDeviceFlag) {
      cuda::atomic_ref<int, cuda::thread_scope_device>(*peer.flag).store(flag, cuda::memory_order_release);
      cuda::atomic_ref<int, cuda::thread_scope_device> own(*mine.flag);
      while (own.load(cuda::memory_order_acquire) < flag) {
      }
    } else {
      *static_cast<volatile int*>(peer.flag) = flag;
      while (*static_cast<volatile int*>(mine.flag) < flag) {
      }
      if (mistake != kNoAcquire) __threadfence_system();
    }
    if (mistake == kDeviceAtomic)
      atomicAdd(mine.count, 1);
    else
      atomicAdd_system(mine.count, 1);
  }
  __syncthreads();
  mine.sums[threadIdx.x] += mine.data[threadIdx.x ^ 1];  // the load
}

__global__ void write(int* data) { data[threadIdx.x] = 1; }
__global__ void read(const int* data, int* sums) { sums[threadIdx.x] = data[threadIdx.x]; }

template <Mistake mistake>
void run(Rank (&ranks)[2]) {
  for (int round = 1; round <= kRounds; ++round) {
    for (int device = 0; device < 2; ++device) {
      cudaSetDevice(device);
      if (mistake == kLaunches)
        device ? read<<<1, kThreads>>>(ranks[0].data, ranks[1].sums) : write<<<1, kThreads>>>(ranks[0].data);
      else
        exchange<mistake><<<1, kThreads>>>(ranks[device], ranks[1 - device], round, 10 * round + device);
    }
    for (int device = 0; device < 2; ++device) {
      cudaSetDevice(device);
      const cudaError_t error = cudaDeviceSynchronize();
      if (error != cudaSuccess) std::printf("%s\n", cudaGetErrorName(error));
    }
  }
}

int main(int argc, char** argv) {
  const char* name = argc > 1 ? argv[1] : "none";
  Rank ranks[2];
  for (int device = 0; device < 2; ++device) {
    cudaSetDevice(device);
    cudaDeviceEnablePeerAccess(1 - device, 0);
    cudaMalloc(&ranks[device].data, kThreads * sizeof(int));
    cudaMalloc(&ranks[device].sums, kThreads * sizeof(int));
    cudaMalloc(&ranks[device].flag, sizeof(int));
    cudaMalloc(&ranks[device].count, sizeof(int));
    cudaMemset(ranks[device].data, 0, kThreads * sizeof(int));
    cudaMemset(ranks[device].sums, 0, kThreads * sizeof(int));
    cudaMemset(ranks[device].flag, 0, sizeof(int));
    cudaMemset(ranks[device].count, 0, sizeof(int));
    cudaDeviceSynchronize();
  }
  ranks[1].count = ranks[0].count;
  void (*const runs[])(Rank(&)[2]) = {run<kNone>,       run<kNoFence>,    run<kDeviceFence>,
                                      run<kDeviceFlag>, run<kNoAcquire>,  run<kDeviceAtomic>,
                                      run<kStale>,      run<kOwnPointer>, run<kLaunches>};
  for (int mistake = kNone; mistake <= kLaunches; ++mistake)
    if (!std::strcmp(name, kNames[mistake])) runs[mistake](ranks);
  for (int device = 0; device < 2; ++device) {
    int sums[kThreads];
    cudaMemcpy(sums, ranks[device].sums, sizeof sums, cudaMemcpyDefault);
    std::printf("device %d: %d\n", device, sums[kThreads - 1]);
  }
}
