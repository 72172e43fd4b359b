// What orders two ranks for the analysis: test_nccl.py gives what stands between one rank's store and the other's load.
#include <nccl.h>
#include <nccl_device.h>

#include <cstdio>
#include <cstring>

constexpr int kRanks = 2;

__global__ void put(ncclWindow_t window, int value) {
  static_cast<int*>(ncclGetLocalPointer(window, 0))[threadIdx.x] = value;
}
__global__ void get(ncclWindow_t window, int peer, int* out) {
  out[threadIdx.x] = static_cast<int*>(ncclGetLsaPointer(window, 0, peer))[threadIdx.x];
}
__global__ void exchange(ncclWindow_t window, ncclDevComm comm, bool meets, cuda::memory_order order, int* out) {
  ncclLsaBarrierSession<ncclCoopCta> barrier(ncclCoopCta(), comm, ncclTeamTagLsa(), blockIdx.x);
  static_cast<int*>(ncclGetLocalPointer(window, 0))[threadIdx.x] = comm.rank + 1;
  if (meets) barrier.sync(ncclCoopCta(), order);
  out[threadIdx.x] = static_cast<int*>(ncclGetLsaPointer(window, 0, 1 - comm.rank))[threadIdx.x];
  if (meets) barrier.sync(ncclCoopCta(), order);
}

int main(int, char** arguments) {
  const char* between = arguments[1];
  const auto is = [&](const char* name) { return std::strcmp(between, name) == 0; };
  ncclComm_t comm[kRanks];
  ncclWindow_t window[kRanks];
  ncclDevComm device[kRanks];
  ncclDevCommRequirements wanted = {};
  wanted.lsaBarrierCount = 1;
  void* memory[kRanks];
  int *out[kRanks], *data[kRanks];
  ncclCommInitAll(comm, kRanks, nullptr);
  for (int r = 0; r < kRanks; ++r) {
    cudaSetDevice(r);
    ncclMemAlloc(&memory[r], 4096);
    cudaMalloc(&out[r], 32 * sizeof(int));
    cudaMalloc(&data[r], 2 * sizeof(int));
    cudaMemset(data[r], 0, 2 * sizeof(int));
  }
  ncclGroupStart();
  for (int r = 0; r < kRanks; ++r) {
    ncclCommWindowRegister(comm[r], memory[r], 4096, &window[r], NCCL_WIN_COLL_SYMMETRIC);
    ncclDevCommCreate(comm[r], &wanted, &device[r]);
  }
  ncclGroupEnd();
  const auto on_each = [](auto use) {
    for (int r = 0; r < kRanks; ++r) {
      cudaSetDevice(r);
      use(r);
    }
  };
  if (is("barrier") || is("relaxed barrier") || is("no barrier")) {
    const auto order = is("barrier") ? cuda::memory_order_acq_rel : cuda::memory_order_relaxed;
    on_each([&](int r) { exchange<<<1, 32>>>(window[r], device[r], !is("no barrier"), order, out[r]); });
  } else {
    put<<<1, 32>>>(window[1], 2);  // rank 1 stores, and rank 0 loads
    ncclGroupStart();
    on_each([&](int r) {
      if (is("all-reduce")) ncclAllReduce(data[r], data[r], 1, ncclInt, ncclSum, comm[r], nullptr);
      if (is("broadcast from 1")) ncclBroadcast(data[r], data[r], 1, ncclInt, 1, comm[r], nullptr);
      if (is("broadcast from 0")) ncclBroadcast(data[r], data[r], 1, ncclInt, 0, comm[r], nullptr);
      if (is("send to 0") || is("send to 1"))
        r == (is("send to 0") ? 1 : 0) ? ncclSend(data[r], 1, ncclInt, 1 - r, comm[r], nullptr)
                                       : ncclRecv(data[r], 1, ncclInt, 1 - r, comm[r], nullptr);
    });
    ncclGroupEnd();
    cudaSetDevice(0);
    get<<<1, 32>>>(window[0], 1, out[0]);
  }
  on_each([](int) { cudaDeviceSynchronize(); });
  std::puts(cudaGetErrorName(cudaGetLastError()));
}
