// Many long rows, given a workspace: the blocks of the GPU form teams, and a team takes one row after the other. Each
// block has a part of every row of its team, and keeps the same part of the weight. While it waits for the sums of some
// rows, the copy engine brings the next ones into its shared memory, so that the memory of the GPU always has work.
//
// The warps of a block wait for each other only where they need each other's results. Each has its own part of the
// block's part, asks for the next one as soon as it has written a row, and adds up its own squares. One more warp adds
// up the sums of the warps and exchanges them with the other blocks.
#pragma once

#include <cuda/barrier>

#include "kernels.cuh"

namespace rms_norm::detail {

constexpr int kTeamWarps = 16, kTeamVectors = 4;  // without the warp that exchanges sums
constexpr int kWarpPacks = 32 * kTeamVectors;     // of 16 bytes: the most that a warp has of a row
constexpr int kLinePacks = 8;                     // in a line of 128 bytes
// The most that a block has of a row. Unaligned rows begin anywhere in a line, and need room for that.
template <Access access>
constexpr int team_packs = kTeamWarps*(kWarpPacks - (access == Access::unaligned ? kLinePacks : 0));
constexpr int kRowsHeld = 7;  // whose packs are being copied, or wait for the row's sum
// The sums of so many of them are on their way. More of them hide how long that takes, and leave less to be copied
// ahead.
template <Access access>
constexpr int rows_waiting = access == Access::unaligned ? 3 : 4;

using Arrival = cuda::barrier<cuda::thread_scope_block>;
// What a block has in shared memory: places for kRowsHeld rows, which take turns. The barriers of a place say, for the
// row that has it, that a warp's packs are there, that all warps have added theirs up, and that the sum of all is
// known.
struct TeamShared {
  uint4 packs[kRowsHeld][kTeamWarps][kWarpPacks];
  Arrival fetched[kRowsHeld][kTeamWarps], added[kRowsHeld], known[kRowsHeld];
  float warp_sums[kRowsHeld][kTeamWarps], rstds[kRowsHeld];
};

// One thread calls it. When all bytes are there, a phase of the barrier, for which one arrival counts, ends.
__device__ inline void start_copy(void* to, const void* from, int bytes, [[maybe_unused]] cuda::access_property cache,
                                  Arrival& arrived) {
#ifdef __SIMT__
  cuda::device::memcpy_async_tx(static_cast<uint4*>(to), static_cast<const uint4*>(from),
                                cuda::aligned_size_t<16>(bytes), arrived);
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

// So many packs as fill lines.
__host__ __device__ constexpr int lines_of(int packs) { return (packs + kLinePacks - 1) / kLinePacks * kLinePacks; }

__device__ inline int place_of(int k) { return k % kRowsHeld; }  // of a team's k-th row
__device__ inline void wait_for_row(Arrival* arrivals, int k) {
  wait_for(arrivals[place_of(k)], k / kRowsHeld % 2 != 0);
}

// The work of one warp: adds up what the others have added up of each of the team's rows, and exchanges it.
template <int kWaiting, class Row, class P>
__device__ void exchange_sums(const P& p, TeamShared& shared, const TeamExchange<kWaiting>& exchange, int rows) {
  const int lane = threadIdx.x;
  for (int k = 0; k + 1 < rows + kWaiting; ++k) {
    const int next = k + 1 - kWaiting;  // the row whose sum is needed next
    const bool has_next = next >= 0 && next < rows;
    typename TeamExchange<kWaiting>::Words words;
    if (has_next) words = exchange.look(next);
    if (k < rows) {
      wait_for_row(shared.added, k);
      const float sum = warp_sum(lane < kTeamWarps ? shared.warp_sums[place_of(k)][lane] : 0.0f);
      if (lane == 0) exchange.send(k, sum);
    }
    if (!has_next) continue;
    const float sum = exchange.receive(next, words);
    __syncwarp();  // all lanes have read the sums whose places are free once this one is known
    if (lane == 0) {
      shared.rstds[place_of(next)] = Row(p, 0).rstd(sum);
      static_cast<void>(shared.known[place_of(next)].arrive());
    }
  }
}

// gridDim.x = teams · parts, blockDim = (32, kTeamWarps + 1). The part-th block of a team has up to part_packs packs of
// N elements of a row, from pack part · part_packs on. Unaligned rows need a multiple of N teams: then all rows of a
// team are aligned alike, and the blocks can keep their weight. The head and tail elements of a row belong to its first
// block.
template <int N, Access access, class X, class W, class Y>
__global__ void __launch_bounds__((kTeamWarps + 1) * 32)
    rows_in_teams(const Problem<X, void, W, Y> p, int parts, int part_packs) {
  using Share = detail::Share<N, kTeamVectors, access, Problem<X, void, W, Y>>;
  using Row = typename Share::Row;
  using Ends = HeadAndTail<N, access, Problem<X, void, W, Y>>;
  constexpr int kWaiting = rows_waiting<access>;
  extern __shared__ uint4 shared_memory[];
  TeamShared& shared = *reinterpret_cast<TeamShared*>(shared_memory);
  const int lane = threadIdx.x, warp = threadIdx.y;
  const int team = blockIdx.x / parts, part = blockIdx.x - team * parts, teams = gridDim.x / parts;
  const auto rows_of = [&](int number) { return static_cast<int>((p.rows - number + teams - 1) / teams); };
  const int rows = rows_of(team);

  if (warp == 0 && lane < kRowsHeld) {
    for (Arrival& arrival : shared.fetched[lane]) init(&arrival, 1);
    init(shared.added + lane, kTeamWarps);
    init(shared.known + lane, 1);
  }
  if (p.dependent) wait_for_previous_kernel();
  __syncthreads();
  if (warp == kTeamWarps) {
    const TeamExchange<kWaiting> exchange(p.workspace, team, parts, part);
    exchange_sums<kWaiting, Row>(p, shared, exchange, rows);
    exchange.end(rows_of(0));
    return;
  }

  Ends ends(p, team, p.cols / N);  // of as many elements in all rows of a team
  const int warp_packs = lines_of((part_packs + kTeamWarps - 1) / kTeamWarps);  // no two warps share a line
  const int64_t first = int64_t{part} * part_packs + warp * warp_packs;
  const int64_t most_packs = min(warp_packs, part_packs - warp * warp_packs);
  const int packs = static_cast<int>(max(int64_t{0}, min(most_packs, ends.packs - first)));
  const auto row_from = [&](int k, int64_t pack) {
    return Row(p, team + static_cast<unsigned>(k) * teams, ends.head + pack * N);
  };
  const auto row = [&](int k) { return row_from(k, first); };
  // As far from a line's begin as in memory, or the copy engine would have to divide each line between two.
  const auto packs_of = [&](int k) {
    const int shift = Ends::kAny ? reinterpret_cast<uintptr_t>(row(k).x) / 16 % kLinePacks : 0;
    return reinterpret_cast<typename Row::Kept*>(shared.packs[place_of(k)][warp] + shift);
  };
  const auto fetch = [&](int k) {
    if (lane == 0 && k < rows && packs > 0)
      start_copy(packs_of(k), row(k).x, packs * 16, p.reads, shared.fetched[place_of(k)][warp]);
  };
  // The warps of the first part take turns with the head and tail elements, and load them that many rows ahead.
  const auto has_ends = [&](int k) { return Ends::kAny && part == 0 && k % kTeamWarps == warp; };
  const auto load_ends = [&](int k) { ends.load_input(row_from(k, 0), part == 0 && k < rows); };

  for (int k = 0; k < kRowsHeld; ++k) fetch(k);
  ends.load_weight(p);
  load_ends(warp);
  Share share(32);
  share.load_weight(p, ends.head + first * N, packs);
  for (int k = 0; k < rows + kWaiting; ++k) {
    if (k < rows) {
      float sum = has_ends(k) ? ends.add_input(row_from(k, 0), true) : 0.0f;
      if (packs > 0) wait_for(shared.fetched[place_of(k)][warp], k / kRowsHeld % 2 != 0);
      share.for_each(packs, [&](int, int i) { sum += sum_of_squares(packs_of(k)[i]); });
      sum = warp_sum(sum);
      if (lane == 0) {
        shared.warp_sums[place_of(k)][warp] = sum;
        static_cast<void>(shared.added[place_of(k)].arrive());
      }
    }
    const int done = k - kWaiting;
    if (done < 0) continue;
    share.restore(packs_of(done), packs);
    wait_for_row(shared.known, done);
    const float rstd = shared.rstds[place_of(done)];
    with_rounding<access>(p, [&](auto rounded) {
      share.template store_output<rounded.value>(row(done), packs, rstd);
      if (has_ends(done)) ends.template store_output<rounded.value>(row_from(done, 0), true, rstd);
    });
    if (has_ends(done)) load_ends(done + kTeamWarps);
    __syncwarp();  // all lanes have read what the next copy overwrites
    fetch(done + kRowsHeld);
  }
}

}  // namespace rms_norm::detail
