// The built-in functions of device code: block barriers, fences, clusters, clocks and traps. Every function that waits
// takes the caller's line as a hidden last argument, so that a fault can name it.
#pragma once
#include <time.h>

#include "atomic.h"
#include "core.h"
#include "driver_types.h"
#include "memory_access.h"
#include "warp.h"

// --- Block barriers ------------------------------------------------------------------------------------------------

inline void __syncthreads(simt::Site site = simt::Site::here()) { simt::block_barrier(simt::Vote::none, 0, site); }
inline int __syncthreads_count(int predicate, simt::Site site = simt::Site::here()) {
  return simt::block_barrier(simt::Vote::count, predicate, site);
}
inline int __syncthreads_and(int predicate, simt::Site site = simt::Site::here()) {
  return simt::block_barrier(simt::Vote::all, predicate, site);
}
inline int __syncthreads_or(int predicate, simt::Site site = simt::Site::here()) {
  return simt::block_barrier(simt::Vote::any, predicate, site);
}

// --- Fences --------------------------------------------------------------------------------------------------------

namespace simt {

inline __thread unsigned fences = 0;

// A loop that polls a flag has a fence in it: every so often the fence lets the lanes run that will set the flag.
inline void fence(Reach reach) {
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
  note_fence(reach);
  if (!kAnalysis && ++fences % 32 == 0) yield();
}

}  // namespace simt

inline void __threadfence() { simt::fence(simt::Reach::device); }
inline void __threadfence_block() { simt::fence(simt::Reach::block); }
inline void __threadfence_cluster() { simt::fence(simt::Reach::device); }
inline void __threadfence_system() { simt::fence(simt::Reach::system); }

// --- Clusters ------------------------------------------------------------------------------------------------------

inline void __cluster_barrier_arrive(simt::Site site = simt::Site::here()) { simt::cluster_arrive(site); }
inline void __cluster_barrier_arrive_relaxed(simt::Site site = simt::Site::here()) { simt::cluster_arrive(site); }
inline void __cluster_barrier_wait(simt::Site site = simt::Site::here()) { simt::cluster_wait(site); }
inline dim3 __clusterDim() { return simt::cluster_position().size; }
inline dim3 __clusterIdx() { return simt::cluster_position().index; }
inline dim3 __clusterRelativeBlockIdx() { return simt::cluster_position().block; }
inline unsigned __clusterRelativeBlockRank() { return simt::cluster_position().rank; }
inline dim3 __clusterGridDimInClusters() {
  const dim3 size = simt::cluster_position().size;
  return dim3(gridDim.x / size.x, gridDim.y / size.y, gridDim.z / size.z);
}
inline unsigned __clusterSizeInBlocks() {
  const dim3 size = simt::cluster_position().size;
  return size.x * size.y * size.z;
}
inline unsigned __clusterDimIsSpecified() { return __clusterSizeInBlocks() > 1; }
inline void* __cluster_map_shared_rank(const void* address, unsigned rank) {
  return simt::map_shared_rank(address, rank);
}
inline unsigned __cluster_query_shared_rank(const void* address) {
  return static_cast<unsigned>(simt::query_shared_rank(address));
}

// --- Launches that overlap (programmatic dependent launch) -----------------------------------------------------------

// Launches run in order, each whole: the grid before this one has finished, and the next one has not begun. An analysis
// looks for what may go wrong where they overlap.
inline void cudaGridDependencySynchronize() { simt::note_wait_for_launch(); }
inline void cudaTriggerProgrammaticLaunchCompletion() { simt::note_next_launch(); }

// --- Time and traps ------------------------------------------------------------------------------------------------

// Nanoseconds of wall time: a CPU has no multiprocessor clock. clock() is the C library's.
inline long long clock64() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return 1000000000LL * now.tv_sec + now.tv_nsec;
}
inline void __nanosleep(unsigned) { simt::yield(); }
inline void __prof_trigger(int) {}

[[noreturn]] inline void __trap(simt::Site site = simt::Site::here()) {
  simt::device_fault(cudaErrorLaunchFailure, "__trap() was called", site);
}
[[noreturn]] inline void __brkpt(simt::Site site = simt::Site::here()) {
  simt::device_fault(cudaErrorLaunchFailure, "__brkpt() was called and no debugger is attached", site);
}

inline void __builtin_assume(bool) {}
inline void __assume(bool) {}
