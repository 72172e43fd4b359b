// Experiments 2 to 4: every stage's walk on the inputs that show what it measures, read from the kernels' own clocks.
#include "experiments.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>
#include <string>

#include "common/operators/walk.h"
#include "common/text.h"
#include "lectures/W2L2_latency/walk.cuh"

namespace ladder::latency {
namespace {

constexpr int64_t kL2Words = 1 << 18, kDramWords = 1 << 26;  // 1 MiB and 256 MiB
constexpr int64_t kFlushed = int64_t{256} << 20;             // bytes, several times as many as L2 holds

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

__global__ void read_kernel(const uint4* from, int64_t n, uint32_t* to) {
  uint32_t sum = 0;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < n; i += int64_t{gridDim.x} * blockDim.x)
    sum ^= __ldcg(from + i).x;
  if (sum == UINT32_MAX) *to = sum;
}

void read_once(const void* from, int64_t bytes, uint32_t* to) {
  read_kernel<<<1024, 256>>>(static_cast<const uint4*>(from), bytes / 16, to);
}

// L2 holds what was read last. Nothing has to be written back when other lines come.
void flush(uint32_t* to) {
  static const DeviceMemory<> memory = allocate<char>(kFlushed);
  read_once(memory.get(), kFlushed, to);
}

const AnyStage& named(const Report& report, const char* name) {
  for (const Result& result : report.results)
    if (result.stage->name == name) return *result.stage;
  throw std::logic_error(text("the stage %s did not run; leave --stage out", name));
}

// What the table is before a walk: as the last walk has left it, only in DRAM, or read once by all SMs.
enum class Before { again, flushed, read };

struct Steps {
  double cycles, nanoseconds;  // a step
};

// Walks on a table of its own. The result of every one is compared.
class Walks {
 public:
  Walks(const AnyStage& stage, Shape shape)
      : stage_(stage), given_(*stage.op, shape, 1), problem_(given_, stage.op->plain()) {
    problem_.buffers.prepare(given_);
  }

  Steps time(Before before, int samples) {
    const Arguments arguments = problem_.buffers.arguments();
    std::vector<double> cycles, nanoseconds;
    for (int i = 0; i <= samples; ++i) {
      auto* ticks = arguments.tensor<uint32_t>(3);
      if (before != Before::again) flush(ticks);
      if (before == Before::read) read_once(arguments.tensor<const char>(0), 4 * given_.shape[0], ticks);
      CUDA_CHECK(cudaDeviceSynchronize());
      problem_.launch(stage_, arguments, stopwatch_.stream());
      CUDA_CHECK(cudaDeviceSynchronize());
      if (i == 0) continue;
      const Steps one = read();
      cycles.push_back(one.cycles), nanoseconds.push_back(one.nanoseconds);
    }
    require_right();
    return {median(cycles), median(nanoseconds)};
  }

  // From one launch to the next in a graph.
  double nanoseconds_in_graph(int samples) {
    const auto launch = [&](int64_t, cudaStream_t stream) {
      problem_.launch(stage_, problem_.buffers.arguments(), stream);
    };
    measure(launch, 1, samples);
    require_right();
    return read().nanoseconds;
  }

 private:
  Steps read() {
    uint32_t ticks[4];
    CUDA_CHECK(
        cudaMemcpy(ticks, problem_.buffers.arguments().tensor<uint32_t>(3), sizeof ticks, cudaMemcpyDeviceToHost));
    return {static_cast<double>(ticks[0]) / Walk::kSteps, static_cast<double>(ticks[1]) / Walk::kSteps};
  }
  void require_right() {
    const Outcome outcome = problem_.buffers.verify(given_, problem_.variant());
    if (!outcome.failure.empty())
      throw std::runtime_error(std::string(stage_.name) + " is wrong after timing: " + outcome.failure);
  }

  const AnyStage& stage_;
  Case given_;
  Problem problem_;
  Stopwatch stopwatch_;
};

struct Row {
  const char *operation, *stage;
  int64_t n, apart;
  Before before = Before::again;
};

}  // namespace

