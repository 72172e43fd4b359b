// The part of NCCL that kernels call: windows of symmetric memory, the barrier of the ranks that load and store in each
// other's memory (here: all), and teams. NCCL's GIN, its LL all-to-all and NVLink multicast do not exist here.
#pragma once
#include <nccl.h>

#include <cuda/atomic>

#include <cstdint>
#include <cstdio>

#include "simt/core.h"
#include "simt/warp.h"

namespace simt::nccl {

constexpr int kMostRanks = 8;
constexpr size_t kResourceUnit = 128;  // bytes; a handle counts them

[[noreturn]] inline void refuse_multicast(Site site) {
  device_fault(cudaErrorNotSupported, "the CPU device does not have NVLink multicast; pass multimem = false", site);
}

}  // namespace simt::nccl

// --- Types -----------------------------------------------------------------------------------------------------------
struct ncclTeam {
  int nRanks, rank, stride;
};
struct ncclTeamTagWorld {};
struct ncclTeamTagLsa {};
struct ncclTeamTagRail {};
struct ncclMultimemHandle {
  void* mcBasePtr;
};
typedef uint32_t ncclDevResourceHandle;
struct ncclLsaBarrierHandle {
  ncclDevResourceHandle bufHandle;
  int nBarriers;
};

struct ncclWindow_vidmem {
  char* base[simt::nccl::kMostRanks];  // of each rank
  int lsaRank, ranks;
  size_t size;
};

struct ncclDevComm {
  int rank, nRanks, lsaRank, lsaSize;
  ncclWindow_t resourceWindow;
  ncclWindow_vidmem resourceWindow_inlined;
  ncclMultimemHandle lsaMultimem;
  ncclLsaBarrierHandle lsaBarrier;
};

struct ncclDevResourceRequirements {
  ncclDevResourceRequirements* next;
  size_t bufferSize, bufferAlign;
  ncclDevResourceHandle* outBufferHandle;
  int ginSignalCount, ginCounterCount;
  uint32_t *outGinSignalStart, *outGinCounterStart;
};
struct ncclTeamRequirements {
  ncclTeamRequirements* next;
  ncclTeam team;
  bool multimem;
  ncclMultimemHandle* outMultimemHandle;
};
struct ncclDevCommRequirements {
  ncclDevResourceRequirements* resourceRequirementsList;
  ncclTeamRequirements* teamRequirementsList;
  bool lsaMultimem;
  int barrierCount, lsaBarrierCount, railGinBarrierCount;
  int lsaLLA2ABlockCount, lsaLLA2ASlotCount;
  bool ginForceEnable;
  int ginContextCount, ginSignalCount, ginCounterCount;
};

typedef ncclTeam ncclTeam_t;
typedef ncclDevComm ncclDevComm_t;
typedef ncclMultimemHandle ncclMultimemHandle_t;
typedef ncclLsaBarrierHandle ncclLsaBarrierHandle_t;
typedef ncclDevResourceHandle ncclDevResourceHandle_t;
typedef ncclDevResourceRequirements ncclDevResourceRequirements_t;
typedef ncclTeamRequirements ncclTeamRequirements_t;
typedef ncclDevCommRequirements ncclDevCommRequirements_t;

// From NCCL 2.29 on, programs write this and the next three.
#define NCCL_DEV_COMM_REQUIREMENTS_INITIALIZER \
  {}
enum ncclGinType_t { NCCL_GIN_TYPE_NONE = 0, NCCL_GIN_TYPE_PROXY = 2, NCCL_GIN_TYPE_GDAKI = 3 };
struct ncclCommProperties_t {
  int rank, nRanks, cudaDev, nvmlDev;
  bool deviceApiSupport, multimemSupport;
  ncclGinType_t ginType;
  int nLsaTeams;
};
#define NCCL_COMM_PROPERTIES_INITIALIZER \
  {}

extern "C" {
ncclResult_t ncclCommQueryProperties(ncclComm_t comm, ncclCommProperties_t* properties);
ncclResult_t ncclDevCommCreate(ncclComm_t comm, const ncclDevCommRequirements* requirements, ncclDevComm* made);
ncclResult_t ncclDevCommDestroy(ncclComm_t comm, const ncclDevComm* made);
ncclResult_t ncclLsaBarrierCreateRequirement(ncclTeam team, int barriers, ncclLsaBarrierHandle* handle,
                                             ncclDevResourceRequirements* requirement);
}

