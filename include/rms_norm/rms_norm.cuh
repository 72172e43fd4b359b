// RMSNorm for NVIDIA GPUs, forward, with or without a residual addition.
//
//   y = x / sqrt(mean(x²) + eps) · (weight_offset + weight)          for each row of `cols` elements
//
//   #include <rms_norm/rms_norm.cuh>
//   cudaError_t error = rms_norm::forward(x, weight, y, rows, cols, {}, stream);
//
// x, weight and y are device pointers to float, __half or __nv_bfloat16, each of a type of its own; sums are float32. A
// call launches on the stream, allocates nothing, waits for nothing, and may be captured into a graph. Results are the
// same in every run. One header; it needs CUDA 12 or newer and C++17. The formula is that of Zhang and Sennrich, "Root
// Mean Square Layer Normalization", 2019. The repository's ladder explains each idea below, one stage an idea.
#pragma once

#include <cooperative_groups.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cuda/atomic>
#include <type_traits>

namespace rms_norm {

// Where the weight comes in: `gemma` computes in float32 and rounds once, at the end; `llama` rounds the normalized
// value to y's type, multiplies, and rounds again. Without a weight the two are the same.
enum class Rounding { gemma, llama };

struct Options {
  float eps = 1e-6f;           // added to the mean of squares: finite, >= 0
  float weight_offset = 0.0f;  // 1 for Gemma's 1 + w; added in float32; has no effect without a weight
  Rounding rounding = Rounding::gemma;

  // Programmatic dependent launch: the kernel starts while the one before it on the stream ends, reads the weight, and
  // only then waits for that kernel, which therefore must not write the weight. Needs compute capability 9.0; elsewhere
  // the launch is a plain one.
  bool dependent_launch = false;

