// Experiment 5: 02_warp_multirow, and kernels whose lanes bring their sums together with atomic additions in place of
// shuffles. They are no stages: which lane adds first is not determined, so that a float32 sum has other bits in
// another order, and the checks of a stage reject that.
#include <stdexcept>

#include "assignment2/q4_gemm/02_warp_multirow/kernel.cuh"
#include "common/text.h"
#include "experiments.h"

namespace ladder::q4_gemm {
namespace {

using warp_multirow::kBlockSize;
using warp_multirow::kWarps;

constexpr int ROWS = 4;

// A lane's sums of four rows, as in 02.
__device__ void add_up(const block_q4_0* __restrict__ w, const block_q8_1* __restrict__ column, int64_t first,
                       int64_t m, int64_t blocks, float (&sums)[ROWS]) {
  for (int64_t b = threadIdx.x % 32; b < blocks; b += 32) {
    const auto* words = reinterpret_cast<const int*>(column[b].qs);
    int numbers[8];
#pragma unroll
    for (int j = 0; j < 8; ++j) numbers[j] = words[j];
    const float d = warp_multirow::scale_of(column[b].d) / 16.0f;
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
      if (first + r >= m) break;
      const block_q4_0& weights = w[(first + r) * blocks + b];
      sums[r] +=
          warp_multirow::scale_of(weights.d) * d * static_cast<float>(warp_multirow::dot_of_16(weights, numbers));
    }
  }
}

// All lanes of a warp add to one number per row, in shared memory.
__global__ void __launch_bounds__(kBlockSize)
    gemm_q4_0_q8_1_shared_atomics_kernel(const block_q4_0* __restrict__ w, const block_q8_1* __restrict__ x,
                                         float* __restrict__ y, int64_t m, int64_t k) {
  __shared__ float totals[kWarps][ROWS];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int64_t first = (int64_t{blockIdx.y} * kWarps + warp) * ROWS, blocks = k / kBlock;
  if (lane < ROWS) totals[warp][lane] = 0.0f;
  __syncwarp();
  float sums[ROWS] = {};
  add_up(w, x + blockIdx.x * blocks, first, m, blocks, sums);
#pragma unroll
  for (int r = 0; r < ROWS; ++r) atomicAdd(&totals[warp][r], sums[r]);
  __syncwarp();
  if (lane < ROWS && first + lane < m) y[blockIdx.x * m + first + lane] = totals[warp][lane];
}

// They add to the output itself, which L2 does. The output must be zero before.
__global__ void __launch_bounds__(kBlockSize)
    gemm_q4_0_q8_1_global_atomics_kernel(const block_q4_0* __restrict__ w, const block_q8_1* __restrict__ x,
                                         float* __restrict__ y, int64_t m, int64_t k) {
  const int64_t first = (int64_t{blockIdx.y} * kWarps + threadIdx.x / 32) * ROWS, blocks = k / kBlock;
  float sums[ROWS] = {};
  add_up(w, x + blockIdx.x * blocks, first, m, blocks, sums);
#pragma unroll
  for (int r = 0; r < ROWS; ++r)
    if (first + r < m) atomicAdd(&y[blockIdx.x * m + first + r], sums[r]);
}

dim3 grid_of(int64_t m, int64_t n) {
  return dim3(static_cast<unsigned>(n), static_cast<unsigned>(blocks_for(m, ROWS * kWarps)));
}

void launch_shared_atomics(const block_q4_0* w, const block_q8_1* x, float* y, float*, int64_t m, int64_t n, int64_t k,
                           cudaStream_t stream) {
  gemm_q4_0_q8_1_shared_atomics_kernel<<<grid_of(m, n), kBlockSize, 0, stream>>>(w, x, y, m, k);
}

void launch_global_atomics(const block_q4_0* w, const block_q8_1* x, float* y, float*, int64_t m, int64_t n, int64_t k,
                           cudaStream_t stream) {
  if (cudaMemsetAsync(y, 0, static_cast<size_t>(m * n) * sizeof(float), stream) != cudaSuccess) return;
  gemm_q4_0_q8_1_global_atomics_kernel<<<grid_of(m, n), kBlockSize, 0, stream>>>(w, x, y, m, k);
}

struct Sum {
  const char* name;
  Q4GemmBlocks::Launch launch;
};

}  // namespace

Table atomics(const Report& report) {
  const bool timed = !report.device.cpu && report.options.timing;
  Table table;
  table.title = "Experiment 5: the sum of a warp's lanes by shuffles and by atomic additions";
  table.columns = {
      {"m", "m"}, {"n", "n"}, {"k", "k"}, {"variant", "variant"}, {"wrong", "wrong"}, {"bits", "bits of two runs"}};
  if (timed) add_time_columns(table);
  table.left = 6;
  const int64_t m = report.device.cpu ? 512 : 4096;
  for (const Shape& shape : {Shape{{m, 4, 14336}}, Shape{{m, 1, 14336}}, Shape{{m, 1, 4096}}, Shape{{m, 1, 1024}}}) {
    const Case given(Q4GemmBlocks::get(), shape, report.options.seed);
    for (const auto& [name, launch] :
         {Sum{"shuffles", warp_multirow::launch}, Sum{"atomics in shared memory", launch_shared_atomics},
          Sum{"atomics in L2", launch_global_atomics}}) {
      const AnyStage stage(Stage<Q4GemmBlocks>{name, "", launch});
      Problem problem(given, stage.op->plain());
      const std::string failure = problem.check(stage, thread_orders(report.device.cpu)).failure;
      const bool differ = failure.find("not deterministic: right") != std::string::npos;
      if (!failure.empty() && !differ) throw std::runtime_error(text("%s: %s", name, failure.c_str()));
      Cells& row = table.rows.emplace_back();
      for (int i = 0; i < 3; ++i) row.push_back(std::to_string(shape[i]));
      append(row,
             {{name, text("0 of %lld", static_cast<long long>(shape[0] * shape[1])), differ ? "differ" : "equal"}});
      if (timed) append(row, {time_cells_of(stage, problem, report)});
    }
  }
  return table;
}

}  // namespace ladder::q4_gemm
