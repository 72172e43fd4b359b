// All-reduce, residual addition and RMSNorm in one kernel, for 1 to 8 GPUs of one host.
//
//   residual_out = residual + the sum of x over all ranks             y = the norm of residual_out, as in rms_norm.cuh
//
//   #include <rms_norm/all_reduce.cuh>
//   cudaError_t error = rms_norm::all_reduce_fused_add_rms_norm(communicator, x, residual, residual, weight, x, rows,
//                                                               cols, {}, stream);
//
// Each rank is a GPU of its own, and every rank calls it with the same rows, cols, types and options. The sum is
// computed in float32, in the order of the ranks, with the residual last, and is rounded once: all ranks have the same
// bits, and a row's bits depend on its numbers, the ranks and cols alone. A call launches on the stream, allocates
// nothing, waits for nothing on the host, and may be captured into a graph. all_reduce_nccl.cuh makes a Communicator
// from NCCL's; init_region() is for memory that ranks share by other means. README.md explains how it works.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "arguments.cuh"
#include "packs.cuh"
#include "sums.cuh"
#include "system_scope.cuh"

namespace rms_norm {

constexpr int kMostRanks = 8;

// What a rank knows of its group. It is a value: copy it as you like.
struct Communicator {
  int rank = 0, ranks = 1;
  // Where this rank's GPU finds the regions of all ranks, its own included: memory of `bytes` bytes each, on a 16-byte
  // boundary of each GPU, that init_region() has prepared.
  void* regions[kMostRanks] = {};
  size_t bytes = 0;
  // How many groups, this one included, may have a kernel on this GPU at the same time. Their kernels wait for other
  // GPUs, and the GPU must have room for all blocks of all of them, or the groups may wait for each other without end.
  // It is the same on all ranks. With more than one, launches are plain ones, and no kernel starts early after them.
  int groups = 1;
  // In a program that is compiled with RMS_NORM_CHECKED: a word of host memory that the GPU can write, -1 at first. A
  // kernel that has waited for several seconds writes there which rank has not come, and fails.
  int* late_rank = nullptr;
};

// How the sum is computed. One-shot: every rank sends its x to all others, and each adds up all rows. Two-shot: each
// rank adds up its share of the rows and sends the sums to the others. The results are the same.
enum class Reduction { by_size, one_shot, two_shot };

// Of Options, workspace, cache and batch_invariant have no effect here.
struct AllReduceOptions : Options {
  Reduction reduction = Reduction::by_size;
  // The residual is sharded by rows, as in sequence parallelism: `residual` and `residual_out` of rank r hold only its
  // rows, which begin at row r · shard_rows(rows, ranks). It takes the two-shot form.
  bool residual_is_sharded = false;
};

// How many rows a rank has of a sharded residual; the last ranks may have fewer.
constexpr int64_t shard_rows(int64_t rows, int ranks) { return (rows + ranks - 1) / ranks; }

namespace detail {

template <class T>
struct Identity {
  using type = T;
};
template <class T>
using Same = typename Identity<T>::type;  // not deduced

// A region begins with a word for each block, the number of launches so far, and then has two buffers.
#ifdef __SIMT__
constexpr int kMostRankBlocks = 4;  // the CPU device keeps a stack for each thread that waits
#else
constexpr int kMostRankBlocks = 1024;
#endif
constexpr size_t kRegionHead = kMostRankBlocks * sizeof(unsigned);

// Memory that nothing has arrived in: both halves are NaNs, of bits that without_sentinel() lets no rank send.
constexpr unsigned kSentinel = 0xffffffff, kOtherNaNs = 0x7fff7fff;

}  // namespace detail

// The bytes of a region with which a call of up to `message_bytes` (rows · cols elements, each row filled up to a
// multiple of 16 bytes) is one launch. A larger call is several launches, of as many rows as fit.
constexpr size_t region_bytes(int ranks, size_t message_bytes) {
  const size_t peers = static_cast<size_t>(ranks - 1);
  const size_t buffer = ranks <= 2 ? peers * message_bytes : 2 * peers * (message_bytes / static_cast<size_t>(ranks));
  return detail::kRegionHead + 2 * ((buffer / 16 + kMostRanks * 4096) * 16);
}

// Prepares a rank's own region, on the stream. Once, before the communicator's first launch: no rank may launch before
// all ranks have ended this. And again, by all ranks, after a launch failed.
inline cudaError_t init_region(void* region, size_t bytes, cudaStream_t stream = nullptr) {
  if (region == nullptr || reinterpret_cast<uintptr_t>(region) % 16 != 0 || bytes < detail::kRegionHead)
    return cudaErrorInvalidValue;
  if (const cudaError_t error = cudaMemsetAsync(region, 0, detail::kRegionHead, stream)) return error;
  return cudaMemsetAsync(static_cast<char*>(region) + detail::kRegionHead, 0xff, bytes - detail::kRegionHead, stream);
}

namespace detail {

// What a launch is about. Ranks other than this one, its peers, are in their order: peer j is rank j or j + 1. A buffer
// has a slot for each peer, in the same order. kPeers is how many there are at most.
template <class T, class W, int kPeers>
struct AllReduceProblem {
  const T* x;
  const W* weight;
  T* y;
  const T* residual;
  T* residual_out;
  char* region;
  char* peers[kPeers];
  size_t buffer_bytes;
  int packs, cols, rank, ranks;  // packs: per row
  int items;                     // of this launch: rows; in the two-shot form, rows of each rank's share
  int splits;                    // 2^splits blocks share an item: each has every 2^splits-th rank
  int64_t share, rows;           // from a rank's rows to the next one's; from the first row on, how many there are
  float inverse_cols, eps, weight_offset;
  bool round_first, dependent, alone, in_packs, sharded;
  int* late_rank;
};

// A block of a launch. With kVectors = 0, a row has any length, and is read again from where the sums were written.
template <class T, class W, int kThreads, int kVectors, int kPeers>
struct RankBlock {
  static constexpr int N = 16 / sizeof(T), kKept = kVectors == 0 ? 1 : kVectors;
  static constexpr bool kKeeps = kVectors > 0;
  using P = AllReduceProblem<T, W, kPeers>;
  using TPack = Pack<T, N>;
  struct Packs {  // of a row, that a thread keeps
    TPack of[kKept];
  };