  // Lets many blocks work on one long row. Device memory, kWorkspaceBytes of it, 16-byte aligned, all zero before its
  // first use; calls that may run at the same time need one each. nullptr: long rows take longer.
  void* workspace = nullptr;
};

constexpr size_t kWorkspaceBytes = 128 + 64 * 128 * sizeof(uint64_t);

// Where each row begins, in elements: row r at (r / heads) · stride + (r % heads) · head_stride. A contiguous matrix is
// {cols}; the query heads within a packed [tokens, all_heads · cols] are {all_heads * cols, query_heads, cols}.
struct Layout {
  int64_t stride = 0;
  int64_t heads = 1;
  int64_t head_stride = 0;
};

// x: rows × cols; weight: cols, or nullptr; y: rows × cols. rows >= 0, cols >= 1, any alignment that suits the types;
// heads and rows / heads not both above 65535. y may be x where types and layouts are the same; nothing else may
// overlap an output. Returns cudaErrorInvalidValue, with nothing launched, for arguments that break these rules, else
// what the launch returns. What cannot be noticed: memory that is too small, and tensors that overlap without beginning
// at the same address.
template <class X, class W, class Y>
cudaError_t forward(const X* x, Layout x_layout, const W* weight, Y* y, Layout y_layout, int64_t rows, int64_t cols,
                    const Options& options = {}, cudaStream_t stream = nullptr);

// residual_out = x + residual, rounded to R; y = the norm of what residual_out then holds. residual_out may be residual
// or x, and y may be x or residual, where types and layouts are the same, but y is not residual_out. All else as above.
template <class X, class R, class W, class Y>
cudaError_t forward_add(const X* x, Layout x_layout, const R* residual, Layout residual_layout, R* residual_out,
                        Layout residual_out_layout, const W* weight, Y* y, Layout y_layout, int64_t rows, int64_t cols,
                        const Options& options = {}, cudaStream_t stream = nullptr);

namespace detail {

// --- The policy: which shape a kernel gets
// ----------------------------------------------------------------------------- Rows of up to `packs` packs stay in the
// registers of their threads, `vectors` packs in each; a block has `block` threads, or those of one row if they are
// more.
struct Shape {
  int packs, vectors, block;
};
// policy:begin
inline constexpr Shape kForward[] = {{32, 1, 256},   {64, 2, 256},   {256, 2, 128},  {512, 2, 256},
                                     {1024, 2, 512}, {2048, 4, 512}, {4096, 8, 512}, {8192, 8, 1024}};
inline constexpr Shape kForwardAdd[] = {{32, 1, 256},   {64, 2, 256},   {256, 2, 128},   {512, 2, 256},
                                        {1024, 4, 256}, {2048, 4, 512}, {4096, 4, 1024}, {8192, 8, 1024}};
inline constexpr Shape kFew[] = {{32, 1, 128}, {512, 2, 256}, {1024, 4, 256}, {2048, 2, 1024}, {8192, 8, 1024}};
constexpr int64_t kCachedBytes = 512 << 10;  // input and output together: fewer are few rows, and left to the caches
// policy:end
inline constexpr Shape kNarrow[] = {
    {128, 4, 256}, {1024, 4, 256}, {4096, 4, 1024}, {16384, 16, 1024}};  // under 16 bytes a pack
constexpr int kMostPacks = 8192;
constexpr int kMostThreads = 1024;         // a block
constexpr int kMostHeads = 65535;          // a grid
constexpr int kSplitBlocks = 128;          // that work on long rows together, with a workspace
constexpr int64_t kSplitBytes = 64 << 10;  // from here on a row counts as long
constexpr int kClusterBlocks = 8;          // that share a long row without one

// --- Elements
// ----------------------------------------------------------------------------------------------------------
template <class T>
constexpr bool is_element = std::is_same_v<T, float> || std::is_same_v<T, __half> || std::is_same_v<T, __nv_bfloat16>;

// The float32 values of a 32-bit word of two elements, or of one; and back, rounded to nearest even.
template <class T>
constexpr int per_word = sizeof(T) == 4 ? 1 : 2;

// `again`: by other instructions. The compiler would keep values that it unpacked before, in twice the registers of the
// word.
template <class T, bool again = false>
__device__ void unpack_word(unsigned word, float* value) {
  if constexpr (std::is_same_v<T, float>) {
    value[0] = __uint_as_float(word);
  } else if constexpr (std::is_same_v<T, __half>) {
    const float2 two = __half22float2(reinterpret_cast<const __half2&>(word));
    value[0] = two.x, value[1] = two.y;
  } else if constexpr (again) {
    value[0] = __uint_as_float(__byte_perm(word, 0, 0x1044)), value[1] = __uint_as_float(__byte_perm(word, 0, 0x3244));
  } else {
    value[0] = __uint_as_float(word << 16), value[1] = __uint_as_float(word & 0xffff0000u);
  }
}
template <class T>
__device__ unsigned pack_word(float first, float second) {
  if constexpr (std::is_same_v<T, float>) {
    return __float_as_uint(first);
  } else if constexpr (std::is_same_v<T, __half>) {
    const __half2 pair = __floats2half2_rn(first, second);
    return reinterpret_cast<const unsigned&>(pair);
  } else {
    const __nv_bfloat162 pair = __floats2bfloat162_rn(first, second);
    return reinterpret_cast<const unsigned&>(pair);
  }
}

// N neighbouring elements, in 32-bit registers until they are computed with. A single 16-bit element has one of its
// own.
template <class T, int N>
struct Pack {
  static constexpr size_t kBytes = N * sizeof(T);
  static constexpr int kWords = (kBytes + 3) / 4;
  using Access = std::conditional_t<
      kBytes % 16 == 0, uint4,
      std::conditional_t<kBytes == 8, uint2, std::conditional_t<kBytes == 4, unsigned, unsigned short>>>;
  static constexpr int kAccesses = kBytes / sizeof(Access);
  alignas(16) unsigned word[kWords];
};

// Moves a pack in accesses of up to 16 bytes; `once` says that the caches need not keep it.
template <int N, bool once = false, class T>
__device__ Pack<T, N> load(const T* address) {
  using Access = typename Pack<T, N>::Access;
  Pack<T, N> pack = {};
#pragma unroll
  for (int i = 0; i < pack.kAccesses; ++i) {
    const Access* from = reinterpret_cast<const Access*>(address) + i;
    if constexpr (once)
      reinterpret_cast<Access*>(pack.word)[i] = __ldcs(from);
    else
      reinterpret_cast<Access*>(pack.word)[i] = *from;
  }
  return pack;
}
// Of what no kernel writes meanwhile: the compiler may move it before stores.
template <int N, class T>
__device__ Pack<T, N> load_constant(const T* address) {
  using Access = typename Pack<T, N>::Access;
  Pack<T, N> pack = {};
#pragma unroll
  for (int i = 0; i < pack.kAccesses; ++i)
    reinterpret_cast<Access*>(pack.word)[i] = __ldg(reinterpret_cast<const Access*>(address) + i);
  return pack;
}
template <int N, bool once, class T>
__device__ void store(T* address, const Pack<T, N>& pack) {
  using Access = typename Pack<T, N>::Access;
#pragma unroll
  for (int i = 0; i < pack.kAccesses; ++i) {
    Access* to = reinterpret_cast<Access*>(address) + i;
    if constexpr (once)
      __stcs(to, reinterpret_cast<const Access*>(pack.word)[i]);
    else
      *to = reinterpret_cast<const Access*>(pack.word)[i];
  }
}

template <bool again = false, class T, int N>
__device__ void unpack(const Pack<T, N>& pack, float (&value)[N]) {
#pragma unroll
  for (int i = 0; i < pack.kWords; ++i) {
    float two[2];
    unpack_word<T, again>(pack.word[i], two);
#pragma unroll
    for (int k = 0; k < per_word<T>; ++k)
      if (i * per_word<T> + k < N) value[i * per_word<T> + k] = two[k];
  }
}
template <class T, int N>
__device__ Pack<T, N> round_to(const float (&value)[N]) {
  Pack<T, N> pack;
#pragma unroll
  for (int i = 0; i < pack.kWords; ++i) {
    const int k = i * per_word<T>;
    pack.word[i] = pack_word<T>(value[k], k + 1 < N ? value[k + 1] : 0.0f);
  }
  return pack;
}

// --- What a kernel is told
// --------------------------------------------------------------------------------------------- R is void where no
// residual is added. What every kernel reads stands first, within a cache line of the constant cache: a line more takes
// a short kernel a tenth of a microsecond more.
template <class X, class R, class W, class Y>
struct Problem {
  static constexpr bool kAdds = !std::is_void_v<R>;
  const X* x;
  const W* weight;
  Y* y;
  int packs = 0;  // of a row that fits into registers
  float inverse_cols = 0, eps = 0, weight_offset = 0;
  bool round_first = false;
  int64_t rows = 0, cols = 0;  // rows of a head, of which there are `heads`
  const R* residual = nullptr;
  R* residual_out = nullptr;
  Layout x_layout = {}, y_layout = {}, residual_layout = {}, residual_out_layout = {};
  unsigned heads = 1;
  uint64_t* workspace = nullptr;
};

// How a kernel goes about memory. Few contiguous rows are left to the caches, and their kernels made short; of more,
// nothing is worth keeping in a cache, and rows may lie anywhere.
enum class Traffic { few, streamed };

// What becomes of normalized values. One choice for all of them, so that a kernel branches once.
enum class Finish { no_weight, weight, round_first };
template <class P, class Body>
__device__ void with_finish(const P& p, Body body) {
  if (p.weight == nullptr)
    body(std::integral_constant<Finish, Finish::no_weight>());
  else if (p.round_first)
    body(std::integral_constant<Finish, Finish::round_first>());
  else
    body(std::integral_constant<Finish, Finish::weight>());
}

// Row `number` of a problem, in packs of N.
template <int N, Traffic traffic, class P>
struct Row;
template <int N, Traffic traffic, class X, class R, class W, class Y>
struct Row<N, traffic, Problem<X, R, W, Y>> {
  static constexpr bool once = traffic == Traffic::streamed;
  using P = Problem<X, R, W, Y>;
  using Kept = Pack<std::conditional_t<P::kAdds, R, X>, N>;  // what is normalized
  const P& p;
  const unsigned number;
  const X* x;
  const R* residual = nullptr;
  R* residual_out = nullptr;
  Y* y;

