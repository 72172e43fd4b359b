// How the threads and blocks that share a row add up its sum.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <cuda/atomic>

#include "../cuda_bits.cuh"

namespace rms_norm::detail {

using namespace cuda_bits;

constexpr int kMostThreads = 1024;  // in a block
constexpr int kMostParts = 8;       // blocks in a cluster
constexpr int kSplitBlocks = 160;   // at most, that share long rows, given a workspace

// --- Threads of a block ----------------------------------------------------------------------------------------------

__device__ inline float warp_sum(float value, int lanes = 32) {
#pragma unroll
  for (int mask = 16; mask > 0; mask /= 2)
    if (mask < lanes) value += __shfl_xor_sync(0xffffffffu, value, mask);
  return value;
}

// The sum of some values, in pairs, so that few additions wait for each other.
template <int count>
__device__ float sum_in_pairs(float (&value)[count]) {
#pragma unroll
  for (int step = 1; step < count; step *= 2)
#pragma unroll
    for (int i = 0; i + step < count; i += 2 * step) value[i] += value[i + step];
  return value[0];
}
// The same of numbers in shared memory, on a 16-byte boundary, that each thread reads four at a time. That takes less
// time than shuffles.
template <int count>
__device__ float sum_of_shared(const float* numbers) {
  float value[count];
#pragma unroll
  for (int i = 0; i < count; ++i) value[i] = numbers[i];
  return sum_in_pairs(value);
}

// Every thread of a block gets the sum over all kThreads of them, and calls meanwhile() once, which has no barrier.
template <int kThreads, class Meanwhile>
__device__ float block_sum(float value, Meanwhile meanwhile) {
  constexpr int kWarps = kThreads / 32;
  __shared__ alignas(16) float warp_sums[kWarps];
  const unsigned lane = threadIdx.x % 32;
  value = warp_sum(value);
  if (lane == 0) warp_sums[threadIdx.x / 32] = value;
  meanwhile();
  __syncthreads();
  if constexpr (kWarps <= 16) return sum_of_shared<kWarps>(warp_sums);  // more would take too many registers
  return warp_sum(lane < kWarps ? warp_sums[lane] : 0.0f);
}

// Every thread gets the sum over the `threads` of its row, which is the block's row_in_block-th. There are a power of
// two of them up to 32, or a multiple of 32 from 64 to kRowThreads. Each use in a kernel has a number of its own.
template <int kRowThreads, int kRows = kRowThreads / 64, int kUse = 0>
__device__ float row_sum(float value, int threads = kRowThreads, int row_in_block = 0) {
  if constexpr (kRowThreads == 32) {
    return warp_sum(value, threads);
  } else {
    constexpr int kWarps = kRowThreads / 32;
    __shared__ alignas(16) float warp_sums[kRows][kWarps];
    const unsigned tid = threadIdx.x, lane = tid % 32, warps = threads / 32;
    float* sums = warp_sums[row_in_block];
    value = warp_sum(value);
    if (lane == 0) sums[tid / 32] = value;
    if (kWarps <= 8 && warps < kWarps && tid >= warps && tid < kWarps) sums[tid] = 0.0f;
    __syncthreads();
    if constexpr (kWarps <= 8) return sum_of_shared<kWarps>(sums);
    return warp_sum(lane < warps ? sums[lane] : 0.0f);
  }
}

// --- Blocks ----------------------------------------------------------------------------------------------------------

// An Exchange is made when the kernel begins. begin() is called once the kernel may read what other kernels wrote.
// sum() gives every thread the sum of the numbers that the row's blocks hand in.

// The mailbox of a block in a cluster, used once per kernel: each block sends it one number.
class Mailbox {
 public:
  // Called by all threads. The other blocks may send once they have waited for it.
  __device__ static void open() { boxes().open(); }
  // Called by all threads of the part-th block: the sum of what the blocks send to each other.
  __device__ static float sum(int parts, int part, float value) {
    boxes().wait_until_open();
    if (threadIdx.x == 0) boxes().expect(0, static_cast<int>(parts * sizeof(float)));
    const int to = static_cast<int>(threadIdx.x);
    if (to < parts) boxes().send(memory().numbers + part, to, 0, value);
    boxes().wait(0, 0);
    float result = 0.0f;
    for (int i = 0; i < parts; ++i) result += memory().numbers[i];
    return result;
  }

