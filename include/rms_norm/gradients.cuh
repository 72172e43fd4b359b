// The kernels behind backward.cuh. A team of threads has a row of x and dy in registers: part of a warp, a block, or a
// cluster of blocks. While it computes, asynchronous copies bring its next rows into shared memory.
#pragma once

#include <cuda_pipeline.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "arguments.cuh"
#include "packs.cuh"
#include "sums.cuh"

namespace rms_norm::detail {

// --- A problem and its rows ------------------------------------------------------------------------------------------

template <class T>
struct Gradient {
  T* data;
  int64_t stride;
};
// The rest of its layout: from a head to the next one; from a row to the next one of its team, and further if the heads
// of a token end there.
struct GradientSteps {
  int64_t head, step = 0, wrap = 0;
};
template <class T>
__device__ T* row_at(RowPlace place, const Gradient<T>& tensor, const GradientSteps& steps) {
  T* row = tensor.data + place.token * tensor.stride;
  if (place.head != 0) {
#ifndef __SIMT__
    asm volatile("");  // or the compiler would read the steps in any case, from another line of the constant cache
#endif
    row += place.head * steps.head;
  }
  return row;
}

// Addresses, in bytes.
struct Span {
  uintptr_t begin, end;
  __device__ bool has(const void* from, int bytes) const {
    return begin <= reinterpret_cast<uintptr_t>(from) && reinterpret_cast<uintptr_t>(from) + bytes <= end;
  }
};

// What the first copies need comes first, for the reason that stands at Problem.
template <class X, class W, class Y>
struct BackwardProblem {
  using Input = X;
  using Weight = W;
  using Output = Y;
  static constexpr bool kHasRstd = false;
  Gradient<const X> x;
  Gradient<const Y> dy;
  int64_t heads;
  int turns = 0, longer = 0;                 // the rows that teams have, of which the first ones have one more
  int packs = 0, part_packs = 0, parts = 1;  // of a row; of a block; blocks of a cluster
  int stages = 0, stage_packs = 0;           // rows of a team that are on their way or in work; what a block has of one
  bool fetches_early = false;                // whether the next one takes a row's place before its sums are there
  bool dependent = false;
  bool reads_again;                               // weight_gradient_of_rows finds dweight
  cuda::access_property reads = {}, writes = {};  // how long L2 keeps what is read, and what is written
  Gradient<const X> dsum;                         // dsum.data may be nullptr
  // Rows of partial sums, one from each block or cluster; or, if reads_again, each row's rstd. nullptr if dweight is
  // not wanted, or if one block or cluster has all rows and writes it.
  float* partial;
  W* dweight;
  const W* weight;  // may be nullptr, and weight_offset is 1 then
  GradientSteps x_steps, dy_steps, dx_steps, dsum_steps;
  Gradient<X> dx;
  float inverse_cols, eps, weight_offset;
  int head_step = 0;  // what a step to a team's next row adds to its head
  int64_t rows, cols;
  int64_t step = 0;                                      // of row_gradients: rows from one of a team to its next one
  int64_t pitch;                                         // from one row of partial to the next, in elements
  Span x_memory = {}, dy_memory = {}, dsum_memory = {};  // of all their rows; nothing where dx takes their place