  __device__ Row(const P& p, unsigned number) : p(p), number(number) {
    x = p.x + begin(p.x_layout);
    y = p.y + begin(p.y_layout);
    if constexpr (P::kAdds) {
      residual = p.residual + begin(p.residual_layout);
      residual_out = p.residual_out + begin(p.residual_out_layout);
    }
  }
  __device__ int64_t begin(const Layout& layout) const {
    return once ? number * layout.stride + blockIdx.y * layout.head_stride : number * int64_t(p.packs * N);
  }

  __device__ Pack<X, N> load_x(int64_t i) const { return load<N, once>(x + i * N); }
  __device__ auto load_residual(int64_t i) const {
    if constexpr (P::kAdds)
      return load<N, once>(residual + i * N);
    else
      return 0;
  }
  __device__ void store_sum(int64_t i, const Kept& sum) const {
    if constexpr (P::kAdds) store<N, once>(residual_out + i * N, sum);
  }
  // x + residual, rounded; x itself where there is none.
  template <class Residual>
  __device__ static Kept add(const Pack<X, N>& x_pack, const Residual& residual_pack) {
    if constexpr (P::kAdds) {
      float sum[N], addend[N];
      unpack(x_pack, sum);
      unpack(residual_pack, addend);
#pragma unroll
      for (int k = 0; k < N; ++k) sum[k] += addend[k];
      return round_to<R>(sum);
    } else {
      return x_pack;
    }
  }
  template <Finish finish>
  __device__ Pack<W, N> load_weight(int64_t i) const {
    if constexpr (finish == Finish::no_weight)
      return {};
    else
      return load_constant<N>(p.weight + i * N);
  }
  __device__ Kept load_again(int64_t i) const {
    if constexpr (P::kAdds)
      return load<N>(residual_out + i * N);
    else
      return load<N>(x + i * N);
  }
  __device__ float rstd(float sum) const { return rsqrtf(sum * p.inverse_cols + p.eps); }
  template <Finish finish>
  __device__ Pack<Y, N> output(const Kept& input, float rstd, [[maybe_unused]] const Pack<W, N>& weight) const {
    float value[N];
    unpack<true>(input, value);
#pragma unroll
    for (int k = 0; k < N; ++k) value[k] *= rstd;
    if constexpr (finish == Finish::round_first) unpack(round_to<Y>(value), value);
    if constexpr (finish != Finish::no_weight) {
      float factor[N];
      unpack(weight, factor);
#pragma unroll
      for (int k = 0; k < N; ++k) value[k] *= p.weight_offset + factor[k];
    }
    return round_to<Y>(value);
  }
  __device__ void store_y(int64_t i, const Pack<Y, N>& pack) const { store<N, once>(y + i * N, pack); }
};

template <class T, int N>
__device__ float sum_of_squares(const Pack<T, N>& pack) {
  float value[N], sum = 0.0f;
  unpack(pack, value);
#pragma unroll
  for (int k = 0; k < N; ++k) sum += value[k] * value[k];
  return sum;
}

// --- Waiting for others
// ------------------------------------------------------------------------------------------------
__device__ inline void wait_for_previous_kernel() {
#if __CUDA_ARCH__ >= 900
  cudaGridDependencySynchronize();
#endif
}
__device__ inline void let_next_kernel_start() {
#if __CUDA_ARCH__ >= 900
  cudaTriggerProgrammaticLaunchCompletion();
#endif
}

__device__ inline float warp_sum(float value, int lanes = 32) {
#pragma unroll
  for (int mask = 16; mask > 0; mask /= 2)
    if (mask < lanes) value += __shfl_xor_sync(0xffffffffu, value, mask);
  return value;
}

// Every thread gets the sum over the `threads` of its row, the block's row_in_block-th: a power of two up to 32, or a
// multiple of 32 from 64 to kRowThreads. Of a few warps, the last step reads the sums four at a time, which takes less
// time than shuffles but more registers. Each use in a kernel has a number.
template <int kRowThreads, int kUse = 0>
__device__ float row_sum(float value, int threads = kRowThreads, int row_in_block = 0) {
  if constexpr (kRowThreads == 32) {
    return warp_sum(value, threads);
  } else {
    constexpr int kWarps = kRowThreads / 32;
    __shared__ alignas(16) float warp_sums[kRowThreads / 64][kWarps];
    const int tid = threadIdx.x, lane = tid % 32, warps = threads / 32;
    float* sums = warp_sums[row_in_block];
    value = warp_sum(value);
    if (lane == 0) sums[tid / 32] = value;
    if (kWarps <= 8 && warps < kWarps && tid >= warps && tid < kWarps) sums[tid] = 0.0f;
    __syncthreads();
    if constexpr (kWarps > 8) return warp_sum(lane < warps ? sums[lane] : 0.0f);
    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < kWarps; i += 4) {
      const float4 four = *reinterpret_cast<const float4*>(sums + i);
      sum += (four.x + four.y) + (four.z + four.w);
    }
    return sum;
  }
}

// --- Kernels
// ----------------------------------------------------------------------------------------------------------- visit(v,
// i) for each pack i of the first `packs` that is the calling thread's v-th, where `threads` take turns.
template <int kVectors, class Visit>
__device__ void for_each_pack(int packs, int threads, Visit visit) {
#pragma unroll
  for (int v = 0; v < kVectors; ++v)
    if (const int i = threadIdx.x + v * threads; i < packs) visit(v, i);
}

// Rows that fit into registers: each is read once. blockDim = (threads a row, rows a block); blockIdx.y is the head, as
// in every kernel.
template <int N, int kVectors, int kRowThreads, Traffic traffic, class X, class R, class W, class Y>
__global__ void __launch_bounds__(kRowThreads == 32 ? 256 : kRowThreads) row_in_registers(const Problem<X, R, W, Y> p) {
  using P = Problem<X, R, W, Y>;
  constexpr bool kWeightFirst = kVectors * sizeof(Pack<W, N>) <= 64;     // as far as registers go
  constexpr bool kOneRow = traffic == Traffic::few && kRowThreads > 32;  // a block has one row, and all threads
  const int threads = kOneRow ? kRowThreads : blockDim.x;
  Pack<W, N> weight[kVectors];
  if constexpr (kWeightFirst)
    for_each_pack<kVectors>(p.packs, threads, [&](int v, int i) {
      if (p.weight != nullptr) weight[v] = load<N>(p.weight + i * N);
    });
  wait_for_previous_kernel();

  const int row_in_block = kOneRow ? 0 : threadIdx.y;
  const unsigned number = kOneRow ? blockIdx.x : blockIdx.x * blockDim.y + threadIdx.y;
  const int packs = kOneRow || number < p.rows ? p.packs : 0;  // a thread without a row has nothing to do but to arrive
  const Row<N, traffic, P> row(p, number);
  Pack<X, N> x[kVectors] = {};
  decltype(row.load_residual(0)) residual[kVectors] = {};
  typename Row<N, traffic, P>::Kept input[kVectors];
  for_each_pack<kVectors>(packs, threads, [&](int v, int i) {
    x[v] = row.load_x(i);
    residual[v] = row.load_residual(i);
  });
  float sum = 0.0f;
#pragma unroll
  for (int v = 0; v < kVectors; ++v) {
    input[v] = row.add(x[v], residual[v]);
    sum += sum_of_squares(input[v]);
  }
  for_each_pack<kVectors>(packs, threads, [&](int v, int i) { row.store_sum(i, input[v]); });
  sum = row_sum<kRowThreads>(sum, threads, row_in_block);
  let_next_kernel_start();
  const float rstd = row.rstd(sum);
  with_finish(p, [&](auto finish) {
    constexpr int kBatch = kWeightFirst || kVectors < 2 ? kVectors : 2;
#pragma unroll
    for (int first = 0; first < kVectors; first += kBatch) {
      if constexpr (!kWeightFirst && finish.value != Finish::no_weight)
        for_each_pack<kBatch>(packs - first * threads, threads, [&](int v, int i) {
          weight[first + v] = load_constant<N>(p.weight + (i + first * threads) * N);
        });
#pragma unroll
      for (int v = first; v < first + kBatch; ++v) {
        const auto y = row.template output<finish.value>(input[v], rstd, weight[v]);
        if (const int i = threadIdx.x + v * threads; i < packs) row.store_y(i, y);
      }
    }
  });
}

// Rows of any length, read twice. A cluster of `parts` blocks shares a row.
template <int N, class X, class R, class W, class Y>
__global__ void __launch_bounds__(kMostThreads) row_in_parts(const Problem<X, R, W, Y> p, int parts) {
  using P = Problem<X, R, W, Y>;
#if __CUDA_ARCH__ >= 900
  // Shared memory of another block may be written once that block has begun, which this barrier says.
  if (parts > 1) cooperative_groups::this_cluster().barrier_arrive();
#endif
  wait_for_previous_kernel();
  const int part = blockIdx.x % parts;
  const Row<N, Traffic::streamed, P> row(p, blockIdx.x / parts);
  const int64_t packs = p.cols / N, begin = packs * part / parts + threadIdx.x, end = packs * (part + 1) / parts;

  float sum = 0.0f;
#pragma unroll 4
  for (int64_t i = begin; i < end; i += blockDim.x) {
    const auto input = row.add(load<N>(row.x + i * N), row.load_residual(i));
    row.store_sum(i, input);
    sum += sum_of_squares(input);
  }
  sum = row_sum<kMostThreads>(sum);
#if __CUDA_ARCH__ >= 900
  if (parts > 1) {
    __shared__ float part_sums[kClusterBlocks];
    const auto cluster = cooperative_groups::this_cluster();
    cluster.barrier_wait();
    if (int(threadIdx.x) < parts) *cluster.map_shared_rank(part_sums + part, threadIdx.x) = sum;
    cluster.sync();
    sum = 0.0f;
    for (int i = 0; i < parts; ++i) sum += part_sums[i];
  }
#endif
  let_next_kernel_start();
  const float rstd = row.rstd(sum);
  with_finish(p, [&](auto finish) {
#pragma unroll 4
    for (int64_t i = begin; i < end; i += blockDim.x) {
      const auto weight = row.template load_weight<finish.value>(i);
      row.store_y(i, row.template output<finish.value>(row.load_again(i), rstd, weight));
    }
  });
}

// Few long rows: `parts` blocks share one, and all blocks of the launch run at once. A block hands its sum to the
// others as one 64-bit word, the sum and the number of the launch, so that who reads the number has the sum; pairs of
// blocks read copies of their own, since many readers of one address take turns. The number of the launch is counted in
// the workspace, 128 a launch, by the kernel itself: in a graph, the arguments of each replay are the same.
template <int N, int kVectors, int kThreads, class X, class R, class W, class Y>
__global__ void __launch_bounds__(kThreads) row_across_blocks(const Problem<X, R, W, Y> p, int parts) {
  using P = Problem<X, R, W, Y>;
  using Atomic = cuda::atomic_ref<uint64_t, cuda::thread_scope_device>;
  constexpr auto relaxed = cuda::memory_order_relaxed;
  const int part = blockIdx.x % parts, copies = (parts + 1) / 2;
  const Row<N, Traffic::streamed, P> row(p, blockIdx.x / parts);
  const int64_t packs = p.cols / N, begin = packs * part / parts, end = packs * (part + 1) / parts;
  const int kept = int(min(end - begin, int64_t(kVectors) * kThreads));  // in registers; the rest is read twice
  Atomic launches(p.workspace[0]);
  uint64_t* const words = p.workspace + 16 + (blockIdx.x - part) * copies;

  Pack<W, N> weight[kVectors];
  for_each_pack<kVectors>(kept, kThreads, [&](int v, int i) {
    if (p.weight != nullptr) weight[v] = load<N>(p.weight + (begin + i) * N);
  });
  wait_for_previous_kernel();
  Pack<X, N> x[kVectors] = {};
  decltype(row.load_residual(0)) residual[kVectors] = {};
  typename Row<N, Traffic::streamed, P>::Kept input[kVectors];
  for_each_pack<kVectors>(kept, kThreads, [&](int v, int i) {
    x[v] = row.load_x(begin + i);
    residual[v] = row.load_residual(begin + i);
  });
  const uint64_t number = launches.load(relaxed) / kSplitBlocks + 1;
  float sum = 0.0f;
#pragma unroll
  for (int v = 0; v < kVectors; ++v) {
    input[v] = row.add(x[v], residual[v]);
    sum += sum_of_squares(input[v]);
  }
  for_each_pack<kVectors>(kept, kThreads, [&](int v, int i) { row.store_sum(begin + i, input[v]); });
  for (int64_t i = begin + kept + threadIdx.x; i < end; i += kThreads) {
    const auto more = row.add(load<N>(row.x + i * N), row.load_residual(i));
    row.store_sum(i, more);
    sum += sum_of_squares(more);
  }
  sum = row_sum<kThreads, 0>(sum);

  const int tid = threadIdx.x;
  if (tid < copies) Atomic(words[tid * parts + part]).store(number << 32 | __float_as_uint(sum), relaxed);
  uint64_t word = 0;
  if (tid < parts) {
    do word = Atomic(words[part / 2 * parts + tid]).load(relaxed);
    while (word >> 32 != (number & 0xffffffffu));
  }
  const float rstd = row.rstd(row_sum<kThreads, 1>(__uint_as_float(unsigned(word))));
  if (tid == 0) launches.fetch_add(blockIdx.x > 0 ? 1 : kSplitBlocks + 1 - gridDim.x, relaxed);
  let_next_kernel_start();
  with_finish(p, [&](auto finish) {
    for_each_pack<kVectors>(kept, kThreads, [&](int v, int i) {
      row.store_y(begin + i, row.template output<finish.value>(input[v], rstd, weight[v]));
    });
    for (int64_t i = begin + kept + threadIdx.x; i < end; i += kThreads) {
      const auto more = row.template load_weight<finish.value>(i);
      row.store_y(i, row.template output<finish.value>(row.load_again(i), rstd, more));
    }
  });
}

// --- Launches
// ----------------------------------------------------------------------------------------------------------
struct Device {
  int multiprocessors = 0;
  bool has_clusters = false;  // and dependent launches
};
inline cudaError_t query(Device& device) {
  int number = 0, major = 0;
  if (const cudaError_t error = cudaGetDevice(&number)) return error;
  if (const cudaError_t error = cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, number)) return error;
  device.has_clusters = major >= 9;
  return cudaDeviceGetAttribute(&device.multiprocessors, cudaDevAttrMultiProcessorCount, number);
}