  const P& p;
  unsigned launches = 0;  // before this one
  size_t buffer = 0;      // from a region's begin to the buffer that this launch uses
  int uses = 0;           // of row_sums
  Pack<W, N> weight[kKept];

  // The weight comes before what other kernels write.
  __device__ explicit RankBlock(const P& problem) : p(problem) {
    if constexpr (kKeeps) {
#pragma unroll
      for (int v = 0; v < kKept; ++v) weight[v] = {};
      if (p.weight != nullptr) for_each([&](int v, int i) { weight[v] = load<N>(p.weight + i * N); });
      __syncwarp();  // or nvcc moves the loads behind the wait
    }
    if (p.dependent) wait_for_previous_kernel();
    // The next kernel waits for this one where it may take the room of another group's, for which this one may wait.
    if (p.alone) let_next_kernel_start();
    launches = reinterpret_cast<const unsigned*>(p.region)[blockIdx.x];
    buffer = kRegionHead + (launches % 2) * p.buffer_bytes;
  }
  // The next launch finds that there was one more. Block 0 writes for the blocks that this launch does not have.
  __device__ void end() const {
    auto* const numbers = reinterpret_cast<unsigned*>(p.region);
    if (kPeers > 1 && uses == 0) __syncthreads();  // as in rstd(): all threads have read the block's number
    if (threadIdx.x == 0) numbers[blockIdx.x] = launches + 1;
    if (blockIdx.x == 0)
      for (int i = gridDim.x + threadIdx.x; i < kMostRankBlocks; i += kThreads) numbers[i] = launches + 1;
  }

  // visit(v, i) for the thread's v-th pack, which is the row's i-th.
  template <class Visit>
  __device__ void for_each(Visit visit) const {
    if constexpr (kKeeps) {
#pragma unroll
      for (int v = 0; v < kVectors; ++v)
        if (const int i = threadIdx.x + v * kThreads; i < p.packs) visit(v, i);
    } else {
      for (int i = threadIdx.x; i < p.packs; i += kThreads) visit(0, i);
    }
  }

  // --- A row's own memory
  // ---------------------------------------------------------------------------------------------