  __device__ float load_rstd(int64_t) const { return 0.0f; }
  // The next kernel is the call's own, or the one that a dependent launch lets in.
  __device__ void let_next_kernel_start() const {
    if (dependent || partial != nullptr) cuda_bits::let_next_kernel_start();
  }
};

// A problem whose rows' rstd was stored by the forward pass. It is a type of its own, so that kernels that compute it
// stay as they are.
template <class P>
struct ProblemWithRstd : P {
  static constexpr bool kHasRstd = true;
  const float* rstd = nullptr;
  __device__ float load_rstd(int64_t number) const { return number < this->rows ? rstd[number] : 0.0f; }
};

// The rows that a team works through. Addresses go from one to the next by additions alone: the division for the head
// and the products of strides would be a fifth of all instructions.
template <class P>
struct TeamRows {
  const typename P::Input *x, *dsum;
  const typename P::Output* dy;
  typename P::Input* dx;
  int head;
  __device__ TeamRows(const P& p, RowPlace place, int64_t element) {
    x = row_at(place, p.x, p.x_steps) + element, dy = row_at(place, p.dy, p.dy_steps) + element;
    dsum = row_at(place, p.dsum, p.dsum_steps) + element, dx = row_at(place, p.dx, p.dx_steps) + element;
    head = static_cast<int>(place.head);
  }
  __device__ void advance(const P& p) {
    x += p.x_steps.step, dy += p.dy_steps.step, dsum += p.dsum_steps.step, dx += p.dx_steps.step;
    if (p.heads == 1) return;
    head += p.head_step;
    if (head < p.heads) return;
    head -= static_cast<int>(p.heads);
    x += p.x_steps.wrap, dy += p.dy_steps.wrap, dsum += p.dsum_steps.wrap, dx += p.dx_steps.wrap;
  }
};

template <class T>
__device__ float value_of(const T& element) {
  return static_cast<float>(element);
}
template <class T>
__device__ T rounded_to(float value) {
  return static_cast<T>(value);
}

// What all kernels have to round alike, so that a row's dx does not depend on the kernel that computes it.
__device__ inline float rstd_of(float squares, float inverse_cols, float eps) {
  return rsqrtf(add_product(squares, inverse_cols, eps));
}
__device__ inline float gradient_of(float value, float product, float rstd, float slope, float added) {
  return add_product(rstd, add_product(-value, slope, product), added);
}

// --- Copies ----------------------------------------------------------------------------------------------------------

// Starts to copy a pack to shared memory.
template <class T, int N>
__device__ void start_copy_of(Pack<T, N>* to, const T* from, [[maybe_unused]] cuda::access_property cache) {
  static_assert(Pack<T, N>::kBytes == 16);
#if !defined(__SIMT__) && __CUDA_ARCH__ >= 800
  asm volatile("cp.async.cg.shared.global.L2::cache_hint [%0], [%1], 16, %2;" ::"r"(shared_address(to)),
               "l"(__cvta_generic_to_global(from)), "l"(static_cast<uint64_t>(cache))
               : "memory");
#else
  __pipeline_memcpy_async(to, from, 16);
#endif
}

// A pack in shared memory that begins `bytes` past a multiple of 16, out of three times eight bytes. Elements have two
// bytes or four.
template <class T, int N>
__device__ Pack<T, N> load_past(const Pack<T, N>* memory, int bytes) {
  static_assert(Pack<T, N>::kBytes == 16);
  const auto* const eights = reinterpret_cast<const uint2*>(memory) + bytes / 8;
  unsigned word[6];
#pragma unroll
  for (int i = 0; i < 3; ++i) word[2 * i] = eights[i].x, word[2 * i + 1] = eights[i].y;
#pragma unroll
  for (int i = 0; i < 5; ++i) word[i] = bytes & 4 ? word[i + 1] : word[i];
  Pack<T, N> pack;
#pragma unroll
  for (int i = 0; i < 4; ++i)
    pack.word[i] = sizeof(T) == 4 ? word[i] : __funnelshift_r(word[i], word[i + 1], bytes % 4 * 8);
  return pack;
}

// The 16 bytes at a multiple of 16 in which an address in global memory lies.
template <class T>
__device__ T* chunk_at(T* address) {
#ifdef __SIMT__
  return reinterpret_cast<T*>(reinterpret_cast<uintptr_t>(address) / 16 * 16);
#else
  return static_cast<T*>(__cvta_global_to_generic(__cvta_generic_to_global(address) / 16 * 16));
#endif
}

// Rows that begin at any element. The packs of a warp, or of the lanes that share a row, come and go in chunks of 16
// bytes at multiples of 16, of which there may be one more than packs. This is a lane's share of them: chunks lane,
// lane + lanes, and so on, and for lane 0 the one more. No other warp's chunks are needed. Bytes are counted from the
// first chunk on.
template <class T, int kVectors>
struct Chunks {
  static constexpr int kBytes = 16, kElement = sizeof(T), N = kBytes / kElement;
  using Element = std::remove_const_t<T>;
  using Chunk = Pack<Element, N>;
  const int begin, end, lane, lanes;
  T* const own;
  // address: of the lane's first pack; bytes: of all lanes' packs.
  __device__ Chunks(T* address, int bytes, int lane, int lanes)
      : begin(static_cast<int>(reinterpret_cast<uintptr_t>(address) % kBytes)),
        end(begin + bytes),
        lane(lane),
        lanes(lanes),
        own(chunk_at(address)) {}
  __device__ bool is_whole(int chunk) const { return chunk >= (begin + kBytes - 1) / kBytes && chunk < end / kBytes; }
  // The lane's place in shared memory, where the first chunk is in the same half of a sector of 32 bytes, so that each
  // copy is one piece.
  __device__ Chunk* place_in(Chunk* memory) const {
    return memory + ((static_cast<unsigned>(reinterpret_cast<uintptr_t>(own)) / kBytes - lane) & 1);
  }
  // Starts to copy the lane's chunks. What else is in the first and the last one comes too, if it is in the tensor's
  // memory.
  __device__ void start_copy(Chunk* memory, const Span& tensor, cuda::access_property cache) const {
    Chunk* const to = place_in(memory);
    const auto is_mine = [&](int v) { return (lane + v * lanes) * kBytes < end && (v < kVectors || lane == 0); };
    if (tensor.has(own, (kVectors * lanes + 1) * kBytes)) {
#pragma unroll
      for (int v = 0; v <= kVectors; ++v)
        if (is_mine(v)) start_copy_of(to + v * lanes, own + v * lanes * N, cache);
      return;
    }
#pragma unroll 1
    for (int v = 0; v <= kVectors; ++v) {
      if (!is_mine(v)) continue;
      const T* const from = own + v * lanes * N;
      if (is_whole(lane + v * lanes) || tensor.has(from, kBytes)) {
        start_copy_of(to + v * lanes, from, cache);
        continue;
      }
      Element element[N] = {};
#pragma unroll
      for (int i = 0; i < N; ++i)
        if (const int byte = (lane + v * lanes) * kBytes + i * kElement; begin <= byte && byte < end)
          element[i] = from[i];
#pragma unroll
      for (int i = 0; i < N; ++i) reinterpret_cast<Element*>(to + v * lanes)[i] = element[i];
    }
  }
  // The lane's v-th pack, and zeros past the end.
  __device__ Chunk load_pack(Chunk* memory, int v) const {
    Chunk pack = load_past(place_in(memory) + v * lanes, begin);
    const int bytes = end - begin - (lane + v * lanes) * kBytes;
    if (bytes < kBytes)
#pragma unroll
      for (int i = 0; i < 4; ++i)
        if (bytes < 4 * i + 4) pack.word[i] &= bytes > 4 * i ? 0xffffu : 0u;
    return pack;
  }
  // Stores the lane's chunks, out of all lanes' packs, which lie one pack further in shared memory.
  __device__ void store(const Chunk* memory, cuda::access_property cache) const {
#pragma unroll
    for (int v = 0; v < kVectors; ++v)
      if (is_whole(lane + v * lanes))
        detail::store<true>(own + v * lanes * N, load_past(memory + v * lanes, kBytes - begin), cache);
    // The first chunk and the last one may have elements of other rows or warps, so that a lane stores one element.
    const int last = max(end / kBytes, 1);
    for (int i = lane; i < 2 * N; i += lanes) {
      const int chunk = i < N ? 0 : last, byte = chunk * kBytes + i % N * kElement;
      if (byte >= begin && byte < end && !is_whole(chunk))
        own[(byte - lane * kBytes) / kElement] =
            reinterpret_cast<const T*>(memory + 1)[(byte - begin - lane * kBytes) / kElement];
    }
  }
};

// --- Sums of a row ---------------------------------------------------------------------------------------------------

// Two sums of a row: of the squares of x, and of x · dy · weight.
struct RowSums {
  float squares, products;
};

// row_gradients and few_row_gradients add up a row in one order: the packs of a thread; neighbouring lanes, then lanes
// two apart, and so on; neighbouring warps, then warps two apart.
__device__ inline float lane_sum(float value, int lanes) {
#pragma unroll
  for (int mask = 1; mask < 32; mask *= 2)
    if (mask < lanes) value += __shfl_xor_sync(0xffffffffu, value, mask);
  return value;
}

// The v-th pack of a block's thread that has kVectors of them, 32 apart: those of a warp follow each other.
template <int kVectors, class Number>
__device__ Number pack_in_row(Number thread, int v = 0) {
  return thread / 32 * (32 * kVectors) + v * 32 + thread % 32;
}

constexpr int kGradientWarps = 16;  // at most, of a block

// The sums over the warps of a block. Of two copies, each row uses the other one, so that one barrier is enough: a
// warp that writes a copy has passed the barrier behind which the last reader of that copy waited.
struct BlockSums {
  alignas(16) float numbers[2][2][kGradientWarps];