struct Launch {
  int64_t blocks;
  unsigned heads;
  dim3 threads;
  int cluster = 1;
  bool all_at_once = false;
};
template <class... Parameters, class... Arguments>
cudaError_t launch(const Launch& launch, bool dependent, cudaStream_t stream, void (*kernel)(Parameters...),
                   const Arguments&... arguments) {
  cudaLaunchAttribute attributes[3];
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(unsigned(launch.blocks), launch.heads);
  config.blockDim = launch.threads;
  config.stream = stream;
  config.attrs = attributes;
  const auto next = [&](cudaLaunchAttributeID id) -> cudaLaunchAttributeValue& {
    attributes[config.numAttrs] = {};
    attributes[config.numAttrs].id = id;
    return attributes[config.numAttrs++].val;
  };
  if (dependent) next(cudaLaunchAttributeProgrammaticStreamSerialization).programmaticStreamSerializationAllowed = 1;
  if (launch.all_at_once) next(cudaLaunchAttributeCooperative).cooperative = 1;
  if (launch.cluster > 1) {
    auto& size = next(cudaLaunchAttributeClusterDimension).clusterDim;
    size.x = launch.cluster, size.y = 1, size.z = 1;
  }
  return cudaLaunchKernelEx(&config, kernel, Parameters(arguments)...);
}