Table latency(const Report& report) {
  Table table;
  table.title = "Experiment 2: a step of one warp, in cycles of its SM; and one of 2 to 32 warps on that SM";
  table.columns = {{"operation", "a step"}, {"stage", "stage"},   {"n", nullptr},
                   {"apart", nullptr},      {"cycles", "cycles"}, {"nanoseconds", "ns"},
                   {"cycles_2", "2 warps"}, {"cycles_4", "4"},    {"cycles_8", "8"},
                   {"cycles_16", "16"},     {"cycles_32", "32"},  {"steps_per_100_cycles", "steps in 100 cycles"},
                   {"iterations", nullptr}};
  table.left = 2;
  table.remarks = "steps in 100 cycles: of all 32 warps together\n";
  const int samples = report.options.iterations;
  for (const Row& row : std::initializer_list<Row>{{"multiply-add", "register0", 4096, 1},
                                                   {"barrier of a warp", "syncwarp3", 4096, 1},
                                                   {"shuffle", "shuffle1", 4096, 1},
                                                   {"shared memory, 32 banks", "shared2", 4096, 1},
                                                   {"shared memory, one word", "shared2", 4096, 0},
                                                   {"shared memory, 2 lanes a bank", "shared2", 4096, 2},
                                                   {"shared memory, 8 lanes a bank", "shared2", 4096, 8},
                                                   {"shared memory, one bank", "shared2", 4096, 32},
                                                   {"barrier of a block", "syncthreads4", 4096, 1},
                                                   {"exchange", "exchange5", 4096, 1},
                                                   {"L1, one word", "cached6", 4096, 0},
                                                   {"L1, 32 words", "cached6", 4096, 8},
                                                   {"L2, one word", "uncached7", kL2Words, 0},
                                                   {"L2, 32 words", "uncached7", kL2Words, 8},
                                                   {"DRAM, one word", "uncached7", kDramWords, 0, Before::flushed},
                                                   {"DRAM, 32 words", "uncached7", kDramWords, 8, Before::flushed},
                                                   {"distributed shared memory", "cluster8", 4096, 1},
                                                   {"atomic in shared memory, 32 words", "shared_atomic9", 4096, 1},
                                                   {"atomic in shared memory, one word", "shared_atomic9", 4096, 0},
                                                   {"atomic in L2, 32 words", "global_atomic10", 4096, 8},
                                                   {"atomic in L2, one word", "global_atomic10", 4096, 0},
                                                   {"barrier of the grid", "grid_barrier11", 4096, 1}}) {
    const AnyStage& stage = named(report, row.stage);
    Cells& cells =
        table.rows.emplace_back(Cells{row.operation, row.stage, std::to_string(row.n), std::to_string(row.apart)});
    if (stage.needs.compute_capability > report.device.compute_capability) {
      cells.resize(table.columns.size());
      continue;
    }
    double cycles = 0;
    for (const int64_t warps : {1, 2, 4, 8, 16, 32}) {
      const Steps step = Walks(stage, {{row.n, warps, row.apart}}).time(row.before, samples);
      cycles = step.cycles;
      cells.push_back(text("%.1f", step.cycles));
      if (warps == 1) cells.push_back(text("%.1f", step.nanoseconds));
    }
    append(cells, {{text("%.2f", 3200.0 / cycles), std::to_string(samples)}});
  }
  const auto add_launch = [&](const char* operation, double nanoseconds) {
    Cells& cells = table.rows.emplace_back(Cells{operation, "launch12", "4096", "1", "", text("%.1f", nanoseconds)});
    cells.resize(table.columns.size() - 1);
    cells.push_back(std::to_string(samples));
  };
  Walks launches(named(report, "launch12"), {{4096, 1, 1}});
  add_launch("launch, in a graph", launches.nanoseconds_in_graph(samples));
  add_launch("launch, in a stream", launches.time(Before::again, samples).nanoseconds);
  return table;
}

Table footprint(const Report& report) {
  Table table;
  table.title = "Experiment 3: a step of one walker through tables of more and more bytes, in cycles";
  table.columns = {{"table_bytes", nullptr},       {"table", "table"},
                   {"cached_cycles", "load"},      {"uncached_cycles", "load that passes L1"},
                   {"uncached_nanoseconds", "ns"}, {"iterations", nullptr}};
  table.remarks = "every word of the table was read before the walk\n";
  const int samples = std::min(report.options.iterations, 11);
  for (const int64_t bits : {10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26}) {
    const int64_t n = int64_t{1} << bits;
    const Shape shape = {{n, 1, 0}};
    const Steps cached = Walks(named(report, "cached6"), shape).time(Before::read, samples);
    const Steps uncached = Walks(named(report, "uncached7"), shape).time(Before::read, samples);
    table.rows.push_back({std::to_string(4 * n), size_text(4 * n), text("%.1f", cached.cycles),
                          text("%.1f", uncached.cycles), text("%.1f", uncached.nanoseconds), std::to_string(samples)});
  }
  return table;
}

