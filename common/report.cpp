#include "common/report.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "common/description.h"
#include "common/text.h"

namespace ladder {
namespace {

const char* verdict_text(Verdict verdict) {
  switch (verdict) {
    case Verdict::pass:
      return "PASS";
    case Verdict::fail:
      return "FAIL";
    case Verdict::skipped:
      return "skipped";
    default:
      return "not run";
  }
}

double per_second(double amount, const Timing& timing) { return amount / (timing.microseconds * 1e-6); }

// The ladder's baseline, if it was timed. The other stages are compared with it.
const Result* baseline(const Report& report) {
  for (const Result& result : report.results)
    if (result.timed && std::string(result.stage->name) == description.baseline) return &result;
  return nullptr;
}

// "basic" of 01_basic.
std::string baseline_name() {
  const std::string name = description.baseline;
  const size_t letters = name.find_first_not_of("0123456789_");
  return letters == std::string::npos ? "" : name.substr(letters);
}

std::string yes_or_no(bool yes) { return yes ? "1" : "0"; }

// What the counts of the CPU device are told of: a row, or a block where the ladder names nothing.
const char* unit_name() { return *description.unit ? description.unit : "block"; }

// How many rows, or whatever the ladder says that a block works on, a block of the last launch had; at least one.
double units_per_block(const Operator& op, const Shape& shape, const Counters& counters) {
  const std::vector<Parameter> parameters = op.parameters();
  for (size_t i = 0; i < parameters.size(); ++i)
    if (std::string(parameters[i].name) == description.unit_parameter && counters.blocks > 0)
      return std::max(1.0, static_cast<double>(shape[static_cast<int>(i)]) / counters.blocks);
  return 1;
}

// A count for people: 163,840; of what is no whole number, three digits.
std::string count_text(double count) {
  if (count < 1e4 && count != std::floor(count)) return text("%.3g", count);
  std::string digits = text("%.0f", count);
  for (size_t place = digits.size(); place > 3; place -= 3) digits.insert(place - 3, ",");
  return digits;
}

// A relative error with so many digits. An element that is NaN makes the worst error NaN, whatever its sign.
std::string error_text(double error, int digits) { return std::isnan(error) ? "NaN" : text("%.*e", digits, error); }

}  // namespace

bool Report::all_right() const {
  return std::all_of(results.begin(), results.end(), [](const Result& result) {
    return result.verdict == Verdict::pass || result.verdict == Verdict::skipped;
  });
}

// The columns of the CSV. Those with a heading are in the table too.
std::vector<Column> Report::columns() const {
  const auto on_cpu = [&](const char* heading) { return device.cpu ? heading : nullptr; };
  const auto on_gpu = [&](const char* heading) { return device.cpu ? nullptr : heading; };
  std::vector<Column> all = {{"stage", "stage"}, {"verdict", "verdict"}};
  for (const Parameter& parameter : op().parameters()) all.push_back({parameter.name, nullptr});
  for (const Tensor& tensor : op().tensors({}))
    if (tensor.optional) all.push_back({tensor.name, nullptr});
  static const std::string per = text(" per %s", unit_name()), barriers = "barriers" + per;
  static const std::string warp_operations = "warp ops" + per;
  const std::vector<Column> rest = {{"seed", nullptr},
                                    {"worst_error", "error"},
                                    {"tolerance", "limit"},
                                    {"barriers_per_block", on_cpu(barriers.c_str())},
                                    {"warp_operations_per_block", on_cpu(warp_operations.c_str())},
                                    {"microseconds", on_gpu("us")},
                                    {"spread_percent", on_gpu("spread"), "%"},
                                    {"gb_per_s", on_gpu("GB/s")},
                                    {"percent_of_copy", on_gpu("of copy"), "%"},
                                    {"percent_of_datasheet", on_gpu("of peak"), "%"}};
  all.insert(all.end(), rest.begin(), rest.end());
  if (op().operations(options.shape) > 0) all.push_back({"gflop_per_s", on_gpu("GFLOP/s")});
  static const std::string over = "speedup_over_" + baseline_name(), versus = "vs " + baseline_name();
  if (!baseline_name().empty()) all.push_back({over.c_str(), on_gpu(versus.c_str()), "x"});
  for (const char* name : {"copy_microseconds", "iterations", "device", "sm", "driver", "runtime", "date"})
    all.push_back({name, nullptr});
  return all;
}

std::vector<std::string> Report::cells(const Result& result) const {
  std::vector<std::string> all = {result.stage->name, verdict_text(result.verdict)};
  for (size_t i = 0; i < op().parameters().size(); ++i)
    all.push_back(std::to_string(options.shape[static_cast<int>(i)]));
  const std::vector<Tensor> tensors = op().tensors({});
  for (size_t i = 0; i < tensors.size(); ++i)
    if (tensors[i].optional) all.push_back(yes_or_no(!options.variant.places[i].absent));
  const bool counted = result.reached && device.cpu;
  const auto add = [&](bool known, const std::string& cell) { all.push_back(known ? cell : ""); };
  add(true, std::to_string(options.seed));
  add(result.reached, error_text(result.worst_error, 3));
  add(result.reached, text("%.3e", result.tolerance));
  add(counted, text("%.6g", result.counters.barriers_per_block));
  add(counted, text("%.6g", result.counters.warp_operations_per_block));

  const double rate = per_second(result.stage->op->bytes(options.shape, options.variant), result.timing);
  const double peak = device.peak_bytes_per_second, operations = op().operations(options.shape);
  add(result.timed, text("%.2f", result.timing.microseconds));
  add(result.timed, text("%.1f", result.timing.spread_percent));
  add(result.timed, text("%.1f", rate / 1e9));
  add(result.timed && copy_timed, text("%.1f", 100.0 * rate / per_second(copied_bytes, copy)));
  add(result.timed && peak > 0, text("%.1f", 100.0 * rate / peak));
  if (operations > 0) add(result.timed, text("%.1f", per_second(operations, result.timing) / 1e9));
  const Result* base = baseline(*this);
  if (!baseline_name().empty())
    add(result.timed && base, base ? text("%.2f", base->timing.microseconds / result.timing.microseconds) : "");
  add(copy_timed, text("%.2f", copy.microseconds));
  add(result.timed, std::to_string(options.iterations));
  for (const std::string& cell : {device.name, std::to_string(device.compute_capability), std::to_string(device.driver),
                                  std::to_string(device.runtime), today()})
    all.push_back(cell);
  return all;
}

// What was run, how, and beside what.
std::string Report::header() const {
  const std::vector<Tensor> tensors = op().tensors({});
  std::string out = text("%s %s", shape_text(op(), options.shape).c_str(), name_of(tensors.front().type));
  for (size_t i = 0; i < tensors.size(); ++i)
    if (tensors[i].optional) out += std::string(options.variant.places[i].absent ? ", no " : ", ") + tensors[i].name;
  for (const Scalar& scalar : op().scalars()) out += text(", %s %g", scalar.name, scalar.value);
  out += text(", seed %llu, %s\n", static_cast<unsigned long long>(options.seed), today().c_str());
  const bool checked = std::any_of(results.begin(), results.end(), [](const Result& r) { return r.reached; });
  out += edge_cases > 0 ? text("checked on %d small problems first", edge_cases)
                        : std::string(checked ? "checked on the main input only" : "nothing was checked");
  out += "; error: worst relative error on the main input\n";
  if (!thread_order.empty())
    out += text("threads ran in the order '%s' alone, as SIMT_ORDER asks\n", thread_order.c_str());
  if (device.cpu)
    out += text("barriers and warp operations are those of one block%s\n",
                *description.unit ? text(", per %s that it works on", description.unit).c_str() : "");
  if (device.cpu && !options.analyze) out += "make analyze counts the accesses to memory\n";
  if (!copy_timed) return out;
  out += text("time: median of %d samples with a cold cache (%lld buffer set%s); spread: 10th to 90th percentile\n",
              options.iterations, static_cast<long long>(pool_copies), pool_copies == 1 ? "" : "s");
  const double rate = per_second(copied_bytes, copy), peak = device.peak_bytes_per_second;
  out += text("copy kernel on the same bytes: %.2f us, %.1f GB/s", copy.microseconds, rate / 1e9);
  out += peak > 0 ? text(", %.1f%% of peak (the datasheet's)\n", 100.0 * rate / peak) : "\n";
  return out + text("clocks as found, up to %d MHz (SM) and %d MHz (memory)\n", device.sm_clock_khz / 1000,
                    device.memory_clock_khz / 1000);
}

std::string Report::table() const {
  Table table{header(), columns(), {}, "", 2};
  for (const Result& result : results) {
    table.rows.push_back(cells(result));
    for (size_t i = 0; i < table.columns.size(); ++i) {  // for people, with fewer digits than in the CSV
      const std::string name = table.columns[i].name;
      if (result.reached && name == "worst_error") table.rows.back()[i] = error_text(result.worst_error, 1);
      if (result.reached && name == "tolerance") table.rows.back()[i] = text("%.1e", result.tolerance);
      if (!result.reached || !device.cpu) continue;
      const double units = units_per_block(op(), options.shape, result.counters);
      if (name == "barriers_per_block") table.rows.back()[i] = count_text(result.counters.barriers_per_block / units);
      if (name == "warp_operations_per_block")
        table.rows.back()[i] = count_text(result.counters.warp_operations_per_block / units);
    }
  }
  std::string out = table.print();

  std::vector<const Result*> ranked;
  for (const Result& result : results)
    if (result.timed) ranked.push_back(&result);
  std::stable_sort(ranked.begin(), ranked.end(),
                   [](const Result* a, const Result* b) { return a->timing.microseconds < b->timing.microseconds; });
  if (ranked.size() > 1) {
    std::string names;
    for (const Result* result : ranked) names += (names.empty() ? "" : " > ") + std::string(result->stage->name);
    out += "\n" + wrap("fastest first: ", names);
  }
  std::string reasons;
  for (const Result& result : results)
    if (result.verdict != Verdict::pass)
      reasons += wrap(text("%s %s: ", result.stage->name, verdict_text(result.verdict)), result.reason);
  return reasons.empty() ? out : out + "\n" + reasons;
}

std::string Report::csv() const {
  std::vector<std::string> names;
  for (const Column& column : columns()) names.push_back(column.name);
  std::string out = csv_line(names);
  for (const Result& result : results) out += csv_line(cells(result));
  return out;
}

Progress::Progress() : terminal_(isatty(STDERR_FILENO)) {}
Progress::~Progress() { clear(); }
void Progress::show(const std::string& line) {
  if (terminal_) std::fprintf(stderr, "\r\033[K%s", line.c_str()), std::fflush(stderr);
}
void Progress::clear() { show(""); }

}  // namespace ladder
