// Many long rows, given a workspace: the blocks of the GPU form teams, and a team takes one row after the other. Each
// block has a part of every row of its team, and keeps the same part of the weight. While it waits for the sums of some
// rows, the copy engine brings the next ones into its shared memory, so that the memory of the GPU always has work.
#pragma once

#include <cuda/barrier>

#include "kernels.cuh"

namespace rms_norm::detail {

constexpr int kTeamThreads = 512, kTeamVectors = 4;
constexpr int kTeamPacks = kTeamThreads * kTeamVectors;  // of 16 bytes: the most that a block has of a row
constexpr int kRowsAhead = 4, kRowsWaiting = 3;  // rows that are being copied, and those whose sums are on their way
constexpr int kRowsHeld = kRowsAhead + kRowsWaiting;

using Arrival = cuda::barrier<cuda::thread_scope_block>;
constexpr int kTeamSharedBytes = kRowsHeld * static_cast<int>(kTeamPacks * 16 + sizeof(Arrival));

// One thread calls it. When all bytes are there, a phase of the barrier, for which one arrival counts, ends.
__device__ inline void start_copy(uint4* to, const void* from, int bytes, [[maybe_unused]] cuda::access_property cache,
                                  Arrival& arrived) {
#ifdef __SIMT__
  cuda::device::memcpy_async_tx(to, static_cast<const uint4*>(from), cuda::aligned_size_t<16>(bytes), arrived);
#elif __CUDA_ARCH__ >= 900
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1], %2, [%3], %4;"
      :
      : "r"(shared_address(to)), "l"(__cvta_generic_to_global(from)), "r"(bytes),
        "r"(shared_address(cuda::device::barrier_native_handle(arrived))), "l"(static_cast<uint64_t>(cache))
      : "memory");
#endif
#if defined(__SIMT__) || __CUDA_ARCH__ >= 900
  static_cast<void>(cuda::device::barrier_arrive_tx(arrived, 1, bytes));
#endif
}

// Waits for a phase of the barrier to end. Not by its own function, which sleeps between two looks.
__device__ inline void wait_for(Arrival& arrived, bool odd_phase) {
#ifdef __SIMT__
  arrived.wait_parity(odd_phase);
#elif __CUDA_ARCH__ >= 900
  unsigned ended = 0;
  while (!ended)
    asm volatile("{.reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p;}"
                 : "=r"(ended)
                 : "r"(shared_address(cuda::device::barrier_native_handle(arrived))),
                   "r"(static_cast<unsigned>(odd_phase))
                 : "memory");
#endif
}

// gridDim.x = teams · parts. The part-th block of a team has up to part_packs packs of N elements of a row, from pack
// part · part_packs on.
template <int N, class X, class W, class Y>
__global__ void __launch_bounds__(kTeamThreads)
    rows_in_teams(const Problem<X, void, W, Y> p, int parts, int part_packs) {
  using Share = detail::Share<N, kTeamVectors, Access::strided, Problem<X, void, W, Y>>;
  using Row = typename Share::Row;
  extern __shared__ uint4 shared[];  // the parts of kRowsHeld rows, and the barriers that say when they are there
  __shared__ float warp_sums[2][kTeamThreads / 32], rstds[2];
  auto* const arrivals = reinterpret_cast<Arrival*>(shared + kRowsHeld * kTeamPacks);
  const int tid = threadIdx.x, warp = tid / 32, lane = tid % 32;
  const int team = blockIdx.x / parts, part = blockIdx.x - team * parts, teams = gridDim.x / parts;
  const int64_t first = int64_t{part} * part_packs;
  const int packs = static_cast<int>(max(int64_t{0}, min(int64_t{part_packs}, p.cols / N - first)));
  const auto rows_of = [&](int number) { return static_cast<int>((p.rows - number + teams - 1) / teams); };
  const int rows = rows_of(team);
  const auto row = [&](int k) { return Row(p, team + static_cast<unsigned>(k) * teams, first * N); };
  const auto held = [&](int k) { return shared + k % kRowsHeld * kTeamPacks; };
  const auto packs_of = [&](int k) { return reinterpret_cast<const typename Row::Kept*>(held(k)); };
  const auto fetch = [&](int k) {
    if (tid == 0 && k < rows && packs > 0) start_copy(held(k), row(k).x, packs * 16, p.reads, arrivals[k % kRowsHeld]);
  };

  Share share(kTeamThreads);
  share.load_weight(p, first * N, packs);
  if (tid == 0)
    for (int i = 0; i < kRowsHeld; ++i) init(arrivals + i, 1);
  if (p.dependent) wait_for_previous_kernel();
  __syncthreads();
  const TeamExchange<kRowsWaiting> exchange(p.workspace, team, parts, part);
  for (int k = 0; k < kRowsAhead; ++k) fetch(k);
  for (int k = 0; k < rows + kRowsWaiting; ++k) {
    const int done = k - kRowsWaiting, next = done + 1;  // rows: the one that is written now, and the one after it
    const bool has_next = next >= 0 && next < rows;
    typename TeamExchange<kRowsWaiting>::Words words;
    if (warp == 0 && has_next) words = exchange.look(next);
    if (k < rows) {
      if (packs > 0) wait_for(arrivals[k % kRowsHeld], k / kRowsHeld % 2 != 0);
      float sum = 0.0f;
      share.for_each(packs, [&](int, int i) { sum += sum_of_squares(packs_of(k)[i]); });
      sum = warp_sum(sum);
      if (lane == 0) warp_sums[k % 2][warp] = sum;
    }
    __syncthreads();
    // Into the place of row k - 1 - kRowsWaiting, of which all threads have written the result before this barrier.
    if (k > 0) fetch(k - 1 + kRowsAhead);
    if (warp == 0 && k < rows) {
      const float sum = warp_sum(lane < kTeamThreads / 32 ? warp_sums[k % 2][lane] : 0.0f);
      if (lane == 0) exchange.send(k, sum);
    }
    if (warp == 0 && has_next) {
      const float sum = exchange.receive(next, words);
      if (lane == 0) rstds[(k + 1) % 2] = row(next).rstd(sum);  // after the next barrier it is read
    }
    if (done < 0) continue;
    share.restore(packs_of(done), packs);
    with_rounding<Access::strided>(
        p, [&](auto rounded) { share.template store_output<rounded.value>(row(done), packs, rstds[k % 2]); });
  }
  exchange.end(rows_of(0));
}

}  // namespace rms_norm::detail
