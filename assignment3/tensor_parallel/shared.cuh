// What the stages share: 16-byte packs of a row, the norm of a row that a block holds, and accesses that other GPUs
// see.
#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cuda/atomic>

#include <cstdint>
#include <cstdio>

#include "assignment3/tensor_parallel/communicator.cuh"
#include "common/kernel_helpers.cuh"
#include "common/launch.h"

namespace ladder::tensor_parallel {

constexpr int kThreads = 512;  // of a block, at most; each has up to four packs of a row
constexpr int kColumns = 8;    // of a pack

// What the kernel of one rank gets.
struct Work {
  AllReduceCall::Rank t;
  int64_t rows, cols;
  int64_t shard;  // rows of each rank, if they are shared out
  int rank, ranks;
  int pitch;  // packs of a row in a buffer: there each row begins at a pack, whatever its length
  float eps;
  bool aligned;              // rows of the tensors begin at multiples of 16 bytes
  char* buffer[kMostRanks];  // each rank's symmetric memory, as this rank sees it
  size_t bytes;              // of each
  State* state;
};

// --- Packs ---------------------------------------------------------------------------------------------------------
struct Eight {
  float v[kColumns];
};
__device__ inline Eight widened(uint4 pack) {
  const uint32_t words[] = {pack.x, pack.y, pack.z, pack.w};
  Eight wide;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    wide.v[2 * i] = __uint_as_float(words[i] << 16);
    wide.v[2 * i + 1] = __uint_as_float(words[i] & 0xffff0000u);
  }
  return wide;
}
__device__ inline uint4 rounded(const Eight& wide) {
  uint32_t words[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const uint32_t low = __bfloat16_as_ushort(__float2bfloat16_rn(wide.v[2 * i]));
    const uint32_t high = __bfloat16_as_ushort(__float2bfloat16_rn(wide.v[2 * i + 1]));
    words[i] = low | high << 16;
  }
  return make_uint4(words[0], words[1], words[2], words[3]);
}
__device__ inline void add(Eight& sum, uint4 pack) {
  const Eight wide = widened(pack);
#pragma unroll
  for (int i = 0; i < kColumns; ++i) sum.v[i] += wide.v[i];
}

// What a thread holds of a row: packs threadIdx.x, threadIdx.x + blockDim.x, … Past the row's end they are zeros.
template <int kPacks>
struct Packs {
  uint4 p[kPacks];
};
template <int kPacks>
struct RowSum {
  Eight p[kPacks];
};
__device__ inline int pack_of(int i) { return static_cast<int>(threadIdx.x + i * blockDim.x); }

template <int kPacks>
__device__ Packs<kPacks> load_row(const Work& w, const __nv_bfloat16* matrix, int64_t row) {
  Packs<kPacks> packs;
#pragma unroll
  for (int i = 0; i < kPacks; ++i) {
    packs.p[i] = make_uint4(0, 0, 0, 0);
    const int64_t first = int64_t{pack_of(i)} * kColumns;
    const auto* from = reinterpret_cast<const uint16_t*>(matrix + row * w.cols + first);
    if (first >= w.cols) continue;
    if (w.aligned) {
      packs.p[i] = *reinterpret_cast<const uint4*>(from);
      continue;
    }
    uint32_t words[4] = {};
#pragma unroll
    for (int j = 0; j < kColumns; ++j)
      if (first + j < w.cols) words[j / 2] |= uint32_t{from[j]} << j % 2 * 16;
    packs.p[i] = make_uint4(words[0], words[1], words[2], words[3]);
  }
  return packs;
}
template <int kPacks>
__device__ void store_row(const Work& w, __nv_bfloat16* matrix, int64_t row, const Packs<kPacks>& packs) {
#pragma unroll
  for (int i = 0; i < kPacks; ++i) {
    const int64_t first = int64_t{pack_of(i)} * kColumns;
    auto* to = reinterpret_cast<uint16_t*>(matrix + row * w.cols + first);
    if (first >= w.cols) continue;
    if (w.aligned) {
      *reinterpret_cast<uint4*>(to) = packs.p[i];
      continue;
    }
    const uint32_t words[] = {packs.p[i].x, packs.p[i].y, packs.p[i].z, packs.p[i].w};
#pragma unroll
    for (int j = 0; j < kColumns; ++j)
      if (first + j < w.cols) to[j] = static_cast<uint16_t>(words[j / 2] >> j % 2 * 16);
  }
}
// The rows of a buffer: row number `row` of the tensor or slot that begins at `first`.
__device__ inline uint4* row_in(char* first, const Work& w, int64_t row) {
  return reinterpret_cast<uint4*>(first) + row * w.pitch;
}