  template <class E>
  __device__ Pack<E, N> load_pack(const E* row, int i) const {
    if (kKeeps || p.in_packs) return load<N>(row + int64_t{i} * N);
    return load_some<N, false>(row + int64_t{i} * N, p.cols - int64_t{i} * N);
  }
  __device__ void store_pack(T* row, int i, const TPack& pack) const {
    if (kKeeps || p.in_packs)
      store<false>(row + int64_t{i} * N, pack);
    else
      store_some(row + int64_t{i} * N, pack, p.cols - int64_t{i} * N);
  }
  // A word of two NaNs has other bits than the sentinel.
  __device__ static TPack without_sentinel(TPack pack) {
#pragma unroll
    for (unsigned& word : pack.word) word = word == kSentinel ? kOtherNaNs : word;
    return pack;
  }
  // Where a row begins. In one shot, rows have 32 bits.
  template <class Row>
  __device__ int64_t begin_of(Row row) const {
    if constexpr (sizeof(Row) == 4)
      return static_cast<int64_t>(uint64_t{static_cast<unsigned>(row)} * static_cast<unsigned>(p.cols));
    else
      return row * p.cols;
  }
  template <class Row>
  __device__ TPack load_x(Row row, int i) const {
    return without_sentinel(load_pack(p.x + begin_of(row), i));
  }
  __device__ int64_t row_of(int rank, int item) const { return rank * p.share + item; }
  __device__ int rank_of(int peer) const { return peer + (peer >= p.rank); }
  // Whether what an item has for a rank, or of its rows, is this block's.
  __device__ bool has(int rank) const {
    return kPeers == 1 || ((static_cast<unsigned>(rank) ^ blockIdx.x) & ((1u << p.splits) - 1)) == 0;
  }

  // --- What ranks send each other
  // -------------------------------------------------------------------------------------

  // Place `i` of row `item` in a slot. The slots of the second shot come after those of the first one.
  __device__ size_t place(int slot, int item, int i, bool second = false) const {
    const int number = (second ? p.ranks - 1 : 0) + slot;
    return buffer + uint64_t{static_cast<unsigned>((number * p.items + item) * p.packs + i)} * 16;
  }
  __device__ void send(int peer, int item, int i, const TPack& pack, bool second = false) const {
    const int slot = peer >= p.rank ? p.rank : p.rank - 1;  // of this rank, there
    store_for_system(reinterpret_cast<uint4*>(p.peers[peer] + place(slot, item, i, second)),
                     reinterpret_cast<const uint4&>(pack.word));
  }
  __device__ void send_to_all(int item, int i, const TPack& pack, bool second = false) const {
#pragma unroll
    for (int peer = 0; peer < kPeers; ++peer)
      if (peer < p.ranks - 1 && (second || has(rank_of(peer)))) send(peer, item, i, pack, second);
  }
  __device__ uint4* slot_of(int peer, int item, int i, bool second = false) const {
    return reinterpret_cast<uint4*>(p.region + place(peer, item, i, second));
  }
  __device__ static bool has_arrived(const uint4& words) {
    return words.x != kSentinel && words.y != kSentinel && words.z != kSentinel && words.w != kSentinel;
  }
  // What a peer has sent, and of which `words` have been seen.
  __device__ uint4 wait_for(uint4* slot, uint4 words, [[maybe_unused]] int peer) const {
#ifdef RMS_NORM_CHECKED
    int64_t left = int64_t{1} << kMostPolls;
#endif
    while (!has_arrived(words)) {
#ifdef RMS_NORM_CHECKED
      if (--left == 0) {
        if (p.late_rank != nullptr) {
          *static_cast<volatile int*>(p.late_rank) = rank_of(peer);
          __threadfence_system();
        }
        __trap();
      }
#endif
      words = load_from_system(slot);
    }
    return words;
  }
#ifdef RMS_NORM_CHECKED
#ifdef __SIMT__
  static constexpr int kMostPolls = 16;
#else
  static constexpr int kMostPolls = 23;  // half a microsecond or more each
#endif
#endif
  // The thread that has read a place, in the last of its reads, makes it as it was, for the launch after the next one.
  __device__ static void clear(uint4* slot) { store_for_system(slot, {kSentinel, kSentinel, kSentinel, kSentinel}); }