// --- Teams: the ranks rank + (i - team.rank) * stride ----------------------------------------------------------------
extern "C" {
ncclTeam ncclTeamWorld(ncclComm_t comm);
ncclTeam ncclTeamLsa(ncclComm_t comm);
ncclTeam ncclTeamRail(ncclComm_t comm);
int ncclTeamRankToWorld(ncclComm_t comm, ncclTeam team, int rank);
int ncclTeamRankToLsa(ncclComm_t comm, ncclTeam team, int rank);
}
inline ncclTeam ncclTeamWorld(const ncclDevComm& comm) { return {comm.nRanks, comm.rank, 1}; }
inline ncclTeam ncclTeamLsa(const ncclDevComm& comm) { return {comm.lsaSize, comm.lsaRank, 1}; }
inline ncclTeam ncclTeamRail(const ncclDevComm& comm) {
  return {comm.nRanks / comm.lsaSize, comm.rank / comm.lsaSize, comm.lsaSize};
}
inline int ncclTeamRankToWorld(const ncclDevComm& comm, ncclTeam team, int rank) {
  return comm.rank + (rank - team.rank) * team.stride;
}
inline int ncclTeamRankToLsa(const ncclDevComm& comm, ncclTeam team, int rank) {
  return comm.lsaRank + (rank - team.rank) * team.stride;
}
inline int ncclTeamRankToTeam(ncclTeam a, ncclTeam b, int rank) {
  return a.rank + (rank - b.rank) * b.stride / a.stride;
}
inline bool ncclTeamRankIsMember(ncclTeam a, ncclTeam b, int rank) {
  const int place = ncclTeamRankToTeam(a, b, rank);
  return (rank - b.rank) * b.stride % a.stride == 0 && place >= 0 && place < a.nRanks;
}
inline ncclTeam ncclTeamInnerFactor(ncclTeam parent, int size) { return {size, parent.rank % size, parent.stride}; }
inline ncclTeam ncclTeamOuterFactor(ncclTeam parent, int size) {
  return {parent.nRanks / size, parent.rank / size, parent.stride * size};
}
inline int ncclTeamRankInDifference(ncclTeam parent, ncclTeam subset, int index) {
  for (int rank = 0; rank < parent.nRanks; ++rank)
    if (!ncclTeamRankIsMember(subset, parent, rank) && index-- == 0) return rank;
  return -1;
}

// --- Memory ----------------------------------------------------------------------------------------------------------
namespace simt::nccl {

// Its table is NCCL's own, so the analysis does not count the load.
SIMT_OWN inline void* pointer_in(const ncclWindow_vidmem* window, size_t offset, int rank, Site site) {
  if (rank < 0 || rank >= window->ranks) {
    char text[96];
    std::snprintf(text, sizeof text, "rank %d is none of the window's %d ranks", rank, window->ranks);
    device_fault(cudaErrorIllegalAddress, text, site);
  }
  return window->base[rank] + offset;
}
SIMT_OWN inline int rank_of(const ncclWindow_vidmem* window) { return window->lsaRank; }

}  // namespace simt::nccl

inline void* ncclGetLocalPointer(ncclWindow_t w, size_t offset, simt::Site site = simt::Site::here()) {
  return simt::nccl::pointer_in(w, offset, simt::nccl::rank_of(w), site);
}
inline void* ncclGetLsaPointer(ncclWindow_t w, size_t offset, int peer, simt::Site site = simt::Site::here()) {
  return simt::nccl::pointer_in(w, offset, peer, site);
}
inline void* ncclGetPeerPointer(ncclWindow_t w, size_t offset, int peer, simt::Site site = simt::Site::here()) {
  return simt::nccl::pointer_in(w, offset, peer, site);
}
inline void* ncclGetPeerPointer(ncclWindow_t w, size_t offset, ncclTeam team, int peer,
                                simt::Site site = simt::Site::here()) {
  return simt::nccl::pointer_in(w, offset, simt::nccl::rank_of(w) + (peer - team.rank) * team.stride, site);
}
inline void* ncclGetMultimemPointer(ncclWindow_t, size_t, ncclMultimemHandle, simt::Site site = simt::Site::here()) {
  simt::nccl::refuse_multicast(site);
}
inline void* ncclGetLsaMultimemPointer(ncclWindow_t, size_t, const ncclDevComm&, simt::Site site = simt::Site::here()) {
  simt::nccl::refuse_multicast(site);
}

