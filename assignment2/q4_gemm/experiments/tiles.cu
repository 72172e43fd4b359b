// Experiment 4: the tiles of 05_tile2d, those that the document names and others, and what each reads.
#include <stdexcept>

#include "assignment2/q4_gemm/05_tile2d/kernel.cuh"
#include "common/text.h"
#include "experiments.h"

namespace ladder::q4_gemm {
namespace {

struct Configuration {
  int tile_m, tile_n, tile_k, rows;
  Q4GemmBlocks::Launch launch;
};

template <int TILE_M, int TILE_N, int TILE_K, int ROWS>
Configuration configuration() {
  return {TILE_M, TILE_N, TILE_K, ROWS, tile2d::launch_tile<TILE_M, TILE_N, TILE_K, ROWS>};
}

const Configuration configurations[] = {
    configuration<64, 1, 128, 4>(),  configuration<64, 2, 128, 4>(), configuration<64, 4, 128, 4>(),
    configuration<64, 8, 128, 4>(),  configuration<64, 4, 256, 4>(), configuration<64, 8, 256, 4>(),
    configuration<128, 4, 128, 4>(), configuration<64, 4, 128, 8>(), configuration<64, 4, 256, 8>(),
    configuration<128, 4, 256, 8>(), configuration<32, 4, 256, 4>(), configuration<16, 4, 256, 4>(),
};

// Of all thread blocks together: weights once for each tile of columns, activations once for each tile of rows.
double megabytes(double rows, double blocks, double size, int64_t others, int tile) {
  return rows * blocks * size * static_cast<double>(blocks_for(others, tile)) / 1e6;
}

}  // namespace

Table tiles(const Report& report) {
  const bool timed = !report.device.cpu && report.options.timing;
  const Shape& shape = report.options.shape;
  Table table;
  table.title = text("Experiment 4: tiles of 05_tile2d on %s; MB: what all blocks ask for, not what DRAM delivers",
                     shape_text(Q4GemmBlocks::get(), shape).c_str());
  table.columns = {{"tile_m", "TILE_M"},
                   {"tile_n", "TILE_N"},
                   {"tile_k", "TILE_K"},
                   {"rows_per_warp", "rows/warp"},
                   {"threads", "threads"},
                   {"blocks", "blocks"},
                   {"barriers", "barriers"},
                   {"weights_megabytes", "weights MB"},
                   {"activations_megabytes", "x MB"},
                   {"m", nullptr},
                   {"n", nullptr},
                   {"k", nullptr}};
  if (timed) add_time_columns(table);
  if (Q4GemmBlocks::refuses(shape)) return table;
  const Case given(Q4GemmBlocks::get(), shape, report.options.seed);
  for (const Configuration& c : configurations) {
    const AnyStage stage(Stage<Q4GemmBlocks>{"05_tile2d", "", c.launch});
    Problem problem(given, report.options.variant);
    const Outcome outcome = problem.check(stage, thread_orders(report.device.cpu));
    const std::string name = text("the tile %d x %d x %d, %d rows", c.tile_m, c.tile_n, c.tile_k, c.rows);
    if (!outcome.failure.empty()) throw std::runtime_error(name + ": " + outcome.failure);
    const double blocks = static_cast<double>(shape[2] / kBlock);
    const int64_t grid = blocks_for(shape[0], c.tile_m) * blocks_for(shape[1], c.tile_n);
    Cells& row = table.rows.emplace_back();
    for (const int64_t number : {int64_t{c.tile_m}, int64_t{c.tile_n}, int64_t{c.tile_k}, int64_t{c.rows},
                                 int64_t{c.tile_m} / c.rows * 32, grid, 2 * blocks_for(shape[2], c.tile_k)})
      row.push_back(std::to_string(number));
    row.push_back(text("%.3f", megabytes(static_cast<double>(shape[0]), blocks, 18, shape[1], c.tile_n)));
    row.push_back(text("%.3f", megabytes(static_cast<double>(shape[1]), blocks, 36, shape[0], c.tile_m)));
    for (int i = 0; i < 3; ++i) row.push_back(std::to_string(shape[i]));
    if (timed) append(row, {time_cells_of(stage, problem, report)});
  }
  return table;
}

}  // namespace ladder::q4_gemm
