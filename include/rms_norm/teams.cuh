// Many long rows, given a workspace: the blocks of the GPU form teams, and a team takes one row after the other. Each
// block has a part of every row of its team, and keeps the same part of the weight. While it waits for the sums of some
// rows, the copy engine brings the next ones into its shared memory, so that the memory of the GPU always has work.
//
// The warps of a block wait for each other only where they need each other's results. Each has its own part of the
// block's part, asks for the next one as soon as it has written a row, and adds up its own squares. One more warp adds
// up the sums of the warps and exchanges them with the other blocks.
#pragma once

#include "kernels.cuh"

namespace rms_norm::detail {

constexpr int kTeamWarps = 16, kTeamVectors = 4;  // without the warp that exchanges sums
constexpr int kWarpPacks = 32 * kTeamVectors;     // of 16 bytes: the most that a warp has of a row
constexpr int kLinePacks = 8;                     // in a line of 128 bytes
// The most that a block has of a row. Unaligned rows begin anywhere in a line, and need room for that.
template <Access access>
constexpr int team_packs = kTeamWarps*(kWarpPacks - (access == Access::unaligned ? kLinePacks : 0));
constexpr int kRowsHeld = 7;  // whose packs are being copied, or wait for the row's sum

// What a block has in shared memory: places for kRowsHeld rows, which take turns. The barriers of a place say, for the
// row that has it, that a warp's packs are there, that all warps have added theirs up, and that the sum of all is
// known.
struct TeamShared {
  uint4 packs[kRowsHeld][kTeamWarps][kWarpPacks];
  Barrier fetched[kRowsHeld][kTeamWarps], added[kRowsHeld], known[kRowsHeld];
  float warp_sums[kRowsHeld][kTeamWarps], rstds[kRowsHeld];
};

// One thread calls it. When all bytes are there, a phase of the barrier, for which one arrival counts, ends.
__device__ inline void start_copy(void* to, const void* from, int bytes, [[maybe_unused]] cuda::access_property cache,
                                  Barrier& arrived) {
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

// `packs`, rounded up to whole lines of 128 bytes.
__host__ __device__ constexpr int lines_of(int packs) { return (packs + kLinePacks - 1) / kLinePacks * kLinePacks; }

// The row of a team that is at some stage of its way through the block: its place, and the phase of the place's
// barriers that it waits for.
struct Turn {
  int k = 0;  // the team's k-th row
  int place = 0;
  bool odd_phase = false;
  __device__ void next() {
    ++k;
    if (++place == kRowsHeld) place = 0, odd_phase = !odd_phase;
  }
};

// The work of one warp: adds up what the others have added up of each of the team's rows, and exchanges it.
template <class Row, class P>
__device__ void exchange_sums(const P& p, TeamShared& shared, const TeamExchange& exchange, int rows, int teams) {
  const int lane = threadIdx.x;
  Turn sent, received;
  while (received.k < rows) {
    const bool receives = sent.k + 1 >= kRowsWaiting;
    TeamExchange::Words words;
    if (receives) words = exchange.look(received.k);
    if (sent.k < rows) {
      wait_for(shared.added[sent.place], sent.odd_phase);
      const float sum = warp_sum(lane < kTeamWarps ? shared.warp_sums[sent.place][lane] : 0.0f);
      if (lane == 0) exchange.send(sent.k, sum);
    }
    sent.next();
    if (!receives) continue;
    const float sum = exchange.receive(received.k, words);
    if (lane == 0) {
      const float rstd = shared.rstds[received.place] = Row(p, 0).rstd(sum);
      if (exchange.part == 0) p.store_rstd(exchange.team + received.k * teams, rstd);
    }
    static_cast<void>(shared.known[received.place].arrive());
    received.next();
  }
}

// gridDim.x = teams · parts, blockDim = (32, kTeamWarps + 1). The part-th block of a team has up to part_packs packs of
// N elements of a row, from pack part · part_packs on. Unaligned rows need a multiple of N teams: then all rows of a
// team are aligned alike, and the blocks can keep their weight. The head and tail elements of a row belong to its first
// block.
template <int N, Access access, class P>
__global__ void __launch_bounds__((kTeamWarps + 1) * 32) rows_in_teams(const P p, int parts, int part_packs) {
  static_assert(!P::kAdds, "no residual is added");
  using Share = detail::Share<N, kTeamVectors, access, typename P::Norm>;
  using Row = typename Share::Row;
  using Ends = HeadAndTail<N, access, typename P::Norm>;
  extern __shared__ __align__(128) uint4 shared_memory[];
  TeamShared& shared = *reinterpret_cast<TeamShared*>(shared_memory);
  const int lane = threadIdx.x, warp = threadIdx.y;
  const int team = blockIdx.x / parts, part = blockIdx.x - team * parts, teams = gridDim.x / parts;
  const auto rows_of = [&](int number) { return static_cast<int>((p.rows - number + teams - 1) / teams); };
  const int rows = rows_of(team);

  // Each warp prepares its own barriers: one after the other, all of them would take some microseconds.
  if (warp < kTeamWarps && lane < kRowsHeld) init(&shared.fetched[lane][warp], 1);
  if (warp == kTeamWarps && lane < kRowsHeld) init(shared.added + lane, kTeamWarps), init(shared.known + lane, 32);
  show_barriers_to_copies();
  __syncthreads();

  Ends ends(p, team, p.cols / N);  // of as many elements in all rows of a team
  const int warp_packs = lines_of((part_packs + kTeamWarps - 1) / kTeamWarps);  // no two warps share a line
  const int64_t first = int64_t{part} * part_packs + warp * warp_packs;
  const int64_t most_packs = min(warp_packs, part_packs - warp * warp_packs);  // of the exchanging warp: none
  const int packs = static_cast<int>(max(int64_t{0}, min(most_packs, ends.packs - first)));
  // The weight before the rows, or it would arrive behind all that is copied ahead of them.
  Share share(32);
  share.template load_weight<true>(p, ends.head + first * N, packs);
  ends.load_weight(p);
  if (p.dependent) wait_for_previous_kernel();

  // A row, and the packs of it that are this warp's. They are as far from a line's begin in shared memory as in global
  // memory, or the copy engine would have to divide each line between two.
  struct WarpRow : Turn {
    Row row;
    __device__ void next_of(int teams) { next(), row.advance_input(teams), row.advance_output(teams); }
    __device__ typename Row::Kept* packs_in(TeamShared& shared) const {
      const int shift = Ends::kAny ? reinterpret_cast<uintptr_t>(row.x) / 16 % kLinePacks : 0;
      return reinterpret_cast<typename Row::Kept*>(shared.packs[place][threadIdx.y] + shift);
    }
  };
  WarpRow fetched{{}, Row(p, team, ends.head + first * N)};
  WarpRow added = fetched, written = fetched;
  const auto fetch = [&] {
    if (lane == 0 && fetched.k < rows && packs > 0)
      start_copy(fetched.packs_in(shared), fetched.row.x, packs * 16, p.reads, shared.fetched[fetched.place][warp]);
    fetched.next_of(teams);
  };
  // The warps of the first part take turns with the head and tail elements, and load them that many rows ahead.
  const auto has_ends = [&](int k) { return Ends::kAny && part == 0 && k % kTeamWarps == warp; };
  const auto ends_of = [&](int k) { return Row(p, team + static_cast<unsigned>(k) * teams, ends.head); };
  const auto load_ends = [&](int k) { ends.load_input(ends_of(k), k < rows); };

  for (int i = 0; i < kRowsHeld - kRowsWaiting; ++i) fetch();
  if (has_ends(warp)) load_ends(warp);
  if (warp == kTeamWarps) {
    const TeamExchange exchange(p.workspace, team, parts, part);
    exchange_sums<Row>(p, shared, exchange, rows, teams);
    exchange.end(rows_of(0));
    return;
  }

  typename Row::Factors factors[kTeamVectors];
#pragma unroll
  for (int v = 0; v < kTeamVectors; ++v) factors[v] = written.row.factors(share.weight[v]);
  while (written.k < rows) {
    if (added.k < rows) {
      float sum = 0.0f;
      if (has_ends(added.k)) {
        sum = ends.add_input(ends_of(added.k), true);
        __syncwarp();  // makes it a branch: without one, the other warps would wait for what they load, too
      }
      if (packs > 0) wait_for(shared.fetched[added.place][warp], added.odd_phase);
      share.restore(added.packs_in(shared), packs);
      share.for_each(packs, [&](int v, int) { sum += sum_of_squares(share.input[v]); });
      sum = warp_sum(sum);
      if (lane == 0) {
        shared.warp_sums[added.place][warp] = sum;
        static_cast<void>(shared.added[added.place].arrive());
      }
    }
    added.next_of(teams);
    if (added.k > kRowsWaiting) {
      share.restore(written.packs_in(shared), packs);
      wait_for(shared.known[written.place], written.odd_phase);
      // One lane reads it: what that lane does next tells the exchanging warp that the place is free.
      const float rstd = __shfl_sync(0xffffffffu, lane == 0 ? shared.rstds[written.place] : 0.0f, 0);
      with_rounding(p, [&](auto rounded) {
#pragma unroll
        for (int v = 0; v < kTeamVectors; ++v)
          share.template store_pack<rounded.value>(written.row, packs, v, rstd, factors[v]);
        if (has_ends(written.k)) ends.template store_output<rounded.value>(ends_of(written.k), true, rstd);
      });
      if (has_ends(written.k)) load_ends(written.k + kTeamWarps);
      written.next_of(teams);
      __syncwarp();  // all lanes have read what the next copy overwrites
    }
    fetch();
  }
}

}  // namespace rms_norm::detail