  // Those of warps that there are not, before the first add().
  __device__ void clear() {
    const int number = static_cast<int>(threadIdx.x) / kGradientWarps, warp = threadIdx.x % kGradientWarps;
    if (number < 4 && warp >= static_cast<int>(blockDim.x) / 32) numbers[number / 2][number % 2][warp] = 0.0f;
  }
  // Even lanes add up the squares, and odd lanes the products.
  __device__ RowSums add(RowSums sums, int turn) {
    const int lane = threadIdx.x % 32, odd = lane % 2;
    float mine = odd ? sums.products : sums.squares;
    mine += __shfl_xor_sync(0xffffffffu, odd ? sums.squares : sums.products, 1);
#pragma unroll
    for (int mask = 2; mask < 32; mask *= 2) mine += __shfl_xor_sync(0xffffffffu, mine, mask);
    auto& copy = numbers[turn % 2];
    if (lane < 2) copy[odd][threadIdx.x / 32] = mine;
    __syncthreads();
    if (blockDim.x <= 128) return {sum_of_shared<4>(copy[0]), sum_of_shared<4>(copy[1])};
    if (blockDim.x <= 256) return {sum_of_shared<8>(copy[0]), sum_of_shared<8>(copy[1])};
    return {sum_of_shared<16>(copy[0]), sum_of_shared<16>(copy[1])};
  }
};

// The sums over the blocks of a cluster. Two mailboxes take turns: a block sends the sums of a row when it has all
// those of the row before, and so every block has read those of the row before that.
struct ClusterSums {
  uint64_t arrived[2];
  RowSums numbers[2][kMostParts];

