// What the device-side headers need of the scheduler. Everything here runs inside a kernel, on the fiber of one lane.
#pragma once
#include <cstddef>
#include <cstdint>

#include "analysis.h"
#include "vector_types.h"

// Set at each switch of lane; plain thread-local words, so that reading them costs one load. In a program their place
// is known when it is linked. Saying so keeps g++ 12 from fetching it through a vector register, which the linker
// refuses. In a library it is known when the library is loaded: asking for it then is no call.
#if defined(__PIC__) && !defined(__PIE__)
#define SIMT_LANE_WORD extern __thread __attribute__((tls_model("initial-exec")))
#else
#define SIMT_LANE_WORD extern __thread __attribute__((tls_model("local-exec")))
#endif
SIMT_LANE_WORD uint3 threadIdx;
SIMT_LANE_WORD uint3 blockIdx;
SIMT_LANE_WORD dim3 blockDim;
SIMT_LANE_WORD dim3 gridDim;
#undef SIMT_LANE_WORD
constexpr int warpSize = 32;

namespace simt {

// The translator lets each function of the program say where it runs, which costs nothing: execution_space.py reads it
// in g++'s graph of the calls.
namespace runs {
#define SIMT_RUNS(where) \
  __attribute__((always_inline, artificial)) inline void where() noexcept {}
SIMT_RUNS(on_host)
SIMT_RUNS(on_device)
SIMT_RUNS(on_both)
#undef SIMT_RUNS
// It also puts the kernel on the list from which the runtime tells kernels from other functions.
__attribute__((always_inline, artificial)) inline void as_kernel() noexcept {
  asm volatile("1: .pushsection simt_kernels, \"a?\", @progbits\n .long 1b - .\n .popsection");
}
}  // namespace runs

// The translator puts one behind each __device__ and __constant__ variable: each device has its own copy of it.
void add_device_variable(void* address, size_t size);
struct DeviceVariable {
  template <class T>
  explicit DeviceVariable(T& variable) {
    if constexpr (!std::is_const_v<std::remove_all_extents_t<T>>)
      add_device_variable(
          const_cast<void*>(reinterpret_cast<volatile void*>(&reinterpret_cast<volatile char&>(variable))),
          sizeof variable);
  }
};

// The student's line that called a built-in.
struct Site {
  const char* file;
  int line;
  int nth = 1;  // where the line has several barriers
  static constexpr Site here(const char* file = __builtin_FILE(), int line = __builtin_LINE()) { return {file, line}; }
  static constexpr Site here(int nth, const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    return {file, line, nth};
  }
};

bool in_kernel();  // by its answer a __host__ __device__ function chooses the half that __CUDA_ARCH__ leaves it

// --- Block ---------------------------------------------------------------------------------------------------------
enum class Vote { none, count, all, any };
int block_barrier(Vote vote, int predicate, Site site);

// --- Warp ----------------------------------------------------------------------------------------------------------
// Each lane of `mask` deposits a value and an operand; the last to arrive runs `combine`, which fills in every lane's
// result. Lanes are joined by equal mask and equal `combine`.
struct Exchange {
  uint64_t value[32];
  uint64_t result[32];
  uint32_t operand[32];
};
using Combine = void (*)(Exchange& exchange, uint32_t mask);
struct Collective {
  Combine combine;
  analysis::Operation operation;
  const char* name;
};
uint64_t warp_collective(const Collective& what, uint32_t mask, uint64_t value, uint32_t operand, Site site);
// The lanes of the calling warp that are at the same call together.
uint32_t active_mask(Site site);
uint32_t lane_id();
uint32_t warp_id();
uint32_t present_lanes();  // lanes of the calling warp that the launch created

// --- Cluster and grid ----------------------------------------------------------------------------------------------
struct ClusterPosition {
  dim3 size;      // blocks in the cluster, per dimension
  uint3 block;    // this block's place in its cluster
  uint3 index;    // this cluster's place in the grid
  uint32_t rank;  // linear rank of this block in its cluster
};
ClusterPosition cluster_position();
void cluster_arrive(Site site);
void cluster_wait(Site site);
void grid_barrier(Site site);  // a fault unless the launch was cooperative
bool is_cooperative();
void* map_shared_rank(const void* shared, uint32_t rank);
int query_shared_rank(const void* shared);  // -1 if the address is not in shared memory of this cluster

// --- Shared memory -------------------------------------------------------------------------------------------------
// One declaration of a __shared__ variable; its place in the block's arena is chosen anew for each launch.
struct SharedVariable {
  size_t size, alignment;
  uint64_t launch = 0;
  size_t offset = 0;
};
void* shared_address(SharedVariable& variable);
void* dynamic_shared_address();
size_t dynamic_shared_size();
bool is_shared(const void* pointer);

#ifdef SIMT_ANALYSIS
void* shared_address(SharedVariable& variable, const char* declaration);
#endif

template <class T, class Declaration>
T& shared() {
  static SharedVariable variable{sizeof(T), alignof(T)};
#ifdef SIMT_ANALYSIS
  return *reinterpret_cast<T*>(shared_address(variable, __PRETTY_FUNCTION__));
#else
  return *reinterpret_cast<T*>(shared_address(variable));
#endif
}
template <class T>
T& dynamic_shared() {
  return *reinterpret_cast<T*>(dynamic_shared_address());
}

// --- Waiting and ordering ------------------------------------------------------------------------------------------
void yield();  // lets the other resident lanes run
// What the lane polls, in words, if the watchdog ends the kernel; null when it polls no more.
using Describe = void(const void* object, char* text, size_t size);
void note_polling(Describe* describe, const void* object, Site site);
// Called before each atomic: global atomics take place in block order, so that results do not depend on the number of
// workers; every so often the lane yields, so that a lane that spins on a lock lets its owner run.
void atomic_point(const void* address);

// --- Asynchronous copies -------------------------------------------------------------------------------------------
// On a GPU a copy lands at any moment between its issue and the wait for it. Here it lands at the wait, so that a
// missing wait shows, or, if this says so, at its issue, so that it shows where it overwrites what is still needed.
bool copies_land_early();
void async_copy(void* shared, const void* global, size_t size, size_t zero_fill);
void async_commit();
void async_wait(size_t groups_left);  // all but the newest `groups_left` committed groups have landed

// Ends the kernel with a CUDA error and a sentence that names kernel, block, thread and line.
[[noreturn]] void device_fault(int cuda_error, const char* sentence, Site site);

}  // namespace simt