  // Adds what this rank and its peers have at a place, in the order of ranks.
  __device__ void add_all(int item, int i, const TPack& own, float (&sum)[N]) const {
    uint4 words[kPeers];
#pragma unroll
    for (int peer = 0; peer < kPeers; ++peer)
      if (peer < p.ranks - 1) words[peer] = load_from_system(slot_of(peer, item, i));
#pragma unroll
    for (int k = 0; k < N; ++k) sum[k] = -0.0f;  // -0 + a is a, also if a is -0
#pragma unroll
    for (int peer = 0; peer <= kPeers; ++peer) {
      if (peer == p.rank) add(own, sum);
      if (peer < kPeers && peer < p.ranks - 1) {
        uint4* const slot = slot_of(peer, item, i);
        const uint4 arrived = wait_for(slot, words[peer < kPeers ? peer : 0], peer);
        clear(slot);
        add(reinterpret_cast<const TPack&>(arrived), sum);
      }
    }
  }
  __device__ static void add(const TPack& pack, float (&sum)[N]) {
    float value[N];
    unpack(pack, value);
#pragma unroll
    for (int k = 0; k < N; ++k) sum[k] += value[k];
  }

  // --- A row's norm
  // ---------------------------------------------------------------------------------------------------

  // Called by all threads. Two memories in turn: a thread that is here for the next row has passed the barrier of this
  // one, after which slower threads may still read.
  __device__ float rstd(float squares) {
    constexpr int kWarps = kThreads / 32;
    __shared__ alignas(16) float row_sums[2][kWarps];
    float* const sums = row_sums[uses++ % 2];
    squares = warp_sum(squares);
    if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = squares;
    __syncthreads();
    float sum;
    if constexpr (kWarps <= 16)
      sum = sum_of_shared<kWarps>(sums);
    else
      sum = warp_sum(sums[threadIdx.x % 32]);
    return rsqrtf(sum * p.inverse_cols + p.eps);
  }
  // Of packs that stay in `kept`; or that again(i) finds.
  template <class Row, class Again>
  __device__ void store_norm(Row row, const Packs& kept, float squares, Again again) {
    const float factor = rstd(squares);
    T* const y = p.y + begin_of(row);
    for_each([&](int v, int i) {
      float value[N], weights[N] = {};
      unpack(kKeeps ? kept.of[v] : again(i), value);
      if constexpr (kKeeps)
        unpack(weight[v], weights);
      else if (p.weight != nullptr)
        unpack(load_pack(p.weight, i), weights);
#pragma unroll
      for (int k = 0; k < N; ++k) value[k] *= factor;
      if (p.round_first) unpack(round_to<T>(value), value);
#pragma unroll
      for (int k = 0; k < N; ++k) value[k] *= p.weight_offset + weights[k];
      store_pack(y, i, round_to<T>(value));
    });
  }
  // A row whose parts are on their way here: the sum, with the residual, and its norm.
  template <class Row>
  __device__ void reduce(int item, Row row, bool send_sums) {
    const int64_t begin = send_sums && p.sharded ? begin_of(item) : begin_of(row);
    const T* const residual = p.residual + begin;
    T* const residual_out = p.residual_out + begin;
    Packs x = {}, addend = {}, kept;
    if constexpr (kKeeps)
      for_each([&](int v, int i) { x.of[v] = load_x(row, i), addend.of[v] = load_pack(residual, i); });
    float squares = 0.0f;
    for_each([&](int v, int i) {
      float sum[N];
      add_all(item, i, kKeeps ? x.of[v] : load_x(row, i), sum);
      add(kKeeps ? addend.of[v] : load_pack(residual, i), sum);
      kept.of[v] = round_to<T>(sum);
      if (send_sums) {
        kept.of[v] = without_sentinel(kept.of[v]);
        send_to_all(item, i, kept.of[v], true);
      }
      store_pack(residual_out, i, kept.of[v]);
      squares += sum_of_squares(kept.of[v]);
    });
    store_norm(row, kept, squares, [&](int i) { return load_pack(residual_out, i); });
  }
};

template <class T, class W, int kThreads, int kVectors, int kPeers>
__global__ void __launch_bounds__(kThreads, kPeers == 1 ? 1024 / kThreads : 1)
    all_reduce_in_one_shot(const AllReduceProblem<T, W, kPeers> p) {
  using Block = RankBlock<T, W, kThreads, kVectors, kPeers>;
  Block block(p);
  const auto send = [&](int row) {
    block.for_each([&](int, int i) { block.send_to_all(row, i, block.load_x(row, i)); });
  };
  const int step = gridDim.x >> p.splits, begin = blockIdx.x >> p.splits;
  send(begin);
  // The next row is on its way while this one is waited for.
  for (int row = begin; row < p.items; row += step) {
    if (row + step < p.items) send(row + step);
    if (block.has(p.rank)) block.reduce(row, row, false);
  }
  block.end();
}

template <class T, class W, int kThreads, int kVectors, int kPeers>
__global__ void __launch_bounds__(kThreads) all_reduce_in_two_shots(const AllReduceProblem<T, W, kPeers> p) {
  using Block = RankBlock<T, W, kThreads, kVectors, kPeers>;
  Block block(p);
  const auto send = [&](int item) {  // to each peer, a row of its share
#pragma unroll
    for (int peer = 0; peer < kPeers; ++peer)
      if (peer < p.ranks - 1 && block.has(block.rank_of(peer)))
        if (const int64_t row = block.row_of(block.rank_of(peer), item); row < p.rows)
          block.for_each([&](int, int i) { block.send(peer, item, i, block.load_x(row, i)); });
  };
  const auto receive = [&](int item) {  // from each peer, the sums of that row
    for (int peer = 0; peer < p.ranks - 1; ++peer) {
      const int64_t row = block.row_of(block.rank_of(peer), item);
      if (row >= p.rows || !block.has(block.rank_of(peer))) continue;
      typename Block::Packs kept;
      float squares = 0.0f;
      block.for_each([&](int v, int i) {
        uint4* const slot = block.slot_of(peer, item, i, true);
        const uint4 words = block.wait_for(slot, load_from_system(slot), peer);
        kept.of[v] = reinterpret_cast<const typename Block::TPack&>(words);
        if constexpr (Block::kKeeps) Block::clear(slot);
        if (!p.sharded) block.store_pack(p.residual_out + block.begin_of(row), i, kept.of[v]);
        squares += sum_of_squares(kept.of[v]);
      });
      block.store_norm(row, kept, squares, [&](int i) {
        uint4* const slot = block.slot_of(peer, item, i, true);
        const uint4 words = load_from_system(slot);
        Block::clear(slot);
        return reinterpret_cast<const typename Block::TPack&>(words);
      });
    }
  };
  const int step = gridDim.x >> p.splits, begin = blockIdx.x >> p.splits;
  send(begin);
  // Each shot of one item is on its way while another item is waited for.
  for (int item = begin; item < p.items; item += step) {
    if (item + step < p.items) send(item + step);
    if (const int64_t row = block.row_of(p.rank, item); row < p.rows && block.has(p.rank))
      block.reduce(item, row, true);
    if (item > begin) receive(item - step);
    if (item + step >= p.items) receive(item);
  }
  block.end();
}

// --- Launches --------------------------------------------------------------------------------------------------------

// How many blocks of a kernel the current GPU runs at once, up to `most` on an SM. The driver is asked once for each
// GPU.
template <auto kernel>
cudaError_t query_resident_blocks(int threads, int most, int& blocks) {
  static std::atomic<int> known[64];
  int device = 0, multiprocessors = 0;
  if (const cudaError_t error = cudaGetDevice(&device)) return error;
  if (device < 64 && (blocks = known[device].load(std::memory_order_relaxed)) > 0) return cudaSuccess;
  if (const cudaError_t error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, threads, 0))
    return error;
  if (const cudaError_t error = cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device))
    return error;
  blocks = std::min(blocks, most) * multiprocessors;
  if (device < 64) known[device].store(blocks, std::memory_order_relaxed);
  return cudaSuccess;
}