// start() for as many rows of a head at a time as a grid may have, most often all of them: the problem is what is left.
template <class P, class Start>
cudaError_t in_grids(P& p, int64_t most_rows, Start start) {
  for (int64_t left = p.rows; left > 0; left -= most_rows) {
    p.rows = std::min(left, most_rows);
    if (const cudaError_t error = start()) return error;
    p.x += p.rows * p.x_layout.stride, p.y += p.rows * p.y_layout.stride;
    if constexpr (P::kAdds) {
      p.residual += p.rows * p.residual_layout.stride;
      p.residual_out += p.rows * p.residual_out_layout.stride;
    }
  }
  return cudaSuccess;
}

template <int N, int kVectors, int kRowThreads, Traffic traffic, class X, class R, class W, class Y>
cudaError_t launch_in_registers(Problem<X, R, W, Y> p, int block, bool dependent, cudaStream_t stream) {
  int threads = int((p.cols / N + kVectors - 1) / kVectors);
  if (kRowThreads > 32)
    threads = traffic == Traffic::few ? kRowThreads : std::max(64, (threads + 31) / 32 * 32);
  else
    while (threads & (threads - 1)) ++threads;  // the next power of two
  const bool one_row = traffic == Traffic::few && kRowThreads > 32;
  const int rows = one_row ? 1 : std::max(1, block / threads);
  p.packs = int(p.cols / N);
  return in_grids(p, INT32_MAX, [&] {
    const Launch shape{(p.rows + rows - 1) / rows, p.heads, dim3(threads, rows)};
    return launch(shape, dependent, stream, row_in_registers<N, kVectors, kRowThreads, traffic, X, R, W, Y>, p);
  });
}