namespace {

constexpr int kLines = 512, kLineSteps = 64, kLineWords = 33 * 32;  // words from one line to the next

// Every SM walks within each of the lines, which hold the same 32 words. cycles: kLines of each block.
template <bool kAtomic>
__global__ void lines_kernel(uint32_t* lines, uint32_t* cycles, uint32_t* multiprocessor, uint32_t* end) {
  asm volatile("mov.u32 %0, %%smid;" : "=r"(multiprocessor[blockIdx.x]));
  const uint32_t zero = gridDim.x >> 31;
  uint32_t at = 0;
  for (int line = 0; line < kLines; ++line) {
    uint32_t* table = lines + line * kLineWords;
    at = __ldcg(table + at);
    const long long begin = clock64();
#pragma unroll 8
    for (int step = 1; step < kLineSteps; ++step) at = kAtomic ? atomicAdd(table + at, zero) : __ldcg(table + at);
    if (at == UINT32_MAX) __trap();
    cycles[blockIdx.x * kLines + line] = static_cast<uint32_t>(clock64() - begin);
  }
  end[blockIdx.x] = at;
}

// cycles[sm][line] of a step, one row for each SM.
template <bool kAtomic>
std::vector<std::vector<double>> lines_of_sms() {
  constexpr uint32_t kFactor = 5, kShift = 11;
  std::vector<uint32_t> words(int64_t{kLines} * kLineWords);
  for (int line = 0; line < kLines; ++line)
    for (uint32_t i = 0; i < 32; ++i) words[line * kLineWords + i] = (kFactor * i + kShift) % 32;
  uint32_t expected = 0;
  for (int step = 0; step < kLines * kLineSteps; ++step) expected = (kFactor * expected + kShift) % 32;

  const int sms = multiprocessors();
  const int64_t size = int64_t{sms} * (kLines + 2);
  const auto lines = allocate<uint32_t>(static_cast<int64_t>(words.size())), results = allocate<uint32_t>(size);
  CUDA_CHECK(cudaMemcpy(lines.get(), words.data(), 4 * words.size(), cudaMemcpyHostToDevice));
  uint32_t* const cycles = results.get();
  uint32_t* const multiprocessor = cycles + int64_t{sms} * kLines;
  for (int run = 0; run < 2; ++run) {  // the first one brings the lines and the instructions
    lines_kernel<kAtomic><<<sms, 1>>>(lines.get(), cycles, multiprocessor, multiprocessor + sms);
    CUDA_CHECK(cudaDeviceSynchronize());
  }
  std::vector<uint32_t> got(size);
  CUDA_CHECK(cudaMemcpy(got.data(), cycles, 4 * got.size(), cudaMemcpyDeviceToHost));
  std::vector<std::vector<double>> rows;
  std::vector<uint32_t> seen;
  for (int block = 0; block < sms; ++block) {
    if (got[int64_t{sms} * (kLines + 1) + block] != expected) throw std::runtime_error("a walk within a line is wrong");
    const uint32_t sm = got[int64_t{sms} * kLines + block];
    if (std::count(seen.begin(), seen.end(), sm) > 0) continue;
    seen.push_back(sm);
    auto& row = rows.emplace_back();
    for (int line = 0; line < kLines; ++line) row.push_back(got[block * kLines + line] / (kLineSteps - 1.0));
  }
  return rows;
}

double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

// Whether the lines that are far from one SM are far from the other one, too: from -1 to 1.
double correlation(const std::vector<double>& a, const std::vector<double>& b) {
  const double mean_a = mean(a), mean_b = mean(b);
  double ab = 0, aa = 0, bb = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    ab += (a[i] - mean_a) * (b[i] - mean_b);
    aa += (a[i] - mean_a) * (a[i] - mean_a);
    bb += (b[i] - mean_b) * (b[i] - mean_b);
  }
  return ab / std::sqrt(aa * bb);
}

}  // namespace

Table l2_sides(const Report&) {
  Table table;
  table.title = "Experiment 4: a step within one line of L2, in cycles, of each SM and each of 512 lines";
  table.columns = {{"operation", "a step"},
                   {"sms_of_one_side", "SMs of one side"},
                   {"sms_of_the_other", "of the other"},
                   {"near_cycles", "near"},
                   {"far_cycles", "far"},
                   {"cycles_lowest", "lowest"},
                   {"cycles_10_percent", "10 %"},
                   {"cycles_median", "median"},
                   {"cycles_90_percent", "90 %"},
                   {"cycles_highest", "highest"}};
  table.remarks =
      "one side: the SMs to which lines are far that are far to the first SM; near: of a line, the mean of the side "
      "that "
      "is nearer to it\n";
  const auto add = [&](const char* operation, const std::vector<std::vector<double>>& sms) {
    std::vector<size_t> side[2];
    for (size_t sm = 0; sm < sms.size(); ++sm) side[correlation(sms[0], sms[sm]) > 0 ? 0 : 1].push_back(sm);
    double near = 0, far = 0;
    std::vector<double> all;
    for (int line = 0; line < kLines; ++line) {
      double means[2] = {};
      for (int s = 0; s < 2; ++s) {
        for (const size_t sm : side[s]) means[s] += sms[sm][line], all.push_back(sms[sm][line]);
        means[s] = side[s].empty() ? means[0] : means[s] / static_cast<double>(side[s].size());
      }
      near += std::min(means[0], means[1]) / kLines;
      far += std::max(means[0], means[1]) / kLines;
    }
    std::sort(all.begin(), all.end());
    const auto at = [&](double share) {
      return text("%.1f", all[static_cast<size_t>(share * static_cast<double>(all.size() - 1))]);
    };
    table.rows.push_back({operation, std::to_string(side[0].size()), std::to_string(side[1].size()), text("%.1f", near),
                          text("%.1f", far), at(0), at(0.1), at(0.5), at(0.9), at(1)});
  };
  add("load", lines_of_sms<false>());
  add("atomic addition", lines_of_sms<true>());
  return table;
}

}  // namespace ladder::latency