// Up to so many rows one shot takes less time. With two ranks both forms send as much, and two shots share the work on
// the rows. With R, one shot sends R / 2 times as much, and the number falls as bytes and trips over the link say: on
// four H100s it is about 19 for rows of 4096 columns, and 16 for rows of 8192.
constexpr int64_t one_shot_rows(int ranks, int64_t bytes_of_row) {
  return ranks <= 2 ? (int64_t{2} << 20) / bytes_of_row : int64_t{29} * ranks / ((ranks - 1) * (ranks - 2));
}

inline int64_t packs_of_buffer(const Communicator& c) {
  return c.bytes < kRegionHead ? 0 : static_cast<int64_t>(std::min<size_t>((c.bytes - kRegionHead) / 32, INT32_MAX));
}
template <class T>
constexpr int64_t packs_of_row(int64_t cols) {
  constexpr int N = 16 / sizeof(T);
  return cols / N + (cols % N != 0);
}
// Packs of a buffer that an item of a launch takes.
inline int64_t packs_of_item(int64_t packs, int ranks, bool two_shot) {
  return packs * std::max(1, (two_shot ? 2 : 1) * (ranks - 1));
}
template <class T>
bool takes_two_shots(const Communicator& c, int64_t rows, int64_t cols, const AllReduceOptions& options) {
  if (options.residual_is_sharded || options.reduction == Reduction::two_shot) return true;
  if (options.reduction == Reduction::one_shot || c.ranks == 1) return false;
  return rows > one_shot_rows(c.ranks, 16 * packs_of_row<T>(cols));
}