inline void* ncclGetResourceBufferMultimemPointer(const ncclDevComm&, ncclDevResourceHandle, ncclMultimemHandle,
                                                  simt::Site site = simt::Site::here()) {
  simt::nccl::refuse_multicast(site);
}
inline void* ncclGetResourceBufferLsaMultimemPointer(const ncclDevComm&, ncclDevResourceHandle,
                                                     simt::Site site = simt::Site::here()) {
  simt::nccl::refuse_multicast(site);
}

inline size_t ncclGetResourceBufferOffset(ncclDevResourceHandle handle) { return handle * simt::nccl::kResourceUnit; }
inline void* ncclGetResourceBufferLsaPointer(const ncclDevComm& comm, ncclDevResourceHandle handle, int peer,
                                             simt::Site site = simt::Site::here()) {
  return simt::nccl::pointer_in(&comm.resourceWindow_inlined, ncclGetResourceBufferOffset(handle), peer, site);
}
inline void* ncclGetResourceBufferLocalPointer(const ncclDevComm& comm, ncclDevResourceHandle handle,
                                               simt::Site site = simt::Site::here()) {
  return ncclGetResourceBufferLsaPointer(comm, handle, comm.lsaRank, site);
}
inline void* ncclGetResourceBufferPeerPointer(const ncclDevComm& comm, ncclDevResourceHandle handle, ncclTeam team,
                                              int peer, simt::Site site = simt::Site::here()) {
  return ncclGetResourceBufferLsaPointer(comm, handle, ncclTeamRankToLsa(comm, team, peer), site);
}

// A place in a window, which each rank has at an address of its own.
template <class T>
struct ncclSymPtr {
  using ElementType = T;
  ncclWindow_t window;
  size_t offset;

  constexpr ncclSymPtr(ncclWindow_t window = nullptr, size_t offset = 0) : window(window), offset(offset) {}
  template <class U>
  operator ncclSymPtr<U>() const {
    return {window, offset};
  }
  template <class Integer>
  ncclSymPtr& operator+=(Integer d) {
    offset += static_cast<size_t>(d) * sizeof(T);
    return *this;
  }
  template <class Integer>
  ncclSymPtr& operator-=(Integer d) {
    offset -= static_cast<size_t>(d) * sizeof(T);
    return *this;
  }
  T* localPtr(simt::Site site = simt::Site::here()) const {
    return static_cast<T*>(ncclGetLocalPointer(window, offset, site));
  }
  T* lsaPtr(int peer, simt::Site site = simt::Site::here()) const {
    return static_cast<T*>(ncclGetLsaPointer(window, offset, peer, site));
  }
  T* peerPtr(int peer, simt::Site site = simt::Site::here()) const {
    return static_cast<T*>(ncclGetPeerPointer(window, offset, peer, site));
  }
  T* peerPtr(ncclTeam team, int peer, simt::Site site = simt::Site::here()) const {
    return static_cast<T*>(ncclGetPeerPointer(window, offset, team, peer, site));
  }
  T* multimemPtr(ncclMultimemHandle, simt::Site site = simt::Site::here()) const { simt::nccl::refuse_multicast(site); }
  T* lsaMultimemPtr(const ncclDevComm&, simt::Site site = simt::Site::here()) const {
    simt::nccl::refuse_multicast(site);
  }
};
template <class T, class Integer>
ncclSymPtr<T> operator+(ncclSymPtr<T> p, Integer d) {
  return p += d;
}
template <class T, class Integer>
ncclSymPtr<T> operator-(ncclSymPtr<T> p, Integer d) {
  return p -= d;
}
template <class T>
ptrdiff_t operator-(ncclSymPtr<T> a, ncclSymPtr<T> b) {
  return (static_cast<ptrdiff_t>(a.offset) - static_cast<ptrdiff_t>(b.offset)) / static_cast<ptrdiff_t>(sizeof(T));
}
template <class T>
bool operator==(ncclSymPtr<T> a, ncclSymPtr<T> b) {
  return a.window == b.window && a.offset == b.offset;
}
template <class T>
bool operator!=(ncclSymPtr<T> a, ncclSymPtr<T> b) {
  return !(a == b);
}
inline ncclSymPtr<char> ncclGetResourceBuffer(const ncclDevComm& comm, ncclDevResourceHandle handle) {
  return {comm.resourceWindow, ncclGetResourceBufferOffset(handle)};
}

