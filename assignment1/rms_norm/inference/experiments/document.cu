// Experiments 3 and 4: what a kernel takes of a multiprocessor; and the document's timing table, in which cold times,
// the other pairs of types and the production header stand beside its six rows.
#include "common/launch.h"
#include "common/operators/typed_rms_norm.h"
#include "common/text.h"
#include "engine.h"
#include "experiments.h"
#include "production.h"

namespace ladder::inference {
namespace {

using Op = TypedRmsNorm;
constexpr int64_t kCols = 4096;

struct Row {
  const char* kernel;
  Type x, weight;
  bool dim;
  int64_t rows;
  const char* document;  // its factor; "": the document has no such row
};
constexpr Type kF32 = Type::float32, kF16 = Type::float16;
constexpr Row kRows[] = {
    {"row_rmsnorm_f32", kF32, kF32, false, 1, "1.38"},        {"row_rmsnorm_f32_dim", kF32, kF32, true, 1, "1.38"},
    {"row_rmsnorm_f32_dim", kF32, kF32, true, 4, "1.36"},     {"row_rmsnorm_f32_dim", kF32, kF32, true, 16, "1.34"},
    {"row_rmsnorm_f32_dim", kF32, kF32, true, 64, "1.06"},    {"row_rmsnorm_f32_dim", kF32, kF32, true, 512, ""},
    {"row_rmsnorm_f32_fp16w", kF32, kF16, false, 1, ""},      {"row_rmsnorm_f32_fp16w_dim", kF32, kF16, true, 64, ""},
    {"row_rmsnorm_f32_fp16w_dim", kF32, kF16, true, 512, ""}, {"row_rmsnorm_pure_fp16", kF16, kF16, false, 1, "2.13"},
    {"row_rmsnorm_pure_fp16_dim", kF16, kF16, true, 4, ""},   {"row_rmsnorm_pure_fp16_dim", kF16, kF16, true, 64, ""},
    {"row_rmsnorm_pure_fp16_dim", kF16, kF16, true, 512, ""},
};

Launcher through(Entry* entry, const Row& row) {
  return [=](const Arguments& a, cudaStream_t stream) {
    const auto dims = row.dim ? std::vector<int64_t>{row.rows, kCols} : std::vector<int64_t>{kCols};
    const auto tensor = [&](int place, Type type, const std::vector<int64_t>& of) {
      return EngineTensor{a.tensors[place], type, DeviceType::kDeviceCUDA, of};
    };
    entry(tensor(Op::kX, row.x, dims), tensor(Op::kWeight, row.weight, {kCols}), tensor(Op::kY, row.x, dims),
          static_cast<float>(a.scalars[Op::kEps]), stream);
  };
}

struct Times {
  Timing warm, cold;
};

Times time(const char* what, const Launcher& launch, const Row& row, const Report& report) {
  const Operator& op = Op::get({row.x, row.weight, row.x});
  const Case given(op, {{row.rows, kCols}}, report.options.seed);
  Problem problem(given, op.plain());
  const auto require_right = [&](const Outcome& outcome) {
    if (!outcome.failure.empty())
      throw std::runtime_error(text("%s, %s: %s", row.kernel, what, outcome.failure.c_str()));
  };
  require_right(problem.check(launch, {nullptr}));
  const auto one = [&](int64_t, cudaStream_t stream) { problem.launch(launch, problem.buffers.arguments(), stream); };
  Times times;
  times.warm = measure(NumberedLaunch(one), 1, report.options.iterations);
  Pool pool(problem, report.device);
  pool.prepare();
  times.cold = measure(launch, problem, pool, report.options.iterations);
  require_right(pool.verify(launch));
  return times;
}

}  // namespace

Table document(const Report& report) {
  Table table;
  table.title = text(
      "Experiment 4: the document's timing table, %lld columns. Cold: many sets of buffers; warm: one set again and\n"
      "again, as the document measured. The factors are those of cold times",
      static_cast<long long>(kCols));
  table.columns = {{"kernel", "kernel"},
                   {"rows", "rows"},
                   {"document_factor", "document"},
                   {"factor", "factor"},
                   {"before_microseconds", "before us"},
                   {"before_spread_percent", "spread", "%"},
                   {"after_microseconds", "after us"},
                   {"after_spread_percent", "spread", "%"},
                   {"header_microseconds", "header us"},
                   {"header_spread_percent", "spread", "%"},
                   {"warm_before_microseconds", "warm before us"},
                   {"warm_after_microseconds", "warm after us"},
                   {"cols", nullptr},
                   {"iterations", nullptr}};
  for (const Row& row : kRows) {
    const auto entry = [&](Version version) {
      return row.dim ? get_rmsnorm_dim_kernel(DeviceType::kDeviceCUDA, version)
                     : get_rmsnorm_kernel(DeviceType::kDeviceCUDA, version);
    };
    const Launcher header = [&](const Arguments& a, cudaStream_t stream) {
      production_norm(row.x, row.weight, a.tensors[Op::kX], a.tensors[Op::kWeight], a.tensors[Op::kY], row.rows, kCols,
                      static_cast<float>(a.scalars[Op::kEps]), false, stream);
    };
    const Times before = time("before", through(entry(Version::before), row), row, report);
    const Times after = time("after", through(entry(Version::after), row), row, report);
    const Times production = time("the header", header, row, report);
    Cells& cells = table.rows.emplace_back(Cells{row.kernel, std::to_string(row.rows), row.document,
                                                 text("%.2f", before.cold.microseconds / after.cold.microseconds)});
    append(cells, {time_cells(before.cold),
                   time_cells(after.cold),
                   time_cells(production.cold),
                   {time_cells(before.warm)[0], time_cells(after.warm)[0], std::to_string(kCols),
                    std::to_string(report.options.iterations)}});
  }
  return table;
}

Table resources(const Report& report) {
  int threads = 0;
  CUDA_CHECK(cudaDeviceGetAttribute(&threads, cudaDevAttrMaxThreadsPerMultiProcessor, 0));
  Table table;
  table.title = "Experiment 3: what the compiler gives each kernel, and how many of its blocks a multiprocessor holds";
  table.columns = {{"kernel", "kernel"},
                   {"version", "version"},
                   {"threads", "threads"},
                   {"registers", "registers"},
                   {"shared_bytes", "shared bytes"},
                   {"blocks_per_sm", "blocks per SM"},
                   {"theoretical_occupancy", "occupancy", "%"},
                   {"sm", nullptr}};
  table.left = 2;
  for (const KernelFacts& facts : kernel_facts())
    table.rows.push_back({facts.kernel, facts.version == Version::before ? "before" : "after",
                          std::to_string(facts.block), std::to_string(facts.registers),
                          std::to_string(facts.shared_bytes), std::to_string(facts.blocks_per_sm),
                          text("%.1f", 100.0 * facts.blocks_per_sm * facts.block / threads),
                          std::to_string(report.device.compute_capability)});
  return table;
}

}  // namespace ladder::inference