template <class T, class W, int kThreads, int kVectors, int kPeers>
cudaError_t launch_all_reduce(AllReduceProblem<T, W, kPeers> p, const Communicator& c, bool two_shot,
                              cudaStream_t stream) {
  constexpr auto one = all_reduce_in_one_shot<T, W, kThreads, kVectors, kPeers>;
  constexpr auto two = all_reduce_in_two_shots<T, W, kThreads, kVectors, kPeers>;
  // With more than two ranks, stores go to several GPUs at once, and more than 512 threads on an SM take more time: on
  // four H100s, 57 us and not 48 for 1024 rows of 4096 bfloat16.
  constexpr int on_sm = kPeers == 1 ? INT32_MAX : std::max(1, 512 / kThreads);
  int resident = 0;
  if (const cudaError_t error = two_shot ? query_resident_blocks<two>(kThreads, on_sm, resident)
                                         : query_resident_blocks<one>(kThreads, on_sm, resident))
    return error;
  resident = std::min(kMostRankBlocks, resident / c.groups);
  if (resident < 1) return cudaErrorCooperativeLaunchTooLarge;
  const int64_t most = packs_of_buffer(c) / packs_of_item(p.packs, c.ranks, two_shot);
  for (int64_t left = two_shot ? p.share : p.rows; left > 0; left -= p.items) {
    p.items = static_cast<int>(std::min(most, left));
    // Blocks share few items, so that more SMs send: in two shots; and in one shot a single row (more rows take longer
    // so), unless y replaces the x that another block has yet to send.
    p.splits = 0;
    if (kPeers > 1 && (two_shot || (p.items == 1 && p.x != p.y)))
      while ((1 << p.splits) < c.ranks && p.items <= resident >> (p.splits + 1)) ++p.splits;
    Grid grid = {dim3(static_cast<unsigned>(std::min(resident, p.items << p.splits))), dim3(kThreads)};
    grid.dependent = p.dependent;
#ifdef __SIMT__
    grid.all_at_once = true;  // this is how the CPU device is told that blocks wait for each other
#endif
    if (const cudaError_t error = launch(stream, grid, two_shot ? two : one, p)) return error;
    const int64_t elements = int64_t{p.items} * p.cols;
    p.x += elements, p.y += elements, p.residual += elements, p.residual_out += elements, p.rows -= p.items;
  }
  return cudaSuccess;
}

template <class T, class W, int kPeers>
cudaError_t dispatch_all_reduce(const AllReduceProblem<T, W, kPeers>& p, const Communicator& c, bool two_shot,
                                cudaStream_t stream) {
  if (!p.in_packs || p.packs > 2048) return launch_all_reduce<T, W, 512, 0, kPeers>(p, c, two_shot, stream);
  if (p.packs <= 256) return launch_all_reduce<T, W, 256, 1, kPeers>(p, c, two_shot, stream);
  if (p.packs <= 512) return launch_all_reduce<T, W, 512, 1, kPeers>(p, c, two_shot, stream);
  if (p.packs <= 1024) return launch_all_reduce<T, W, 512, 2, kPeers>(p, c, two_shot, stream);
  return launch_all_reduce<T, W, 1024, 2, kPeers>(p, c, two_shot, stream);
}