// --- The norm ------------------------------------------------------------------------------------------------------
// Every thread gets the block's sum. warp_sums: 32 floats; a second call needs a barrier in between, or 32 others.
__device__ inline float block_sum(float value, float* warp_sums) {
  value = warp_reduce_sum(value);
  if (threadIdx.x % 32 == 0) warp_sums[threadIdx.x / 32] = value;
  __syncthreads();
  return warp_reduce_sum(threadIdx.x % 32 < blockDim.x / 32 ? warp_sums[threadIdx.x % 32] : 0.0f);
}

// Adds the residual, stores the result as row `kept_row` of kept, and returns the row of y. All threads of a block.
template <int kPacks>
__device__ Packs<kPacks> normed_row(const Work& w, int64_t kept_row, const RowSum<kPacks>& sum,
                                    const Packs<kPacks>& residual, const Packs<kPacks>& weight, float* warp_sums) {
  Packs<kPacks> kept, y;
  float squares = 0.0f;
#pragma unroll
  for (int i = 0; i < kPacks; ++i) {
    Eight x = sum.p[i];
    add(x, residual.p[i]);
    kept.p[i] = rounded(x);
    x = widened(kept.p[i]);
#pragma unroll
    for (int j = 0; j < kColumns; ++j) squares += x.v[j] * x.v[j];
  }
  store_row(w, w.t.kept, kept_row, kept);
  const float rstd = rsqrtf(block_sum(squares, warp_sums) / static_cast<float>(w.cols) + w.eps);
#pragma unroll
  for (int i = 0; i < kPacks; ++i) {
    Eight x = widened(kept.p[i]);
    const Eight factor = widened(weight.p[i]);
#pragma unroll
    for (int j = 0; j < kColumns; ++j) x.v[j] = x.v[j] * rstd * factor.v[j];
    y.p[i] = rounded(x);
  }
  return y;
}

// --- Accesses that other GPUs see ----------------------------------------------------------------------------------
// 16 bytes past the caches that other GPUs do not see. Each of the four words arrives whole; the access orders no
// other. C++ has no such access; its words one by one are as good, but slower.
#ifdef __SIMT__
using Word = cuda::atomic_ref<uint32_t, cuda::thread_scope_system>;
__device__ inline void store_to_peer(uint4* to, uint4 pack) {
  const uint32_t words[] = {pack.x, pack.y, pack.z, pack.w};
  for (int i = 0; i < 4; ++i) Word(reinterpret_cast<uint32_t*>(to)[i]).store(words[i], cuda::memory_order_relaxed);
}
__device__ inline uint4 load_from_peer(uint4* from) {
  const auto word = [=](int i) { return Word(reinterpret_cast<uint32_t*>(from)[i]).load(cuda::memory_order_relaxed); };
  return make_uint4(word(0), word(1), word(2), word(3));
}
#else
__device__ inline void store_to_peer(uint4* to, uint4 pack) {
  asm volatile("st.relaxed.sys.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(pack.x), "r"(pack.y), "r"(pack.z),
               "r"(pack.w)
               : "memory");
}
__device__ inline uint4 load_from_peer(uint4* from) {
  uint4 pack;
  asm volatile("ld.relaxed.sys.global.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(pack.x), "=r"(pack.y), "=r"(pack.z), "=r"(pack.w)
               : "l"(from)
               : "memory");
  return pack;
}
#endif

// A wait for another rank that has an end: after some ten seconds the kernel says for whom it waited, and stops.
class Patience {
 public:
  __device__ Patience(int awaited, uint64_t launch) : awaited_(awaited), launch_(launch) {}
  __device__ void spend() {
    if (--left_ > 0) return;
    printf("rank %d did not come to launch %llu\n", awaited_, static_cast<unsigned long long>(launch_));
    __trap();
  }

 private:
  int awaited_;
  uint64_t launch_;
  uint32_t left_ = 1u << 24;
};

// A flag that carries a number, which only grows. A reader of the number also sees what the block that raised it had
// written before its last barrier.
using Flag = cuda::atomic_ref<uint64_t, cuda::thread_scope_system>;
__device__ inline void raise_flag(uint64_t* flag, uint64_t number) {
  Flag(*flag).store(number, cuda::memory_order_release);
}
__device__ inline void wait_for_flag(uint64_t* flag, uint64_t number, int from, uint64_t launch) {
  Patience patience(from, launch);
  while (Flag(*flag).load(cuda::memory_order_acquire) < number) patience.spend();
}