// The first shape that takes rows of `packs`, of those in the table; the table is known at compile time, so that no
// kernel is compiled that it does not name.
template <const auto& shapes, int N, Traffic traffic, size_t i = 0, class P>
cudaError_t launch_shape(const P& p, bool dependent, cudaStream_t stream) {
  if constexpr (i == std::size(shapes)) {
    return cudaErrorInvalidValue;  // longer rows are not asked for
  } else {
    constexpr Shape shape = shapes[i];
    constexpr int most_threads = (shape.packs + shape.vectors - 1) / shape.vectors;
    constexpr int row_threads = shape.block > 256 || most_threads > 256 ? kMostThreads : most_threads > 32 ? 256 : 32;
    if (p.cols / N > shape.packs) return launch_shape<shapes, N, traffic, i + 1>(p, dependent, stream);
    return launch_in_registers<N, shape.vectors, row_threads, traffic>(p, shape.block, dependent, stream);
  }
}

template <class P>
bool is_contiguous(const P& p) {
  const auto is = [&](const Layout& layout) { return layout.stride == p.cols || p.rows == 1; };
  return p.heads == 1 && is(p.x_layout) && is(p.y_layout) &&
         (!P::kAdds || (is(p.residual_layout) && is(p.residual_out_layout)));
}

// N elements a pack: as many as 16 bytes hold, or fewer where the alignment asks for it.
template <int N, class X, class R, class W, class Y>
cudaError_t dispatch(Problem<X, R, W, Y> p, bool dependent, cudaStream_t stream) {
  const int64_t packs = p.cols / N, rows = p.rows * p.heads;
  Device device;
  if (const cudaError_t error = query(device)) return error;
  dependent = dependent && device.has_clusters;
  const int together = std::min(kSplitBlocks, device.multiprocessors);
  if (p.workspace != nullptr && p.cols * int64_t(sizeof(X)) >= kSplitBytes && 2 * rows <= together && p.heads == 1) {
    const int parts = int(together / rows);
    const auto start = [&](auto kernel, int threads) {
      return launch({rows * parts, 1, dim3(threads), 1, true}, dependent, stream, kernel, p, parts);
    };
    if (packs <= parts * 4 * 256) return start(row_across_blocks<N, 4, 256, X, R, W, Y>, 256);
    return start(row_across_blocks<N, 4, kMostThreads, X, R, W, Y>, kMostThreads);
  }
  if constexpr (N * sizeof(X) < 16) {
    if (packs <= kNarrow[std::size(kNarrow) - 1].packs)
      return launch_shape<kNarrow, N, Traffic::streamed>(p, dependent, stream);
  } else if (packs <= kMostPacks) {
    if (is_contiguous(p) && rows <= kCachedBytes / int64_t(p.cols * (sizeof(X) + sizeof(Y))))
      return launch_shape<kFew, N, Traffic::few>(p, dependent, stream);
    if constexpr (std::is_void_v<R>)
      return launch_shape<kForward, N, Traffic::streamed>(p, dependent, stream);
    else
      return launch_shape<kForwardAdd, N, Traffic::streamed>(p, dependent, stream);
  }
  const int parts = device.has_clusters && rows * kClusterBlocks <= 2 * device.multiprocessors ? kClusterBlocks : 1;
  return in_grids(p, INT32_MAX / parts, [&] {
    const Launch shape{p.rows * parts, p.heads, dim3(kMostThreads), parts};
    return launch(shape, dependent, stream, row_in_parts<N, X, R, W, Y>, p, parts);
  });
}