// What explain_all_reduce() names. The residual and its sum are matrices of as many rows as this rank has of them.
template <class T, class W>
Refusal all_reduce_refusal(const Communicator& c, const T* x, const T* residual, T* residual_out, const W* weight, T* y,
                           int64_t rows, int64_t cols, const AllReduceOptions& options, const Names& names) {
  static_assert(is_element<T> && is_element<W>, "elements are float, __half or __nv_bfloat16");
  if (c.ranks < 1 || c.ranks > kMostRanks) return {"a communicator has 1 to 8 ranks"};
  if (c.rank < 0 || c.rank >= c.ranks) return {"the communicator's rank is not below its ranks"};
  if (c.groups < 1) return {"the communicator's groups are less than 1"};
  for (int rank = 0; rank < c.ranks; ++rank) {
    if (c.regions[rank] == nullptr) return {"the communicator lacks a region"};
    if (reinterpret_cast<uintptr_t>(c.regions[rank]) % 16 != 0) return {"a region is not aligned to 16 bytes"};
  }
  for (int rank = 0; rank < c.ranks; ++rank)
    if (rank != c.rank && c.regions[rank] == c.regions[c.rank])
      return {"two ranks of the communicator have one region"};
  if (const char* wrong = refusal_of_shape(rows, cols, 1, options)) return {wrong};
  if (options.residual_is_sharded && options.reduction == Reduction::one_shot)
    return {"a sharded residual takes two shots"};
  if (rows == 0) return {};
  if (cols > INT64_MAX / 64 / rows) return {"rows * cols is too large for 64-bit addresses"};
  if (cols > INT32_MAX) return {"cols is above 2^31 - 1"};
  const int64_t packs = packs_of_row<T>(cols);
  if (packs_of_item(packs, c.ranks, takes_two_shots<T>(c, rows, cols, options)) > packs_of_buffer(c))
    return {"a row is larger than the communicator's regions allow"};
  const int64_t share = shard_rows(rows, c.ranks);
  const int64_t own = std::max<int64_t>(0, std::min(share, rows - c.rank * share));
  const int64_t residual_rows = options.residual_is_sharded ? own : rows;
  const auto region = [&](const void* data, int64_t of_rows) {
    return Region(of_rows > 0 ? data : nullptr, of_rows * cols * static_cast<int64_t>(sizeof(T)));
  };
  const Region regions[] = {region(x, rows), region(y, rows), region(residual, residual_rows),
                            region(residual_out, residual_rows)};
  const void* const data[] = {x, y, residual, residual_out};
  const char* const called[] = {names.x, names.y, names.residual, names.residual_out};
  for (int i = 0; i < 4; ++i) {
    if (data[i] == nullptr && (i < 2 || residual_rows > 0)) return {called[i], " is nullptr"};
    if (reinterpret_cast<uintptr_t>(data[i]) % sizeof(T) != 0)
      return {called[i], " is not aligned to its element type"};
  }
  if (reinterpret_cast<uintptr_t>(weight) % sizeof(W) != 0)
    return {names.weight, " is not aligned to its element type"};
  const Region of_weight(weight, cols * static_cast<int64_t>(sizeof(W)));
  const Region of_group(c.regions[c.rank], static_cast<int64_t>(c.bytes));
  const auto may_be_same = [&](int written, int other) {
    return data[written] == data[other] && ((written == 1 && other == 0) || (written == 3 && other == 2));
  };
  for (const int written : {1, 3}) {
    if (regions[written].overlaps(of_weight)) return {called[written], " overlaps ", names.weight};
    for (int other = 0; other < 4; ++other)
      if (other != written && regions[written].overlaps(regions[other]) && !may_be_same(written, other))
        return {called[written], " overlaps ", called[other], ", and may not be the same tensor"};
  }
  for (int i = 0; i < 4; ++i)
    if (of_group.overlaps(regions[i])) return {"the communicator's region overlaps ", called[i]};
  if (of_group.overlaps(of_weight)) return {"the communicator's region overlaps ", names.weight};
  return {};
}

template <int kPeers, class T, class W>
cudaError_t run_all_reduce(const Communicator& c, const T* x, const T* residual, T* residual_out, const W* weight, T* y,
                           int64_t rows, int64_t cols, const AllReduceOptions& options, cudaStream_t stream) {
  AllReduceProblem<T, W, kPeers> p = {};
  p.x = x, p.weight = weight, p.y = y, p.residual = residual, p.residual_out = residual_out;
  p.region = static_cast<char*>(c.regions[c.rank]);
  for (int peer = 0; peer + 1 < c.ranks; ++peer) p.peers[peer] = static_cast<char*>(c.regions[peer + (peer >= c.rank)]);
  p.buffer_bytes = static_cast<size_t>(packs_of_buffer(c)) * 16;
  p.cols = static_cast<int>(cols), p.rows = rows, p.share = shard_rows(rows, c.ranks);
  p.packs = static_cast<int>(packs_of_row<T>(cols)), p.rank = c.rank, p.ranks = c.ranks;
  p.inverse_cols = 1.0f / static_cast<float>(cols), p.eps = options.eps;
  p.weight_offset = weight != nullptr ? options.weight_offset : 1.0f;
  p.round_first = options.rounding == Rounding::llama;
  p.sharded = options.residual_is_sharded, p.late_rank = c.late_rank;
  constexpr int N = 16 / sizeof(T);
  const auto is_aligned = [](const void* data, size_t bytes) { return reinterpret_cast<uintptr_t>(data) % bytes == 0; };
  p.in_packs = cols % N == 0 && is_aligned(x, 16) && is_aligned(y, 16) && is_aligned(residual, 16) &&
               is_aligned(residual_out, 16) && is_aligned(weight, std::min<size_t>(16, N * sizeof(W)));
  p.alone = c.groups == 1;
  if (options.dependent_launch && p.alone) {
    int device = 0, architecture = 0;
    if (const cudaError_t error = cudaGetDevice(&device)) return error;
    if (const cudaError_t error = query_code<CUDA_BITS_ARCHITECTURES>(device, architecture)) return error;
    p.dependent = architecture >= 90;
  }
  return dispatch_all_reduce(p, c, takes_two_shots<T>(c, rows, cols, options), stream);
}