  __device__ RowSums add(RowSums sums, int turn, int parts, int part) {
    const Mailboxes<2> boxes{arrived};
    const int box = turn % 2, to = static_cast<int>(threadIdx.x);
    if (threadIdx.x == 0) boxes.expect(box, static_cast<int>(parts * sizeof(RowSums)));
    if (to < parts) {
      boxes.send(&numbers[box][part].squares, to, box, sums.squares);
      boxes.send(&numbers[box][part].products, to, box, sums.products);
    }
    boxes.wait(box, turn / 2 % 2);
    RowSums result = {};
#pragma unroll
    for (int i = 0; i < kMostParts; ++i) {
      if (i >= parts) continue;
      result.squares += numbers[box][i].squares;
      result.products += numbers[box][i].products;
    }
    return result;
  }
};

// --- Rows in registers -----------------------------------------------------------------------------------------------

// A kernel for rows of up to kTeam · kVectors packs of N elements, or as many in each block of a cluster. kTeam is 32,
// and a power of two of threads share a row; or a row is shared by all threads of a block, at most kTeam. Of tensors
// that are not aligned, a thread's packs come from chunks that other threads have copied, and are added up in the same
// order.
template <int kPackElements, int kPacksOfThread, int kTeamThreads, bool kIsAligned>
struct GradientShape {
  static constexpr int N = kPackElements, kVectors = kPacksOfThread, kTeam = kTeamThreads;
  static constexpr bool kAligned = kIsAligned, kWarps = kTeam == 32;
  // On a multiprocessor there are kBlocks blocks. A thread with 32 elements of each row needs 200 registers.
  static constexpr int kThreads = kWarps ? 256 : kTeam, kBlocks = kVectors * N == 32 ? 1 : 512 / kThreads;
};
constexpr int kMostStages = 3;
// One more than stages for the row in work, and one for the row before, which other threads may still read.
constexpr int kRstdPlaces = 8;
static_assert(kRstdPlaces >= kMostStages + 2);

// What a block has in shared memory of a tensor's row of each team: the packs of a warp, or of the lanes that share a
// row, follow each other. If they are not aligned, they take a chunk more, and begin in either half of a sector.
template <class Shape>
struct RowMemory {
  __host__ __device__ static constexpr int width(int lanes) { return lanes < 32 ? lanes : 32; }
  __host__ __device__ static constexpr int packs(int lanes) {
    return Shape::kVectors * width(lanes) + (Shape::kAligned ? 0 : 2);
  }
  __host__ __device__ static constexpr int of_tensor(int lanes, int teams) {
    return lanes * teams / width(lanes) * packs(lanes);
  }
};

// Numbers that stay in a register. Otherwise the compiler computes them again at each use.
__device__ inline void keep([[maybe_unused]] float& number) {
#ifndef __SIMT__
  asm("" : "+f"(number));
#endif
}
__device__ inline void keep([[maybe_unused]] int& number) {
#ifndef __SIMT__
  asm("" : "+r"(number));
#endif
}
// An address in shared memory. To compute it, the compiler asks the GPU for the block's place in its cluster, which
// takes as long as a load from shared memory.
template <class T>
__device__ T* kept_address(T* shared) {
#ifndef __SIMT__
  asm("" : "+l"(shared));
  __builtin_assume(__isShared(shared));
#endif
  return shared;
}

// gridDim = (blocks of a cluster, clusters), blockDim = (threads of a team, teams). Block number b, or cluster number
// b, has the rows b · teams to (b + 1) · teams - 1, and so on in steps of all blocks.
template <class Shape, class P>
__global__ void __launch_bounds__(Shape::kThreads, Shape::kBlocks) row_gradients(const P p) {
  using X = typename P::Input;
  using W = typename P::Weight;
  using Y = typename P::Output;
  constexpr int N = Shape::N, kVectors = Shape::kVectors;
  constexpr bool kAligned = Shape::kAligned, kWarps = Shape::kWarps;
  constexpr bool kFetchesRstd = P::kHasRstd && !kWarps;
  // A copy whose target lies otherwise in its sectors of 32 bytes than its source is written in more pieces.
  extern __shared__ __align__(128) uint4 dynamic_memory[];
  __shared__ alignas(16) BlockSums block_sums_memory;
  __shared__ float fetched_rstd[kRstdPlaces];
  __shared__ alignas(16) ClusterSums cluster_sums;
  uint4* const shared_memory = kept_address(dynamic_memory);
  BlockSums& block_sums = *kept_address(&block_sums_memory);

  const int lanes = blockDim.x, teams = kWarps ? blockDim.y : 1, threads = lanes * teams;
  const int team = kWarps ? threadIdx.y : 0, tid = team * lanes + threadIdx.x;
  const int parts = kWarps ? 1 : p.parts;
  const unsigned group = blockIdx.y;
  const int part = static_cast<int>(blockIdx.x);
  const int first = part * p.part_packs, packs = min(p.part_packs, p.packs - first);
  // Packs of a warp follow each other, and in a block those of a thread have distances that the compiler knows.
  const int between = kWarps ? lanes : 32, lane = kWarps ? threadIdx.x : threadIdx.x % 32;
  const int pack = kWarps ? lane : pack_in_row<kVectors>(threadIdx.x);
  const auto pack_of = [&](int v) { return pack + v * between; };
  const auto element_of = [&](int v) { return static_cast<int64_t>(first + pack_of(v)) * N; };
  const auto count_of = [&](int v) { return static_cast<int>(min(int64_t{N}, p.cols - element_of(v))); };

  Pack<W, N> weight[kVectors] = {};
#pragma unroll
  for (int v = 0; v < kVectors; ++v) {
    if (p.weight == nullptr || pack_of(v) >= packs) continue;
    if constexpr (kAligned)
      weight[v] = load_constant<N>(p.weight + element_of(v));
    else
      weight[v] = load_some<N>(p.weight + element_of(v), count_of(v));
  }
  const auto prepare = [&] {
    if (!kWarps && parts > 1) Mailboxes<2>{cluster_sums.arrived}.open();
    if constexpr (!kWarps) block_sums.clear();
  };
  // The first rows take longest to come. Only what need not wait for the kernel before comes ahead of them.
  if (p.dependent) prepare();
  if (p.dependent) wait_for_previous_kernel();
  p.let_next_kernel_start();

  // A stage is what the block has of one row of each team, and all stages follow each other. Of aligned tensors, a
  // thread reads what it has copied itself, so that the order is that of copies; else packs are as in global memory.
  const bool has_sum = p.dsum.data != nullptr;
  using Memory = RowMemory<Shape>;
  const int tensors = has_sum ? 3 : 2, stage_packs = p.stage_packs;
  const int to_next_tensor = kAligned ? 32 * kVectors : Memory::packs(lanes);
  const bool by_team = kWarps && !kAligned;  // whose packs lie together; else those of a warp
  uint4* const stages =
      shared_memory + (by_team ? team : tid / 32) * tensors * to_next_tensor + (by_team ? lane : tid % 32);
  const int first_pack = pack - lane, own_packs = max(min(packs - first_pack, kVectors * between), 0);
  int own_bytes = static_cast<int>(sizeof(X)) *
                  static_cast<int>(min(int64_t{own_packs} * N, p.cols - int64_t{first + first_pack} * N));
  if constexpr (!kAligned) keep(own_bytes);
  const auto chunks_of = [&](auto* row) {
    return Chunks<std::remove_pointer_t<decltype(row)>, kVectors>(row, own_bytes, lane, between);
  };
  const int first_row = static_cast<int>(group) * teams + team;
  const int own_turns = p.turns + (first_row < p.longer), block_turns = p.turns + (first_row - team < p.longer);
  const auto number_of = [&](int turn) { return first_row + turn * p.step; };
  const RowPlace place = place_of(first_row, p.heads);
  TeamRows<P> ahead(p, place, element_of(0));
  // Starts to copy the thread's packs or chunks of the row of that turn, if there is one.
  const auto fetch = [&](int at, int turn) {
    if (turn < own_turns) {
      const auto start = [&](const auto* row, uint4* memory, const Span& tensor) {
        using Element = std::remove_const_t<std::remove_pointer_t<decltype(row)>>;
        if constexpr (kAligned) {
#pragma unroll
          for (int v = 0; v < kVectors; ++v)
            if (pack_of(v) < packs)
              start_copy_of(reinterpret_cast<Pack<Element, N>*>(memory + 32 * v), row + v * between * N, p.reads);
        } else {
          chunks_of(row).start_copy(reinterpret_cast<Pack<Element, N>*>(memory), tensor, p.reads);
        }
      };
      start(ahead.x, stages + at, p.x_memory);
      start(ahead.dy, stages + at + to_next_tensor, p.dy_memory);
      if (has_sum) start(ahead.dsum, stages + at + 2 * to_next_tensor, p.dsum_memory);
      // A load would keep all warps of the block waiting.
      if constexpr (kFetchesRstd)
        if (tid == 0)
          __pipeline_memcpy_async(fetched_rstd + turn % kRstdPlaces, p.rstd + number_of(turn), sizeof(float));
      ahead.advance(p);
    }
    __pipeline_commit();
  };
  // The thread's packs of what was fetched.
  const auto fetched = [&](const auto* row, uint4* memory, int v) {
    using Element = std::remove_const_t<std::remove_pointer_t<decltype(row)>>;
    if constexpr (kAligned)
      return reinterpret_cast<const Pack<Element, N>&>(memory[32 * v]);
    else
      return chunks_of(row).load_pack(reinterpret_cast<Pack<Element, N>*>(memory), v);
  };

  float dweight[kVectors][N] = {};
  // A thread that has fewer packs reads zeros.
  const auto fill_up = [&](uint4* memory) {
    memory[0] = memory[to_next_tensor] = {};
    if (has_sum) memory[2 * to_next_tensor] = {};
  };
  if constexpr (!kAligned) {  // what lies past the packs is read, too, and dropped
    for (int s = 0; s < p.stages; ++s)
      for (int slot = lane; slot < to_next_tensor; slot += between)
        if (slot * static_cast<int>(sizeof(uint4)) >= own_bytes) fill_up(stages + s * stage_packs + slot - lane);
    __syncwarp();
  }
  // The loop would begin with what it needs to go on to the next rows.
  int at = 0;
  fetch(at, 0);
  for (int s = 1; s < p.stages; ++s) {
    at += stage_packs;
    keep(at);  // as a number that all threads share, it made ptxas 13.0 write copies with wrong registers
    fetch(at, s);
  }
  if (!p.dependent) prepare();
  TeamRows<P> rows(p, place, element_of(0));
  if constexpr (kAligned)
    for (int s = 0; s < p.stages; ++s)
#pragma unroll
      for (int v = 0; v < kVectors; ++v)
        if (pack_of(v) >= packs) fill_up(stages + s * stage_packs + 32 * v);
  float factor[kVectors][N];
#pragma unroll
  for (int v = 0; v < kVectors; ++v) {
    unpack(weight[v], factor[v]);
#pragma unroll
    for (int k = 0; k < N; ++k) keep(factor[v][k] += p.weight_offset);
  }
  if (!kWarps && parts > 1) Mailboxes<2>::wait_until_open();

  at = 0;
  int stores_rstd = p.reads_again && part == 0 && tid == 0;
  keep(stores_rstd);
  const bool fetches_early = kAligned && !kWarps && p.fetches_early;
  // Each lane of a team in a warp loads the rstd of another turn, long before that.
  const auto rstd_of_turn = [&](int turn) { return p.load_rstd(number_of(turn + static_cast<int>(threadIdx.x))); };
  [[maybe_unused]] float stored_rstd = 0.0f, later_rstd = 0.0f;
  if constexpr (P::kHasRstd && kWarps) stored_rstd = rstd_of_turn(0), later_rstd = rstd_of_turn(lanes);
  // All teams of a block take part in each turn, also those that have no row left, since a warp has several.
  for (int turn = 0; turn < block_turns; ++turn, rows.advance(p)) {
    const bool has_row = !kWarps || turn < own_turns;
    uint4* const stage = stages + at;
    if constexpr (P::kHasRstd && kWarps)
      if (turn > 0 && (turn & (lanes - 1)) == 0) stored_rstd = later_rstd, later_rstd = rstd_of_turn(turn + lanes);
    if (p.stages == kMostStages)
      __pipeline_wait_prior(kMostStages - 1);
    else if (p.stages == 2)
      __pipeline_wait_prior(1);
    else
      __pipeline_wait_prior(0);
    if constexpr (!kAligned) __syncwarp();
    float value[kVectors][N], from_y[kVectors][N], product[kVectors][N], squares[kVectors] = {},
                                                                         products[kVectors] = {};
#pragma unroll
    for (int v = 0; v < kVectors; ++v) {
      Pack<X, N> x = {};
      Pack<Y, N> dy = {};
      if (has_row) x = fetched(rows.x, stage, v), dy = fetched(rows.dy, stage + to_next_tensor, v);
      unpack(x, value[v]);
      unpack(dy, from_y[v]);
#pragma unroll
      for (int k = 0; k < N; ++k) {
        product[v][k] = from_y[v][k] * factor[v][k];
        if constexpr (!P::kHasRstd) squares[v] = add_square(value[v][k], squares[v]);
        products[v] = add_product(value[v][k], product[v][k], products[v]);
      }
    }
    if (fetches_early) fetch(at, turn + p.stages);
    // Of a block, one reduction has room for both sums. In a warp each takes its own, and a stored rstd saves one.
    RowSums sums = {sum_in_pairs(squares), sum_in_pairs(products)};
    if constexpr (!kWarps)
      sums = block_sums.add(sums, turn);
    else
      sums = {P::kHasRstd ? 0.0f : lane_sum(sums.squares, lanes), lane_sum(sums.products, lanes)};
    if (!kWarps && parts > 1) sums = cluster_sums.add(sums, turn, parts, part);
    float rstd;
    if constexpr (kFetchesRstd)
      rstd = fetched_rstd[turn % kRstdPlaces];
    else if constexpr (P::kHasRstd)
      rstd = __shfl_sync(0xffffffffu, stored_rstd, turn & (lanes - 1), lanes);
    else
      rstd = rstd_of(sums.squares, p.inverse_cols, p.eps);
    const float slope = sums.products * p.inverse_cols * rstd * rstd;
    if constexpr (!P::kHasRstd && !kWarps && kAligned)
      if (stores_rstd) p.partial[number_of(turn)] = rstd;

    if constexpr (!kAligned) __syncwarp();  // all lanes have read x, whose place dx takes
#pragma unroll
    for (int v = 0; v < kVectors; ++v) {
      if (!has_row || (!kAligned && pack_of(v) >= packs)) continue;
      float gradient[N];
      const auto add = [&](const auto& added) {
#pragma unroll
        for (int k = 0; k < N; ++k) gradient[k] = gradient_of(value[v][k], product[v][k], rstd, slope, added(k));
      };
      if (has_sum) {
        float added[N];
        unpack(fetched(rows.dsum, stage + 2 * to_next_tensor, v), added);
        add([&](int k) { return added[k]; });
      } else {
        add([](int) { return 0.0f; });
      }
#pragma unroll
      for (int k = 0; k < N; ++k) dweight[v][k] += from_y[v][k] * (value[v][k] * rstd);
      const Pack<X, N> rounded = round_to<X>(gradient);
      if (pack_of(v) >= packs) continue;
      if constexpr (kAligned)
        store<true>(rows.dx + v * between * N, rounded, p.writes);
      else
        reinterpret_cast<Pack<X, N>*>(stage)[1 + v * between] = rounded;
    }
    if constexpr (!kAligned) {
      __syncwarp();
      if (has_row) chunks_of(rows.dx).store(reinterpret_cast<const Pack<X, N>*>(stage), p.writes);
      __syncwarp();
    }
    if (!fetches_early) fetch(at, turn + p.stages);
    at = at + stage_packs == p.stages * stage_packs ? 0 : at + stage_packs;
  }

  // The partial sums of the block's rows.
  if (p.dweight == nullptr || p.reads_again) return;
  float* const partial = p.partial ? p.partial + group * p.pitch : nullptr;
  if (kWarps && teams > 1) {
    auto* const of_teams = reinterpret_cast<float*>(shared_memory);
    __syncthreads();
    const int width = packs * N;
#pragma unroll
    for (int v = 0; v < kVectors; ++v)
      if (pack_of(v) < packs) {
        auto* const to = reinterpret_cast<float4*>(of_teams + team * width + pack_of(v) * N);
#pragma unroll
        for (int k = 0; k < N; k += 4)
          to[k / 4] = {dweight[v][k], dweight[v][k + 1], dweight[v][k + 2], dweight[v][k + 3]};
      }
    __syncthreads();
    for (int i = tid; i < width; i += threads) {
      float sum = 0.0f;
#pragma unroll 8
      for (int k = 0; k < teams; ++k) sum += of_teams[k * width + i];
      if (partial)  // rows of it have room for whole packs
        partial[i] = sum;
      else if (i < p.cols)
        p.dweight[i] = rounded_to<W>(sum);
    }
    return;
  }
#pragma unroll
  for (int v = 0; v < kVectors; ++v) {
    if (pack_of(v) >= packs) continue;
    if (partial)
      store<false>(partial + element_of(v), round_to<float>(dweight[v]));
    else if constexpr (kAligned)
      store<false>(p.dweight + element_of(v), round_to<W>(dweight[v]));
    else
      store_some(p.dweight + element_of(v), round_to<W>(dweight[v]), count_of(v));
  }
}

// --- Rows of any length ----------------------------------------------------------------------------------------------

constexpr int kGradientThreads = 256;

// A block works through the rows number blockIdx.x, blockIdx.x + gridDim.x, … and reads each twice, one element at a
// time. A thread has the same columns in each, so that no other thread adds to its partial sums.
template <class P>
__global__ void __launch_bounds__(kGradientThreads) long_row_gradients(const P p) {
  using X = typename P::Input;
  using Y = typename P::Output;
  if (p.dependent) wait_for_previous_kernel();
  p.let_next_kernel_start();
  float* const partial = p.partial ? p.partial + blockIdx.x * p.pitch : nullptr;
  // weight_gradient() reads four columns at a time.
  if (partial && threadIdx.x < (-p.cols & 3)) partial[p.cols + threadIdx.x] = 0.0f;
  const auto factor = [&](int64_t i) { return p.weight ? p.weight_offset + value_of(p.weight[i]) : 1.0f; };
  for (int64_t number = blockIdx.x; number < p.rows; number += gridDim.x) {
    const RowPlace place = place_of(number, p.heads);
    const X* const x = row_at(place, p.x, p.x_steps);
    const Y* const dy = row_at(place, p.dy, p.dy_steps);
    [[maybe_unused]] const float stored_rstd = p.load_rstd(number);
    [[maybe_unused]] float squares = 0.0f;
    float products = 0.0f;
    for (int64_t i = threadIdx.x; i < p.cols; i += kGradientThreads) {
      const float value = value_of(x[i]);
      if constexpr (!P::kHasRstd) squares += value * value;
      products += value * (value_of(dy[i]) * factor(i));
    }
    if constexpr (!P::kHasRstd) squares = row_sum<kGradientThreads, 1, 0>(squares);
    products = row_sum<kGradientThreads, 1, 1>(products);
    const float rstd = P::kHasRstd ? stored_rstd : rstd_of(squares, p.inverse_cols, p.eps);
    const float slope = products * p.inverse_cols * rstd * rstd;

    const X* const dsum = p.dsum.data ? row_at(place, p.dsum, p.dsum_steps) : nullptr;
    X* const dx = row_at(place, p.dx, p.dx_steps);
    for (int64_t i = threadIdx.x; i < p.cols; i += kGradientThreads) {
      const float value = value_of(x[i]), from_y = value_of(dy[i]);
      if (partial) {
        const float before = number == blockIdx.x ? 0.0f : partial[i];
        partial[i] = before + from_y * (value * rstd);
      }
      const float added = dsum ? value_of(dsum[i]) : 0.0f;
      dx[i] = rounded_to<X>(gradient_of(value, from_y * factor(i), rstd, slope, added));
    }
    __syncthreads();  // the next row's sums go where this one's are read
  }
}

// --- The sum over rows -----------------------------------------------------------------------------------------------

// In one structure, as for every kernel here: on the CPU device, a kernel may have host memory there, as NumPy's.
template <class W>
struct WeightProblem {
  const float* partial;
  int64_t count, pitch;  // rows of partial, and from one to the next
  W* dweight;
  int64_t cols;
  bool dependent;
};

constexpr int kWeightLanes = 8, kWeightRows = 64, kWeightColumns = 4 * kWeightLanes;  // a line of 128 bytes

// Each block has a line of columns. Threads add up every blockDim.y-th row, and then each other's sums.
template <class W>
__global__ void __launch_bounds__(kWeightLanes* kWeightRows) weight_gradient(const WeightProblem<W> p) {
  constexpr int kWarps = kWeightLanes * kWeightRows / 32;
  __shared__ alignas(16) float sums[kWarps][kWeightColumns];
  wait_for_previous_kernel();
  if (p.dependent) let_next_kernel_start();
  const int64_t begin = static_cast<int64_t>(blockIdx.x) * kWeightColumns;
  const float* const from = p.partial + begin + 4 * threadIdx.x;
  float4 sum = {};
  if (begin + 4 * threadIdx.x < p.cols)
#pragma unroll 4
    for (int64_t k = threadIdx.y; k < p.count; k += blockDim.y) {
      const float4 four = *reinterpret_cast<const float4*>(from + k * p.pitch);
      sum.x += four.x, sum.y += four.y, sum.z += four.z, sum.w += four.w;
    }
  const int tid = threadIdx.y * kWeightLanes + threadIdx.x;
#pragma unroll
  for (int mask = kWeightLanes; mask < 32; mask *= 2) {
    sum.x += __shfl_xor_sync(0xffffffffu, sum.x, mask);
    sum.y += __shfl_xor_sync(0xffffffffu, sum.y, mask);
    sum.z += __shfl_xor_sync(0xffffffffu, sum.z, mask);
    sum.w += __shfl_xor_sync(0xffffffffu, sum.w, mask);
  }
  if (tid % 32 < kWeightLanes) *reinterpret_cast<float4*>(sums[tid / 32] + 4 * threadIdx.x) = sum;
  __syncthreads();
  if (tid >= kWeightColumns || begin + tid >= p.cols) return;
  float total = 0.0f;
#pragma unroll 4
  for (int k = 0; k < static_cast<int>(blockDim.y) / 4; ++k) total += sums[k][tid];
  p.dweight[begin + tid] = rounded_to<W>(total);
}

// For few rows, partial sums would be more bytes than x and dy, which are there before the rows' rstd is.
template <class X, class W, class Y>
struct WeightOfRowsProblem {
  const X* x;
  int64_t x_stride;
  const Y* dy;
  int64_t dy_stride;
  const float* rstd;
  int rows, packs;
  cuda::access_property cache;
  W* dweight;
  bool is_new, dependent;  // is_new: the kernel before stores rstd
};

constexpr int kPackLanes = 32, kColumnThreads = 256;  // at most: packs of a block; its threads
constexpr int kRowsOfThread = 4;                      // on their way at one time

// blockDim = (packs of a block, rows at a time), with a power of two of packs. Threads add up every blockDim.y-th row,
// and then each other's sums.
template <int N, class X, class W, class Y>
__global__ void __launch_bounds__(kColumnThreads) weight_gradient_of_rows(const WeightOfRowsProblem<X, W, Y> p) {
  __shared__ float sums[kColumnThreads / 32][kPackLanes * N];
  const int lanes = static_cast<int>(blockDim.x), step = static_cast<int>(blockDim.y);
  const int tid = threadIdx.y * lanes + threadIdx.x, pack = static_cast<int>(blockIdx.x) * lanes + threadIdx.x;
  const int rows = pack < p.packs ? p.rows : 0;
  const int64_t element = int64_t{pack} * N;
  float sum[N] = {};
  for (int first = threadIdx.y; first < p.rows; first += kRowsOfThread * step) {
    Pack<X, N> x[kRowsOfThread] = {};
    Pack<Y, N> dy[kRowsOfThread] = {};
#pragma unroll
    for (int i = 0; i < kRowsOfThread; ++i)
      if (const int64_t row = first + i * step; row < rows) {
        x[i] = load<N, true>(p.x + row * p.x_stride + element, p.cache);
        dy[i] = load<N, true>(p.dy + row * p.dy_stride + element, p.cache);
      }
    if (p.is_new) wait_for_previous_kernel();
#pragma unroll
    for (int i = 0; i < kRowsOfThread; ++i) {
      const float rstd = first + i * step < rows ? p.rstd[first + i * step] : 0.0f;
      float value[N], from_y[N];
      unpack(x[i], value);
      unpack(dy[i], from_y);
#pragma unroll
      for (int k = 0; k < N; ++k) sum[k] += from_y[k] * (value[k] * rstd);
    }
  }
  // The next kernel counts on the one before this one, too.
  wait_for_previous_kernel();
  if (p.dependent) let_next_kernel_start();
  for (int mask = 16; mask >= lanes; mask /= 2)
#pragma unroll
    for (int k = 0; k < N; ++k) sum[k] += __shfl_xor_sync(0xffffffffu, sum[k], mask);
  if (tid % 32 < lanes)
#pragma unroll
    for (int k = 0; k < N; ++k) sums[tid / 32][threadIdx.x * N + k] = sum[k];
  __syncthreads();
  const int64_t begin = int64_t{blockIdx.x} * lanes * N, end = int64_t{p.packs} * N;
  for (int i = tid; i < lanes * N && begin + i < end; i += lanes * step) {
    float total = 0.0f;
    for (int warp = 0; warp < lanes * step / 32; ++warp) total += sums[warp][i];
    p.dweight[begin + i] = rounded_to<W>(total);
  }
}

}  // namespace rms_norm::detail