// What the blocks of a launch read before the last of them writes it: accesses that need no order but this.
template <class T>
__device__ cuda::atomic_ref<T, cuda::thread_scope_device> shared_by_blocks(T& word) {
  return cuda::atomic_ref<T, cuda::thread_scope_device>(word);
}
__device__ inline uint64_t number_of_launch(const Work& w) {
  return shared_by_blocks(w.state->number).load(cuda::memory_order_relaxed);
}

// Once all threads of a block have read the state: the last block to come here counts the launch. `packs` is what it
// leaves in its buffer.
__device__ inline void count_launch(State* state, uint64_t number, uint32_t packs) {
  if (threadIdx.x != 0) return;
  if (gridDim.x > 1) {
    if (shared_by_blocks(state->arrived).fetch_add(1, cuda::memory_order_relaxed) != gridDim.x - 1) return;
    shared_by_blocks(state->arrived).store(0, cuda::memory_order_relaxed);
  }
  shared_by_blocks(state->packs[number % 3]).store(packs, cuda::memory_order_relaxed);
  shared_by_blocks(state->number).store(number + 1, cuda::memory_order_relaxed);
}

// --- Launches ------------------------------------------------------------------------------------------------------
inline Work work_of(const AllReduceCall& call, const Symmetric& memory, int rank) {
  Work w = {};
  w.t = call.rank[rank];
  w.rows = call.rows;
  w.cols = call.cols;
  w.shard = shard_rows(call.rows, call.ranks);
  w.rank = rank;
  w.ranks = call.ranks;
  w.pitch = static_cast<int>(blocks_for(call.cols, kColumns));
  w.eps = call.eps;
  w.aligned = call.cols % kColumns == 0 && aligned_for<uint4>(w.t.partial, w.t.residual) &&
              aligned_for<uint4>(w.t.weight, w.t.kept) && aligned_for<uint4>(w.t.y, w.t.y);
  for (int peer = 0; peer < call.ranks; ++peer) w.buffer[peer] = memory.seen[rank][peer];
  w.bytes = memory.bytes;
  w.state = memory.state[rank];
  return w;
}
inline size_t row_bytes(const AllReduceCall& call) { return blocks_for(call.cols, kColumns) * sizeof(uint4); }

inline unsigned threads_for(int64_t cols) {
  return static_cast<unsigned>(std::min<int64_t>(blocks_for(blocks_for(cols, kColumns), 32) * 32, kThreads));
}
// Calls body with the number of packs of a thread as a constant.
template <class Body>
void with_packs(int64_t cols, Body body) {
  if (cols <= kThreads * kColumns) return body(std::integral_constant<int, 1>());
  if (cols <= 2 * kThreads * kColumns) return body(std::integral_constant<int, 2>());
  body(std::integral_constant<int, 4>());
}

// How many blocks, one for each of `parts`, may wait for other ranks: a block that waits keeps its place, so those that
// it waits for must have one, too.
template <class Kernel>
unsigned waiting_blocks(int ranks, Kernel kernel, unsigned threads, int64_t parts) {
  int64_t most = kMostBlocks;
  for (int rank = 0; rank < ranks; ++rank) {  // block b meets block b of the others, so all ranks have as many
    const OnDevice here(rank);
    most = std::min(most, resident_blocks(kernel, static_cast<int>(threads)));
  }
  if (most == 0) throw std::runtime_error("no block of the kernel fits on an SM, so none could wait for another rank");
  return static_cast<unsigned>(std::min(parts, most));
}

// Each rank's kernel, one after the other: launches return at once.
template <class Body>
void launch_on_all(const AllReduceCall& call, const Symmetric& memory, Body body) {
  for (int rank = 0; rank < call.ranks; ++rank) {
    const OnDevice here(rank);
    body(work_of(call, memory, rank));
    CUDA_CHECK(cudaGetLastError());
  }
}

// Whether a block can hold a row.
inline const char* refuses(const Shape& shape) {
  return shape[1] > 4 * kThreads * kColumns
             ? "a block keeps a row, four packs of eight columns in each of 512 threads; give at most 16384 cols"
             : nullptr;
}

}  // namespace ladder::tensor_parallel