// --- Checks
// ------------------------------------------------------------------------------------------------------------ A tensor
// of rows, as far as checks are concerned.
struct Rows {
  const void* data;
  size_t element;
  Layout layout;
  bool output;
};

inline bool operator==(const Layout& a, const Layout& b) {
  return a.stride == b.stride && a.heads == b.heads && a.head_stride == b.head_stride;
}

// Whether no two rows overlap: one stride steps over a row, the other over all that the first one reaches.
inline bool are_apart(const Layout& layout, int64_t rows, int64_t cols) {
  int64_t step = std::abs(layout.head_stride), count = layout.heads, leap = std::abs(layout.stride);
  int64_t leaps = rows / layout.heads;
  if (count == 1 || (leaps > 1 && leap < step)) std::swap(step, leap), std::swap(count, leaps);
  return (count <= 1 || step >= cols) && (leaps <= 1 || leap >= (count - 1) * step + cols);
}

inline bool is_aligned(const Rows& tensor, int64_t rows, size_t elements) {
  const size_t bytes = std::min<size_t>(16, elements * tensor.element);
  const Layout& layout = tensor.layout;
  return reinterpret_cast<uintptr_t>(tensor.data) % bytes == 0 &&
         (rows <= layout.heads || layout.stride * int64_t(tensor.element) % int64_t(bytes) == 0) &&
         (layout.heads == 1 || layout.head_stride * int64_t(tensor.element) % int64_t(bytes) == 0);
}

// From rows to rows a head: heads that follow each other like rows are rows, and there are no more heads than rows.
template <class P>
bool split_heads(P& p) {
  Layout* const layouts[] = {&p.x_layout, &p.y_layout, &p.residual_layout, &p.residual_out_layout};
  const int count = P::kAdds ? 4 : 2;
  int64_t heads = p.x_layout.heads;
  p.rows /= heads;
  const auto all = [&](auto condition) { return std::all_of(layouts, layouts + count, condition); };
  if (p.rows == 1 || all([&](const Layout* l) { return l->stride == heads * l->head_stride; })) {
    for (Layout* layout : layouts)
      if (heads > 1) layout->stride = layout->head_stride;
    p.rows *= heads;
    heads = 1;
  }
  if (p.rows < heads) {
    for (Layout* layout : layouts) std::swap(layout->stride, layout->head_stride);
    std::swap(p.rows, heads);
  }
  p.heads = unsigned(std::min<int64_t>(heads, kMostHeads));
  return heads <= kMostHeads;
}

