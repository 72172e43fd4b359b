// Experiment 5: the document's "hardware-specific tuning", of the number of threads of a block, for the kernel of 03.
#include <algorithm>
#include <array>

#include "arena.h"
#include "assignment1/rms_norm/serving/03_vectorized/kernel.cuh"
#include "common/text.h"
#include "experiments.h"

namespace ladder::serving {
namespace {

template <int kThreads>
void launch(const ServingCall& call, cudaStream_t stream) {
  vectorized::rms_norm_kernel<__half><<<static_cast<unsigned>(call.num_tokens), kThreads, 0, stream>>>(
      static_cast<__half*>(call.out), static_cast<const __half*>(call.input), call.input_stride,
      static_cast<const __half*>(call.weight), call.epsilon, call.hidden_size);
}

struct Block {
  const char* column;
  const char* threads;
  Stage<RmsNormServing> stage;
};
const std::array<Block, 6> blocks = {{
    {"threads_32_microseconds", "32", {"32_threads", "", launch<32>}},
    {"threads_64_microseconds", "64", {"64_threads", "", launch<64>}},
    {"threads_128_microseconds", "128", {"128_threads", "", launch<128>}},
    {"threads_256_microseconds", "256", {"256_threads", "", launch<256>}},
    {"threads_512_microseconds", "512", {"512_threads", "", launch<512>}},
    {"threads_1024_microseconds", "1024", {"1024_threads", "", launch<1024>}},
}};

}  // namespace

Table block_sizes(const Report& report) {
  const int iterations = std::min(report.options.iterations, 9);
  Table table;
  table.title = text(
      "Experiment 5: the kernel of 03_vectorized with blocks of 32 to 1024 threads, half, cold cache,\n"
      "microseconds, median of %d samples",
      iterations);
  table.columns = {{"num_tokens", "tokens"}, {"hidden_size", "hidden"}};
  for (const Block& block : blocks) table.columns.push_back({block.column, block.threads});
  table.columns.push_back({"fastest", "fastest"});
  table.columns.push_back({"of_the_ladder", "of the ladder"});
  const Arena arena(report.device);
  for (const int64_t hidden_size : {768, 2048, 8192})
    for (const Block& block : blocks) require_right(block.stage, hidden_size, Dtype::half, report);
  for (const int64_t num_tokens : {16, 128, 1024, 8192})
    for (const int64_t hidden_size : {768, 2048, 8192}) {
      Cells& row = table.rows.emplace_back(Cells{std::to_string(num_tokens), std::to_string(hidden_size)});
      double least = 0.0;
      std::string fastest;
      for (const Block& block : blocks) {
        const double took =
            arena.time(block.stage.launch, false, num_tokens, hidden_size, Dtype::half, iterations).microseconds;
        if (fastest.empty() || took < least) least = took, fastest = block.threads;
        row.push_back(text("%.2f", took));
      }
      append(row, {{fastest, std::to_string(block_size(num_tokens, hidden_size))}});
    }
  return table;
}

}  // namespace ladder::serving
