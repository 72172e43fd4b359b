// A Communicator for all_reduce.cuh, of the ranks of an ncclComm_t. Needs NCCL 2.28 or newer.
//
//   #include <rms_norm/all_reduce_nccl.cuh>
//   rms_norm::NcclRegion region;
//   ncclResult_t result = region.open(nccl, rms_norm::region_bytes(ranks, message_bytes));  // by all ranks
//   if (result == ncclSuccess) result = region.find_peers(communicator);
//
// A thread that has several ranks opens all their regions between ncclGroupStart() and ncclGroupEnd(), and finds the
// peers of each afterwards.
#pragma once

#include <cuda_runtime.h>
#include <nccl.h>
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
#include <nccl_device.h>
#pragma GCC diagnostic pop

#include <cstddef>

#include "all_reduce.cuh"

namespace rms_norm {

namespace detail {

struct RegionPointers {
  void* of[kMostRanks];
};
template <int most>
__global__ void find_regions(ncclWindow_t window, int ranks, RegionPointers* found) {
  const int rank = threadIdx.x;
  if (rank < most && rank < ranks) found->of[rank] = ncclGetLsaPointer(window, 0, rank);
}

}  // namespace detail

// Memory of the current device that NCCL lets the other ranks see. Its ranks are those of one host whose GPUs reach
// each other's memory.
class NcclRegion {
 public:
  NcclRegion() = default;
  NcclRegion(const NcclRegion&) = delete;
  NcclRegion& operator=(const NcclRegion&) = delete;
  ~NcclRegion() { close(); }

  // Allocates the region, prepares it and registers it. All ranks of `nccl` call it, with the same number of bytes.
  // When it has returned, or the group that it is in has ended, all ranks' regions are ready.
  ncclResult_t open(ncclComm_t nccl, size_t bytes) {
    close();
    if (const ncclResult_t result = ncclCommCount(nccl, &communicator_.ranks)) return result;
    if (const ncclResult_t result = ncclCommUserRank(nccl, &communicator_.rank)) return result;
    if (communicator_.ranks > kMostRanks) return ncclInvalidArgument;
    if (const ncclResult_t result = ncclMemAlloc(&memory_, bytes)) return result;
    nccl_ = nccl, communicator_.bytes = bytes;
    if (init_region(memory_, bytes) != cudaSuccess || cudaStreamSynchronize(nullptr) != cudaSuccess)
      return ncclUnhandledCudaError;
    return ncclCommWindowRegister(nccl, memory_, bytes, &window_, NCCL_WIN_COLL_SYMMETRIC);
  }
  // The communicator, which is valid until the region is closed; ncclInvalidUsage if a rank cannot be reached. `groups`
  // and late_rank of the communicator are yours to set.
  ncclResult_t find_peers(Communicator& communicator) {
    if (window_ == nullptr || ncclTeamLsa(nccl_).nRanks != communicator_.ranks) return ncclInvalidUsage;
    detail::RegionPointers *found = nullptr, pointers = {};
    if (cudaMalloc(reinterpret_cast<void**>(&found), sizeof pointers) != cudaSuccess) return ncclUnhandledCudaError;
    detail::find_regions<kMostRanks><<<1, kMostRanks>>>(window_, communicator_.ranks, found);
    const cudaError_t error = cudaMemcpy(&pointers, found, sizeof pointers, cudaMemcpyDeviceToHost);
    cudaFree(found);
    if (error != cudaSuccess) return ncclUnhandledCudaError;
    for (int rank = 0; rank < communicator_.ranks; ++rank) communicator_.regions[rank] = pointers.of[rank];
    communicator = communicator_;
    return ncclSuccess;
  }
  // All ranks call it, after their last launch has ended.
  ncclResult_t close() {
    ncclResult_t result = ncclSuccess;
    if (window_ != nullptr) result = ncclCommWindowDeregister(nccl_, window_);
    if (memory_ != nullptr && result == ncclSuccess) result = ncclMemFree(memory_);
    window_ = nullptr, memory_ = nullptr, nccl_ = nullptr;
    return result;
  }

 private:
  Communicator communicator_;
  ncclComm_t nccl_ = nullptr;
  ncclWindow_t window_ = nullptr;
  void* memory_ = nullptr;
};

}  // namespace rms_norm
