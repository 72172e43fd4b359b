// Batch-invariant rows at any address: the order of summation of the kernels that load 16 bytes at a time, for tensors
// that do not begin on 16-byte boundaries. One block takes a row, element by element, also where a cluster would.
#pragma once

#include "kernels.cuh"

namespace rms_norm::detail {

// How a kernel adds up a row. Each of `parts` blocks has part_packs packs of it, and goes through these in steps of
// `vectors` packs for each of its `threads`, which are a power of two up to 32, or a multiple of 32. In_pairs: the sums
// of up to 8 warps are added as sum_of_shared() does, or else as warp_sum() does.
struct Order {
  int vectors, threads, parts;
  int64_t part_packs;
  bool in_pairs;
};
constexpr int kMostVectors = 8;

template <int N, class T>
__device__ Pack<T, N> load_elements(const T* address) {
  Pack<T, N> pack = {};
#pragma unroll
  for (int i = 0; i < N; ++i) {
    const unsigned bits = load<1>(address + i).word[0];
    if constexpr (sizeof(T) == 4)
      pack.word[i] = bits;
    else
      pack.word[i / 2] |= (bits & 0xffffu) << i % 2 * 16;
  }
  return pack;
}
template <class T, int N>
__device__ void store_elements(T* address, const Pack<T, N>& pack) {
#pragma unroll
  for (int i = 0; i < N; ++i) {
    const unsigned word = pack.word[i * pack.kWords / N];
    store<false>(address + i, Pack<T, 1>{{sizeof(T) == 4 || i % 2 == 0 ? word : word >> 16}});
  }
}

// What row_sum() returns in a block of order.threads threads.
__device__ inline float sum_in_order(float value, const Order& order) {
  __shared__ alignas(16) float warp_sums[32];
  const unsigned lane = threadIdx.x % 32, warps = order.threads / 32;
  value = warp_sum(value, min(order.threads, 32));
  if (order.threads <= 32) return value;
  __syncthreads();  // the sums of the part before have been read
  if (lane == 0) warp_sums[threadIdx.x / 32] = value;
  if (order.in_pairs && threadIdx.x >= warps && threadIdx.x < 8) warp_sums[threadIdx.x] = 0.0f;
  __syncthreads();
  if (order.in_pairs) return sum_of_shared<8>(warp_sums);
  return warp_sum(lane < warps ? warp_sums[lane] : 0.0f);
}

// blockDim.x is order.threads, or 32 if these are fewer; blockIdx.y is the head.
template <int N, class P>
__global__ void __launch_bounds__(kMostThreads) row_in_order(const P p, const Order order) {
  using Row = detail::Row<N, Access::strided, typename P::Norm>;
  using Weights = Pack<std::remove_const_t<std::remove_pointer_t<decltype(p.weight)>>, N>;
  using Kept = typename Row::Kept;
  if (p.dependent) wait_for_previous_kernel();
  if (p.dependent) let_next_kernel_start();
  const Row row(p, blockIdx.x);
  const int64_t packs = p.cols / N;
  const int tid = threadIdx.x;
  // visit(v, i) for the packs of a step that are the thread's.
  const auto in_step = [&](int64_t first, int64_t end, auto visit) {
    for (int v = 0; v < order.vectors && tid < order.threads; ++v)
      if (const int64_t i = first + tid + v * order.threads; i < end) visit(v, i);
  };
  const auto in_steps = [&](auto visit, auto after_step, auto after_part) {
    for (int64_t part = 0; part < order.parts; ++part) {
      const int64_t end = min(packs, (part + 1) * order.part_packs);
      for (int64_t first = part * order.part_packs; first < end; first += order.vectors * order.threads) {
        in_step(first, end, visit);
        after_step();
      }
      after_part();
    }
  };
  float sum = 0.0f, of_part = 0.0f, of_step[kMostVectors] = {};
  in_steps(
      [&](int v, int64_t i) {
        const auto x = load_elements<N>(row.x + i * N);
        Kept kept;
        if constexpr (P::kAdds) {
          kept = row.add(x, load_elements<N>(row.residual + i * N));
          store_elements(row.residual_out + i * N, kept);
        } else {
          kept = x;
        }
        of_step[v] = sum_of_squares(kept);
      },
      [&] {
        of_part += sum_in_pairs(of_step);
        for (float& of_vector : of_step) of_vector = 0.0f;
      },
      [&] {
        sum += sum_in_order(of_part, order);
        of_part = 0.0f;
      });
  const float rstd = row.rstd(sum);
  if (tid == 0) p.store_rstd(blockIdx.x, rstd);
  const auto kept_at = [&](int64_t i) -> Kept {  // CUDA 12.0 takes no such branch in a lambda that is a template
    if constexpr (P::kAdds)
      return load_elements<N>(row.residual_out + i * N);
    else
      return load_elements<N>(row.x + i * N);
  };
  with_rounding(p, [&](auto rounded) {
    in_steps(
        [&](int, int64_t i) {
          const Weights weights = p.weight ? load_elements<N>(p.weight + i * N) : Weights{};
          store_elements(row.y + i * N, row.template output<rounded.value>(kept_at(i), rstd, weights));
        },
        [] {}, [] {});
  });
}

}  // namespace rms_norm::detail
