// What the ladder takes from NCCL: communicators of all GPUs in one process, and symmetric memory, which every rank may
// read and write.
#pragma once

#include <cuda_runtime.h>
#include <nccl.h>
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
#include <nccl_device.h>
#pragma GCC diagnostic pop

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "common/cuda_check.h"
#include "common/memory.h"
#include "common/operators/all_reduce_rms_norm.h"

namespace ladder::tensor_parallel {

inline void nccl_check(ncclResult_t result, const char* call) {
  if (result != ncclSuccess) throw std::runtime_error(std::string(call) + ": " + ncclGetErrorString(result));
}
#define NCCL_CHECK(call) ::ladder::tensor_parallel::nccl_check((call), #call)

// NCCL waits in a group for what its ranks have to do together: one thread can then ask for all of them.
template <class Body>
void for_all_ranks(int ranks, Body body) {
  NCCL_CHECK(ncclGroupStart());
  for (int rank = 0; rank < ranks; ++rank) {
    const OnDevice here(rank);
    body(rank);
  }
  NCCL_CHECK(ncclGroupEnd());
}

constexpr int kMostBlocks = 1024;  // of a kernel that waits for other ranks: it has so many barriers and flags

// One for each number of ranks, until the program ends.
struct Communicator {
  ncclComm_t comm[kMostRanks] = {};
  ncclDevComm device[kMostRanks] = {};  // what kernels get

  static const Communicator& of(int ranks) {
    static std::map<int, std::unique_ptr<Communicator>> all;
    std::unique_ptr<Communicator>& known = all[ranks];
    if (!known) known = std::make_unique<Communicator>(ranks);
    return *known;
  }

  explicit Communicator(int ranks) {
    setenv("NCCL_NVLS_ENABLE", "0", 1);  // no NVLink multicast
    NCCL_CHECK(ncclCommInitAll(comm, ranks, nullptr));
#ifdef NCCL_DEV_COMM_REQUIREMENTS_INITIALIZER
    ncclDevCommRequirements wanted = NCCL_DEV_COMM_REQUIREMENTS_INITIALIZER;
#else
    ncclDevCommRequirements wanted = {};
#endif
    wanted.lsaBarrierCount = kMostBlocks;
    for_all_ranks(ranks, [&](int rank) { NCCL_CHECK(ncclDevCommCreate(comm[rank], &wanted, &device[rank])); });
    for (int rank = 0; rank < ranks; ++rank)
      if (device[rank].lsaSize != ranks)
        throw std::runtime_error(
            "NCCL cannot load and store between these GPUs; take GPUs with peer access to each other");
  }
};

// What a rank's kernels leave to its later ones.
struct State {
  uint64_t number = 0;     // of the next launch
  uint32_t arrived = 0;    // blocks of the present launch that have read this
  uint32_t packs[3] = {};  // that the last launches left in the buffers which they take in turn
};

static __global__ void addresses_kernel(ncclWindow_t window, int ranks, char** to) {
  const int rank = static_cast<int>(threadIdx.x);
  if (rank < ranks) to[rank] = static_cast<char*>(ncclGetLsaPointer(window, 0, rank));
}

// Memory of the same size on each rank, and where each rank sees that of the others.
struct Symmetric {
  size_t bytes;
  ncclWindow_t window[kMostRanks] = {};
  char* seen[kMostRanks][kMostRanks] = {};  // [by this rank][that rank's]
  State* state[kMostRanks] = {};

  Symmetric(int ranks, size_t bytes, uint32_t fill) : bytes(bytes) {
    const Communicator& all = Communicator::of(ranks);
    void* memory[kMostRanks] = {};
    const std::vector<uint32_t> image(bytes / sizeof(uint32_t), fill);
    for (int rank = 0; rank < ranks; ++rank) {
      const OnDevice here(rank);
      NCCL_CHECK(ncclMemAlloc(&memory[rank], bytes));
      CUDA_CHECK(cudaMemcpy(memory[rank], image.data(), bytes, cudaMemcpyHostToDevice));
      CUDA_CHECK(cudaMalloc(reinterpret_cast<void**>(&state[rank]), sizeof(State)));
      const State first{};
      CUDA_CHECK(cudaMemcpy(state[rank], &first, sizeof first, cudaMemcpyHostToDevice));
    }
    for_all_ranks(ranks, [&](int rank) {
      NCCL_CHECK(ncclCommWindowRegister(all.comm[rank], memory[rank], bytes, &window[rank], NCCL_WIN_COLL_SYMMETRIC));
    });
    for (int rank = 0; rank < ranks; ++rank) {
      if (window[rank] == nullptr)
        throw std::runtime_error("NCCL has no symmetric memory here; it needs NCCL_CUMEM_ENABLE=1");
      const OnDevice here(rank);
      const auto addresses = allocate<char*>(kMostRanks);
      addresses_kernel<<<1, kMostRanks>>>(window[rank], ranks, addresses.get());
      CUDA_CHECK(cudaMemcpy(seen[rank], addresses.get(), sizeof seen[rank], cudaMemcpyDeviceToHost));
    }
    CUDA_CHECK(synchronize(ranks));
  }
};

// The symmetric memory of one stage. It is not given back: a captured graph may hold its addresses.
class Workspace {
 public:
  explicit Workspace(uint32_t fill = 0) : fill_(fill) {}

  const Symmetric& of(int ranks, size_t bytes) {
    Symmetric*& known = all_[ranks];
    if (known == nullptr || known->bytes < bytes) {
      CUDA_CHECK(synchronize(ranks));
      size_t rounded = size_t{1} << 24;
      while (rounded < bytes) rounded *= 2;
      known = new Symmetric(ranks, rounded, fill_);
    }
    return *known;
  }

 private:
  uint32_t fill_;
  std::map<int, Symmetric*> all_;
};

}  // namespace ladder::tensor_parallel