template <class X, class R, class W, class Y>
cudaError_t check_and_run(Problem<X, R, W, Y> p, const Options& options, cudaStream_t stream) {
  static_assert(is_element<X> && is_element<W> && is_element<Y> && (std::is_void_v<R> || is_element<R>),
                "elements are float, __half or __nv_bfloat16");
  constexpr bool kAdds = decltype(p)::kAdds;
  constexpr size_t kResidual = sizeof(std::conditional_t<kAdds, R, char>);
  const Rows x{p.x, sizeof(X), p.x_layout, false}, y{p.y, sizeof(Y), p.y_layout, true};
  const Rows in{p.residual, kResidual, p.residual_layout, false};
  const Rows out{p.residual_out, kResidual, p.residual_out_layout, true};

  const int64_t heads = p.x_layout.heads;
  const auto is_wrong = [&](const Rows& t) {
    return t.data == nullptr || reinterpret_cast<uintptr_t>(t.data) % t.element != 0 || t.layout.heads != heads ||
           (t.output && !are_apart(t.layout, p.rows, p.cols));
  };
  const auto collides = [](const Rows& a, const Rows& b, bool same_type) {
    return a.data == b.data && !(same_type && a.layout == b.layout);
  };
  if (p.rows < 0 || p.cols < 1 || heads < 1 || p.rows % heads != 0 || !(options.eps >= 0.0f) ||
      !std::isfinite(options.eps) || !std::isfinite(options.weight_offset))
    return cudaErrorInvalidValue;
  if (p.rows == 0) return cudaSuccess;
  if (p.cols > INT64_MAX / 16 / p.rows || is_wrong(x) || is_wrong(y) || collides(x, y, std::is_same_v<X, Y>))
    return cudaErrorInvalidValue;
  if (kAdds && (is_wrong(in) || is_wrong(out) || collides(x, out, std::is_same_v<X, R>) || collides(in, out, true) ||
                collides(in, y, std::is_same_v<R, Y>) || out.data == y.data))
    return cudaErrorInvalidValue;
  if (reinterpret_cast<uintptr_t>(p.weight) % sizeof(W) != 0 ||
      reinterpret_cast<uintptr_t>(options.workspace) % 16 != 0)
    return cudaErrorInvalidValue;

  p.inverse_cols = 1.0f / float(p.cols);
  p.eps = options.eps;
  p.weight_offset = options.weight_offset;
  p.round_first = options.rounding == Rounding::llama;
  p.workspace = static_cast<uint64_t*>(options.workspace);

  const auto fits = [&](int n) {
    const Rows weight{p.weight, sizeof(W), {0}, false};
    return p.cols % n == 0 && is_aligned(x, p.rows, n) && is_aligned(y, p.rows, n) && is_aligned(weight, 1, n) &&
           (!kAdds || (is_aligned(in, p.rows, n) && is_aligned(out, p.rows, n)));
  };
  constexpr int kWide = 16 / sizeof(X), kWord = 4 / sizeof(X);
  const int elements = fits(kWide) ? kWide : fits(kWord) ? kWord : 1;
  if (!split_heads(p)) return cudaErrorInvalidValue;
  if (elements == kWide) return dispatch<kWide>(p, options.dependent_launch, stream);
  if (elements == kWord) return dispatch<kWord>(p, options.dependent_launch, stream);
  return dispatch<1>(p, options.dependent_launch, stream);
}

}  // namespace detail

template <class X, class W, class Y>
cudaError_t forward(const X* x, Layout x_layout, const W* weight, Y* y, Layout y_layout, int64_t rows, int64_t cols,
                    const Options& options, cudaStream_t stream) {
  detail::Problem<X, void, W, Y> p = {x, weight, y};
  p.rows = rows, p.cols = cols;
  p.x_layout = x_layout, p.y_layout = y_layout;
  return detail::check_and_run(p, options, stream);
}

template <class X, class R, class W, class Y>
cudaError_t forward_add(const X* x, Layout x_layout, const R* residual, Layout residual_layout, R* residual_out,
                        Layout residual_out_layout, const W* weight, Y* y, Layout y_layout, int64_t rows, int64_t cols,
                        const Options& options, cudaStream_t stream) {
  detail::Problem<X, R, W, Y> p = {x, weight, y};
  p.rows = rows, p.cols = cols;
  p.residual = residual, p.residual_out = residual_out;
  p.x_layout = x_layout, p.residual_layout = residual_layout;
  p.residual_out_layout = residual_out_layout, p.y_layout = y_layout;
  return detail::check_and_run(p, options, stream);
}

// The same for contiguous rows.
template <class X, class W, class Y>
cudaError_t forward(const X* x, const W* weight, Y* y, int64_t rows, int64_t cols, const Options& options = {},
                    cudaStream_t stream = nullptr) {
  return forward(x, Layout{cols}, weight, y, Layout{cols}, rows, cols, options, stream);
}
template <class X, class R, class W, class Y>
cudaError_t forward_add(const X* x, const R* residual, R* residual_out, const W* weight, Y* y, int64_t rows,
                        int64_t cols, const Options& options = {}, cudaStream_t stream = nullptr) {
  const Layout layout{cols};
  return forward_add(x, layout, residual, layout, residual_out, layout, weight, y, layout, rows, cols, options, stream);
}

}  // namespace rms_norm