template <class T, class W>
using WeightOf = std::conditional_t<std::is_null_pointer_v<W>, T, Element<W>>;

}  // namespace detail

// residual_out = residual + the sum of x over the ranks, rounded to T; y = the norm of what residual_out then holds.
// x, y and the residuals are contiguous matrices of rows × cols elements of float, __half or __nv_bfloat16; a sharded
// residual has the rows of its rank (AllReduceOptions). weight is a pointer to cols elements, also of another of these
// types, or nullptr for none.
//
//   rows >= 0, cols >= 1; all ranks give the same rows, cols, types and options, and launch in the same order
//   a row fits into the communicator's regions: region_bytes(ranks, bytes of a row) is enough
//   pointers may have any alignment that suits the type; 16 bytes, and rows of a multiple of 16 bytes, are faster
//   y may be x, and residual_out may be residual; no other memory may overlap them
//   one launch of a communicator at a time: its launches are all on one stream, or follow each other by events
//
// A kernel waits for the other ranks' kernels of the same launch. So its blocks must all have room on the GPU at once:
// a launch takes no more blocks than the GPU holds, divided by Communicator::groups, and where there is no room for one
// the call returns cudaErrorCooperativeLaunchTooLarge. As a dependent launch, it reads the weight at once, and
// everything else after the kernel before it has ended.
//
// Returns what the launch returns; or cudaErrorInvalidValue, with nothing launched, for what explain_all_reduce()
// names. A rank that does not launch keeps the others waiting; Communicator::late_rank says how to find it.
template <class T, class W>
cudaError_t all_reduce_fused_add_rms_norm(const Communicator& communicator, const T* x, const detail::Same<T>* residual,
                                          detail::Same<T>* residual_out, W weight, detail::Same<T>* y, int64_t rows,
                                          int64_t cols, const AllReduceOptions& options = {},
                                          cudaStream_t stream = nullptr) {
  using E = detail::WeightOf<T, W>;
  const E* const factors = weight;
  if (detail::all_reduce_refusal(communicator, x, residual, residual_out, factors, y, rows, cols, options, {}))
    return cudaErrorInvalidValue;
  if (rows == 0) return cudaSuccess;
  if (communicator.ranks <= 2)
    return detail::run_all_reduce<1>(communicator, x, residual, residual_out, factors, y, rows, cols, options, stream);
  if (communicator.ranks <= 4)
    return detail::run_all_reduce<3>(communicator, x, residual, residual_out, factors, y, rows, cols, options, stream);
  return detail::run_all_reduce<kMostRanks - 1>(communicator, x, residual, residual_out, factors, y, rows, cols,
                                                options, stream);
}

// Why a call with these arguments is refused: one sentence, which stands until the thread asks again. nullptr if it is
// not refused.
template <class T, class W>
const char* explain_all_reduce(const Communicator& communicator, const T* x, const detail::Same<T>* residual,
                               detail::Same<T>* residual_out, W weight, detail::Same<T>* y, int64_t rows, int64_t cols,
                               const AllReduceOptions& options = {}, const Names& names = {}) {
  const detail::WeightOf<T, W>* const factors = weight;
  return detail::all_reduce_refusal(communicator, x, residual, residual_out, factors, y, rows, cols, options, names)
      .text();
}

}  // namespace rms_norm