// --- Threads that act together ---------------------------------------------------------------------------------------
template <int kThreads>
struct ncclCoopTile {  // aligned, of a warp
  static_assert(kThreads >= 1 && kThreads <= 32 && (kThreads & (kThreads - 1)) == 0, "1, 2, 4, 8, 16 or 32 threads");
  int thread_rank() const { return static_cast<int>(simt::lane_id() % kThreads); }
  constexpr int size() const { return kThreads; }
  constexpr int num_threads() const { return kThreads; }
  uint32_t laneMask() const { return 0xffffffffu >> (32 - kThreads) << (simt::lane_id() / kThreads * kThreads); }
  void sync(simt::Site site = simt::Site::here()) const {
    if (kThreads > 1) __syncwarp(laneMask() & simt::present_lanes(), site);
  }
};
using ncclCoopThread = ncclCoopTile<1>;
using ncclCoopWarp = ncclCoopTile<32>;

struct ncclCoopLanes {  // some of a warp
  uint32_t lmask;
  constexpr ncclCoopLanes(uint32_t lanes = 0xffffffffu) : lmask(lanes) {}
  int thread_rank() const { return __builtin_popcount(lmask & ((1u << simt::lane_id()) - 1)); }
  int size() const { return __builtin_popcount(lmask); }
  int num_threads() const { return size(); }
  void sync(simt::Site site = simt::Site::here()) const { __syncwarp(lmask, site); }
};

struct ncclCoopCta {
  int thread_rank() const { return static_cast<int>(threadIdx.x); }
  int size() const { return static_cast<int>(blockDim.x); }
  int num_threads() const { return size(); }
  void sync(simt::Site site = simt::Site::here()) const { simt::block_barrier(simt::Vote::none, 0, site); }
};

template <int kThreads>
uint32_t ncclCoopGetLaneMask(ncclCoopTile<kThreads> coop) {
  return coop.laneMask();
}
inline uint32_t ncclCoopGetLaneMask(ncclCoopLanes coop) { return coop.lmask; }
inline uint32_t ncclCoopGetLaneMask(ncclCoopCta) { return 0xffffffffu; }

template <int kThreads>
constexpr bool ncclCoopIsThread(ncclCoopTile<kThreads>) {
  return kThreads == 1;
}
constexpr bool ncclCoopIsThread(ncclCoopLanes) { return false; }
constexpr bool ncclCoopIsThread(ncclCoopCta) { return false; }

template <int kThreads>
constexpr bool ncclCoopWithinWarp(ncclCoopTile<kThreads>) {
  return true;
}
constexpr bool ncclCoopWithinWarp(ncclCoopLanes) { return true; }
constexpr bool ncclCoopWithinWarp(ncclCoopCta) { return false; }

inline ncclCoopLanes ncclCoopCoalesced(simt::Site site = simt::Site::here()) { return {__activemask(site)}; }
template <int kThreads>
ncclCoopTile<kThreads> ncclCoopCoalesced(ncclCoopTile<kThreads> coop) {
  return coop;
}
inline ncclCoopLanes ncclCoopCoalesced(ncclCoopLanes coop) { return coop; }
inline ncclCoopWarp ncclCoopCoalesced(ncclCoopCta) { return {}; }

// --- The barrier of the ranks ----------------------------------------------------------------------------------------
// In a rank's buffer stand, for each barrier, how often it has been passed, who holds it, and a flag for each rank. A
// flag carries the number of the passage, so nobody resets it.
template <class Coop>
struct ncclLsaBarrierSession {
  using Order = cuda::memory_order;

  ncclLsaBarrierSession(Coop coop, const ncclDevComm& comm, ncclTeam team, ncclLsaBarrierHandle handle, uint32_t index,
                        bool multimem = false, ncclMultimemHandle = {}, simt::Site site = simt::Site::here())
      : coop_(coop), comm_(comm), team_(team), handle_(handle), index_(index) {
    if (multimem) simt::nccl::refuse_multicast(site);
    if (index >= static_cast<uint32_t>(handle.nBarriers)) {
      char text[128];
      std::snprintf(text, sizeof text, "barrier %u is none of the %d that lsaBarrierCount asked for", index,
                    handle.nBarriers);
      simt::device_fault(cudaErrorIllegalAddress, text, site);
    }
    begin(site);
  }
  ncclLsaBarrierSession(Coop coop, const ncclDevComm& comm, ncclTeamTagLsa, uint32_t index, bool multimem = false,
                        simt::Site site = simt::Site::here())
      : ncclLsaBarrierSession(coop, comm, ncclTeamLsa(comm), comm.lsaBarrier, index, multimem, {}, site) {}
  ncclLsaBarrierSession(const ncclLsaBarrierSession&) = delete;
  ~ncclLsaBarrierSession() {
    end();
    coop_.sync(site_);
  }

