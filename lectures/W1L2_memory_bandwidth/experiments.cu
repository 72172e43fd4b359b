#include "experiments.h"

#include <algorithm>
#include <cmath>

#include "check.h"
#include "figures.h"

namespace memory_bandwidth {
namespace {

using ladder::text;
using ladder::Timing;
const char* moves_text(Moves moves) { return moves == Moves::copy ? "copy" : moves == Moves::read ? "read" : "write"; }

// What is known of a variant without running it. The runtime's own copy keeps its access pattern to itself.
std::vector<std::string> access_cells(const Variant& variant) {
  if (variant.threads == 0) return {variant.name, variant.what, moves_text(variant.moves), "", "", "", ""};
  const int sectors = ladder::sectors_per_request({1, variant.access_bytes, true},
                                                  variant.lane_stride / static_cast<int64_t>(sizeof(float)));
  return {variant.name,
          variant.what,
          moves_text(variant.moves),
          std::to_string(variant.threads),
          std::to_string(variant.access_bytes),
          std::to_string(sectors),
          text("%g", 32.0 * variant.access_bytes / sectors)};
}

// The ladder's columns, the same in every CSV; on the screen of a GPU times take the place of the access pattern.
std::vector<Column> ladder_columns(bool timed) {
  const auto on_cpu = [=](const char* heading) { return timed ? nullptr : heading; };
  const auto on_gpu = [=](const char* heading) { return timed ? heading : nullptr; };
  return {{"variant", "variant"},
          {"what", on_cpu("what")},
          {"moves", "moves"},
          {"threads_per_block", "threads"},
          {"bytes_per_lane", on_cpu("bytes/lane")},
          {"sectors_per_request", "sectors/request"},
          {"used_bytes_per_sector", on_cpu("used/sector")},
          {"buffer_bytes", nullptr},
          {"moved_bytes", nullptr},
          {"microseconds", on_gpu("us")},
          {"spread_percent", on_gpu("spread"), "%"},
          {"gb_per_s", on_gpu("GB/s")},
          {"percent_of_datasheet", on_gpu("of datasheet"), "%"},
          {"percent_of_ceiling", on_gpu("of ceiling"), "%"},
          {"is_ceiling", nullptr},
          {"iterations", nullptr}};
}

// The larger of 1 and 2 GiB, each for `from` and for `to`, that fits into the GPU's free memory.
int64_t affordable_half() {
  size_t free_bytes = 0, total_bytes = 0;
  CUDA_CHECK(cudaMemGetInfo(&free_bytes, &total_bytes));
  for (const int64_t half : {2 * kGiB, kGiB})
    if (2 * half + 256 * kMiB <= static_cast<int64_t>(free_bytes)) return half;
  throw std::runtime_error(
      text("the experiments need %.1f GB of GPU memory, %.1f GB are free; end what else uses the GPU",
           static_cast<double>(2 * kGiB + 256 * kMiB) / 1e9, static_cast<double>(free_bytes) / 1e9));
}

}  // namespace

Table modelled_ladder(const std::vector<Variant>& variants) {
  Table table{"copy_ladder",
              "Experiment 1, as far as it goes without a GPU: 32-byte sectors that one request of a warp touches",
              ladder_columns(false),
              {},
              ""};
  for (const Variant& variant : variants) {
    table.rows.push_back(access_cells(variant));
    table.rows.back().resize(table.columns.size());
  }
  table.left = 2;
  return table;
}

Experiments::Experiments(const std::vector<Variant>& variants, const ladder::Device& device, int iterations)
    : variants_(variants),
      device_(device),
      iterations_(iterations),
      half_bytes_(affordable_half()),
      from_(half_bytes_ / static_cast<int64_t>(sizeof(float))),
      to_(from_.size()) {
  fill_random(from_.data(), from_.size(), 1);
}

int64_t Experiments::cold_pairs(int64_t bytes) const {
  const double pool = std::max(600e6, 8.0 * device_.l2_bytes);
  return std::max<int64_t>(2, static_cast<int64_t>(std::ceil(pool / (2.0 * static_cast<double>(bytes)))));
}

void Experiments::require_right(const Variant& variant, int64_t count, int64_t pairs) {
  std::string failure;
  for (int64_t i = 0; i < pairs && failure.empty(); ++i)
    failure = verify(variant, from_.data() + i * count, to_.data() + i * count, count);
  if (!from_.overrun().empty() || !to_.overrun().empty()) failure += "; wrote outside its buffers";
  if (!failure.empty()) throw std::runtime_error(text("%s is wrong after timing: %s", variant.name, failure.c_str()));
}

// Each launch of a round has a pair of its own.
Timing Experiments::time(const Variant& variant, int64_t bytes, int64_t pairs) {
  const int64_t count = bytes / static_cast<int64_t>(sizeof(float));
  prepare(variant, to_.data(), pairs * count);
  const Timing timing = ladder::measure(
      [&](int64_t number, cudaStream_t stream) {
        variant.launch(from_.data() + number * count, to_.data() + number * count, count, stream);
      },
      pairs, iterations_);
  if (variant.moves == Moves::copy)
    require_right(variant, pairs * count);  // the pairs lie side by side
  else
    require_right(variant, count, pairs);
  return timing;
}

Timing Experiments::time_cold(const Variant& variant, int64_t bytes) {
  const Timing timing = time(variant, bytes, cold_pairs(bytes));
  ladder::require_possible(text("%s of %s", variant.name, size_text(static_cast<double>(bytes)).c_str()),
                           moved_bytes(variant, bytes), timing, device_);
  return timing;
}

void Experiments::time_ladder() {
  if (!ladder_.empty()) return;
  std::vector<Timing> timings;
  for (const Variant& variant : variants_) timings.push_back(time_cold(variant, kLadderBytes));
  double fastest = 0;
  for (size_t i = 0; i < variants_.size(); ++i) {
    if (variants_[i].moves != Moves::copy || variants_[i].threads == 0) continue;
    if (fastest > 0 && timings[i].microseconds >= fastest) continue;
    fastest = timings[i].microseconds;
    ceiling_ = i;
  }
  ladder_ = std::move(timings);
}

const Variant& Experiments::ceiling() {
  time_ladder();
  return variants_[ceiling_];
}

std::string Experiments::of_datasheet(double bytes, const Timing& timing) const {
  if (device_.peak_bytes_per_second <= 0) return "";
  return text("%.1f", 100.0 * rate(bytes, timing) / device_.peak_bytes_per_second);
}

Table Experiments::copy_ladder() {
  time_ladder();
  const double best = rate(moved_bytes(variants_[ceiling_], kLadderBytes), ladder_[ceiling_]);
  Table table{
      "copy_ladder",
      text("Experiment 1, the copy ladder: buffers of %s, cold cache (%lld pairs in turn), median of %d samples",
           size_text(kLadderBytes).c_str(), static_cast<long long>(cold_pairs(kLadderBytes)), iterations_),
      ladder_columns(true),
      {},
      ""};
  for (size_t i = 0; i < variants_.size(); ++i) {
    const double bytes = moved_bytes(variants_[i], kLadderBytes);
    std::vector<std::string> cells = access_cells(variants_[i]);
    cells.insert(cells.end(), {text("%lld", static_cast<long long>(kLadderBytes)), text("%.0f", bytes),
                               microseconds_text(ladder_[i]), spread_text(ladder_[i]), rate_text(bytes, ladder_[i]),
                               of_datasheet(bytes, ladder_[i]), text("%.1f", 100.0 * rate(bytes, ladder_[i]) / best),
                               i == ceiling_ ? "1" : "0", std::to_string(iterations_)});
    table.rows.push_back(cells);
  }
  table.remarks = text("the ceiling: %s, %.1f GB/s, the fastest copy kernel\n", variants_[ceiling_].name, best / 1e9);
  return table;
}

Table Experiments::cold_warm() {
  const Variant& copy = ceiling();
  Table table{
      "cold_warm",
      text("Experiment 2, cold against warm: %s, L2 cache of %s; cold: pairs in turn, warm: one pair again and again",
           copy.name, size_text(device_.l2_bytes).c_str()),
      {{"buffer_bytes", nullptr},
       {"buffer", "buffer"},
       {"footprint_bytes", nullptr},
       {"cold_pairs", "pairs"},
       {"cold_microseconds", "cold us"},
       {"cold_spread_percent", "spread", "%"},
       {"cold_gb_per_s", "GB/s"},
       {"cold_percent_of_datasheet", "of datasheet", "%"},
       {"warm_microseconds", "warm us"},
       {"warm_spread_percent", "spread", "%"},
       {"warm_apparent_gb_per_s", nullptr},
       {"warm_apparent_percent_of_datasheet", "\"of datasheet\"", "%"},
       {"warm_verdict", "warm verdict"},
       {"variant", nullptr},
       {"l2_bytes", nullptr},
       {"iterations", nullptr}},
      {},
      ""};
  int artefacts = 0;
  double worst = 0;
  std::string worst_size, skipped;
  for (const int64_t bytes :
       {64 * kKiB, 128 * kKiB, 256 * kKiB, 512 * kKiB, kMiB, 2 * kMiB, 4 * kMiB, 6 * kMiB, 8 * kMiB, 12 * kMiB,
        16 * kMiB, 24 * kMiB, 32 * kMiB, 48 * kMiB, 64 * kMiB, 128 * kMiB, 256 * kMiB, 512 * kMiB, kGiB}) {
    const std::string size = size_text(static_cast<double>(bytes));
    if (cold_pairs(bytes) * bytes > half_bytes_) {
      skipped += text("%s skipped: the pairs would need %.1f GB of GPU memory\n", size.c_str(),
                      2.0 * static_cast<double>(cold_pairs(bytes) * bytes) / 1e9);
      continue;
    }
    const Timing cold = time_cold(copy, bytes), warm = time(copy, bytes, 1);
    const double moved = moved_bytes(copy, bytes);
    const double apparent = device_.peak_bytes_per_second > 0 ? rate(moved, warm) / device_.peak_bytes_per_second : 0;
    const bool artefact = apparent > 1;
    artefacts += artefact;
    if (artefact && apparent > worst) worst = apparent, worst_size = size;
    table.rows.push_back({std::to_string(bytes), size, text("%.0f", moved), std::to_string(cold_pairs(bytes)),
                          microseconds_text(cold), spread_text(cold), rate_text(moved, cold), of_datasheet(moved, cold),
                          microseconds_text(warm), spread_text(warm), rate_text(moved, warm), of_datasheet(moved, warm),
                          artefact ? "cache artefact" : "", copy.name, text("%.0f", device_.l2_bytes),
                          std::to_string(iterations_)});
  }
  if (device_.peak_bytes_per_second <= 0)
    table.remarks = "the driver does not tell the datasheet's bandwidth, so no warm time can be held against it\n";
  else if (artefacts > 0)
    table.remarks = text(
        "cache artefact: at %d sizes the warm loop seems to move more than the datasheet allows, \"%.0f%%\" of it at "
        "%s.\n"
        "Its bytes came from the L2 cache and went there; that is no bandwidth of memory.\n",
        artefacts, 100.0 * worst, worst_size.c_str());
  else
    table.remarks = "no warm loop passed the datasheet on this GPU; what they show is the cache all the same\n";
  table.remarks += skipped;
  return table;
}

}  // namespace memory_bandwidth