 private:
  struct Memory {
    uint64_t arrived;
    float numbers[kMostParts];
  };
  __device__ static Memory& memory() {
    __shared__ Memory memory;
    return memory;
  }
  __device__ static Mailboxes<1> boxes() { return {&memory().arrived}; }
};

// Between the blocks of a cluster. With one block, there is nothing to exchange.
struct ClusterExchange {
  const int parts, part;
  __device__ ClusterExchange(int blocks, int rank, uint64_t*) : parts(blocks), part(rank) {
    if (parts > 1) Mailbox::open();
  }
  __device__ void begin() {}
  template <int kThreads>
  __device__ float sum(float value) {
    return parts > 1 ? Mailbox::sum(parts, part, value) : value;
  }
};

// Between blocks that all run at once, through memory. A block sends its sum as one 64-bit word that holds the sum and
// the number of the launch: a block that reads the right number also has the sum. Each pair of blocks has a copy of the
// words, since many readers of one address take turns. The host cannot count launches, since all replays of a graph
// have the same arguments. So a block finds the number of the launch before in its own word of the first copy, which no
// other block reads at that moment; and block 0 writes the words of blocks that this launch does not have, so that the
// first copy always holds one number.
//
// Two launches on one workspace may overlap, if the second one is a dependent launch. Why one set of words is enough:
// all accesses to the workspace come after wait_for_previous_kernel(), which returns when all blocks of the launch
// before have ended. So no block writes a word that a block of the launch before still waits for, and begin() finds
// what that launch left. Within a launch, a block writes its words once, and after a barrier behind begin().
//
// A workspace that was not prepared, or that two kernels use at once, may make a block wait without end. A program
// compiled with RMS_NORM_CHECKED defined stops waiting after a few seconds instead: the launch fails with
// cudaErrorLaunchFailure.
struct MemoryExchange {
  using Atomic = cuda::atomic_ref<uint64_t, cuda::thread_scope_device>;
  static constexpr auto relaxed = cuda::memory_order_relaxed;
  const int parts, part;
  uint64_t* const workspace;  // copies of kSplitBlocks words
  unsigned number = 0;        // in the threads that have to do with a word
  __device__ MemoryExchange(int blocks, int rank, uint64_t* words) : parts(blocks), part(rank), workspace(words) {}
  __device__ void begin() {
    if (threadIdx.x < kSplitBlocks) number = next_number(workspace);
  }
  template <int kThreads>
  __device__ float sum(float value) {
    static_assert(kThreads >= kSplitBlocks, "a thread for each word");
    const int tid = threadIdx.x, copies = (parts + 1) / 2;
    uint64_t* const words = workspace + (blockIdx.x - part);  // of the row
    const uint64_t word = uint64_t{number} << 32 | __float_as_uint(value);
    if (tid < copies) Atomic(words[tid * kSplitBlocks + part]).store(word, relaxed);
    write_for_absent_blocks(workspace, word, tid);
    return row_sum<kThreads, 1, 1>(tid < parts ? receive(words[part / 2 * kSplitBlocks + tid], number) : 0.0f);
  }
  __device__ static unsigned next_number(uint64_t* words) {
    return static_cast<unsigned>(Atomic(words[blockIdx.x]).load(relaxed) >> 32) + 1;
  }
  __device__ static void write_for_absent_blocks(uint64_t* words, uint64_t word, unsigned tid) {
    if (blockIdx.x == 0 && tid >= gridDim.x && tid < kSplitBlocks) Atomic(words[tid]).store(word, relaxed);
  }
  // The sum in a word that has this number, as soon as it has; `word` is what it had before.
  __device__ static float receive(uint64_t& from, unsigned number, uint64_t word) {
    [[maybe_unused]] int64_t left = int64_t{1} << kMostPolls;
    while (word >> 32 != number) {
#ifdef RMS_NORM_CHECKED
      if (--left == 0) __trap();
#endif
      word = Atomic(from).load(relaxed);
    }
    return __uint_as_float(static_cast<unsigned>(word));
  }
  __device__ static float receive(uint64_t& from, unsigned number) {
    return receive(from, number, Atomic(from).load(relaxed));
  }

 private:
#ifdef __SIMT__
  static constexpr int kMostPolls = 16;  // the CPU device runs other blocks between two of them
#else
  static constexpr int kMostPolls = 22;  // each takes half a microsecond or more
#endif
};

// The rows of a team whose sums are on their way. More of them hide how long a sum takes, and leave fewer rows to be
// copied ahead.
constexpr int kRowsWaiting = 4;

// The same for blocks in teams, of which each takes one row after the other: see teams.cuh. The number in a word is
// that of the launch's first row and the row's place among those of the team, so a launch counts as many numbers as a
// team has rows. The words of a row lie in one of kRows copies behind the first one. A block sends the sum of a row
// after it has received that of the row kRowsWaiting before; so all have sent that one, and may still want rows up to
// kRowsWaiting before it.
struct TeamExchange {
  static constexpr int kRows = 2 * kRowsWaiting + 1, kWordsOfLane = kSplitBlocks / 32;
  using Atomic = MemoryExchange::Atomic;
  static constexpr auto relaxed = MemoryExchange::relaxed;
  struct Words {  // of one row, which the lanes of a warp have read
    uint64_t word[kWordsOfLane];
  };
  uint64_t* const workspace;
  const int team, parts, part;
  const unsigned number;
  __device__ TeamExchange(uint64_t* memory, int of_teams, int blocks, int rank)
      : workspace(memory), team(of_teams), parts(blocks), part(rank), number(MemoryExchange::next_number(memory)) {}
  __device__ uint64_t& word(int row, int of_part) const {
    return workspace[(1 + row % kRows) * kSplitBlocks + team * parts + of_part];
  }
  // One thread of the warp calls it.
  __device__ void send(int row, float sum) const {
    Atomic(word(row, part)).store(uint64_t{number + row} << 32 | __float_as_uint(sum), relaxed);
  }
  // A warp calls them, the first one some time before the second one.
  __device__ Words look(int row) const {
    Words words;
#pragma unroll
    for (int j = 0; j < kWordsOfLane; ++j)
      if (const int i = threadIdx.x % 32 + 32 * j; i < parts) words.word[j] = Atomic(word(row, i)).load(relaxed);
    return words;
  }
  __device__ float receive(int row, const Words& words) const {
    float sum = 0.0f;
#pragma unroll
    for (int j = 0; j < kWordsOfLane; ++j)
      if (const int i = threadIdx.x % 32 + 32 * j; i < parts)
        sum += MemoryExchange::receive(word(row, i), number + row, words.word[j]);
    return warp_sum(sum);
  }
  // A warp calls it at the end: `rows` is what the team with the most of them has.
  __device__ void end(int rows) const {
    const uint64_t last = uint64_t{number + rows - 1} << 32;
    const int lane = threadIdx.x % 32;
    if (lane == 0) Atomic(workspace[blockIdx.x]).store(last, relaxed);
    for (int i = lane; i < kSplitBlocks; i += 32) MemoryExchange::write_for_absent_blocks(workspace, last, i);
  }
};

}  // namespace rms_norm::detail