  void arrive(Coop, Order order, simt::Site site = simt::Site::here()) {
    const bool releases = order != cuda::memory_order_relaxed && order != cuda::memory_order_acquire &&
                          order != cuda::memory_order_consume;
    coop_.sync(site);
    for (int peer = coop_.thread_rank(); peer < team_.nRanks; peer += coop_.size()) {
      if (peer == team_.rank) continue;
      const auto theirs = flag(peer, team_.rank);
      theirs.store(passed_ + 1, releases ? cuda::memory_order_release : cuda::memory_order_relaxed);
    }
  }

  void wait(Coop, Order order, simt::Site site = simt::Site::here()) {
    const bool acquires = order != cuda::memory_order_relaxed && order != cuda::memory_order_release;
    const Order seen = acquires ? cuda::memory_order_acquire : cuda::memory_order_relaxed;
    for (awaited_ = coop_.thread_rank(); awaited_ < team_.nRanks; awaited_ += coop_.size()) {
      if (awaited_ == team_.rank) continue;
      simt::note_polling(describe, this, site);
      const auto mine = flag(team_.rank, awaited_);
      while (static_cast<int32_t>(mine.load(seen) - (passed_ + 1)) < 0) {
      }
      simt::note_polling(nullptr, this, site);
    }
    ++passed_;
    site.nth += 1;
    coop_.sync(site);
  }

  void sync(Coop coop, Order order, simt::Site site = simt::Site::here()) {
    arrive(coop, order, site);
    wait(coop, order, site);
  }

 private:
  uint32_t* words(int rank) const {
    return static_cast<uint32_t*>(ncclGetResourceBufferPeerPointer(comm_, handle_.bufHandle, team_, rank, site_));
  }
  cuda::atomic_ref<uint32_t> flag(int of, int from) const {
    return cuda::atomic_ref<uint32_t>(
        words(of)[2 * handle_.nBarriers + static_cast<int>(index_) * team_.nRanks + from]);
  }
  // Like NCCL's, these accesses are ordered by the barriers around them: the analysis need not see them.
  SIMT_OWN void begin(simt::Site site) {
    site_ = site;
    uint32_t* own = words(team_.rank);
    passed_ = own[index_];
    if (coop_.thread_rank() != 0) return;
    uint32_t& held = own[handle_.nBarriers + static_cast<int>(index_)];
    if (held) {
      char text[96];
      std::snprintf(text, sizeof text, "two sessions use barrier %u of rank %d at once", index_, team_.rank);
      simt::device_fault(cudaErrorLaunchFailure, text, site);
    }
    held = 1;
  }
  SIMT_OWN void end() {
    if (coop_.thread_rank() != 0) return;
    uint32_t* own = words(team_.rank);
    own[index_] = passed_;
    own[handle_.nBarriers + static_cast<int>(index_)] = 0;
  }
  static void describe(const void* session, char* text, size_t size) {
    const auto& self = *static_cast<const ncclLsaBarrierSession*>(session);
    std::snprintf(text, size, "waits as rank %d at NCCL's barrier %u for rank %d, which has not come", self.team_.rank,
                  self.index_, self.awaited_);
  }

  Coop coop_;
  const ncclDevComm& comm_;
  ncclTeam team_;
  ncclLsaBarrierHandle handle_;
  uint32_t index_, passed_ = 0;
  int awaited_ = 0;
  simt::Site site_{};
};

// The barrier of ranks on one host; between hosts it would use GIN, which its fence level concerns.
enum class ncclGinFenceLevel { Relaxed };
template <class Coop>
struct ncclBarrierSession {
  ncclBarrierSession(Coop coop, ncclTeamTagLsa team, const ncclDevComm& comm, uint32_t index, bool multimem = false,
                     simt::Site site = simt::Site::here())
      : lsa_(coop, comm, team, index, multimem, site) {}
  ncclBarrierSession(const ncclBarrierSession&) = delete;

  ncclLsaBarrierSession<Coop>& lsaBarrier() { return lsa_; }
  void sync(Coop coop, cuda::memory_order order, ncclGinFenceLevel, simt::Site site = simt::Site::here()) {
    lsa_.sync(coop, order, site);
  }

 private:
  ncclLsaBarrierSession<Coop> lsa_;
};
