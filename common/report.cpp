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

// The unit of the CPU device's counts: a row, or a block if the ladder names nothing.
const char* unit_name() { return *description.unit ? description.unit : "block"; }

// How many rows, or whatever the ladder says that a block works on, a block has; at least one.
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

// The columns of the CSV, with the result's cells. Those with a heading are in the table too.
std::vector<Field> Report::fields(const Result& result) const {
  const auto on_cpu = [&](const char* heading) { return device.cpu ? heading : nullptr; };
  const auto on_gpu = [&](const char* heading) { return device.cpu ? nullptr : heading; };
  std::vector<Field> all;
  const auto add = [&](Column column, const std::string& cell) { all.push_back({column, cell, cell}); };
  // Empty unless it is known; for people, there may be fewer digits.
  const auto add_if = [&](bool known, Column column, const std::string& in_csv, const std::string& on_screen = "") {
    all.push_back({column, known ? in_csv : "", known ? (on_screen.empty() ? in_csv : on_screen) : ""});
  };

  add({"stage", "stage"}, result.stage->name);
  add({"verdict", "verdict"}, verdict_text(result.verdict));
  const std::vector<Parameter> parameters = op().parameters();
  for (size_t i = 0; i < parameters.size(); ++i)
    add({parameters[i].name, nullptr}, parameters[i].text_of(options.shape[static_cast<int>(i)]));
  const std::vector<Tensor> tensors = op().tensors({});
  for (size_t i = 0; i < tensors.size(); ++i)
    if (tensors[i].optional) add({tensors[i].name, nullptr}, yes_or_no(!options.variant.places[i].absent));
  add({"seed", nullptr}, std::to_string(options.seed));
  add_if(result.reached, {"worst_error", "error"}, error_text(result.worst_error, 3),
         error_text(result.worst_error, 1));
  add_if(result.reached, {"tolerance", "limit"}, text("%.3e", result.tolerance), text("%.1e", result.tolerance));

  const bool counted = result.reached && result.counters.blocks > 0;
  const double units = counted ? units_per_block(op(), options.shape, result.counters) : 1;
  static const std::string per = text(" per %s", unit_name()), barriers = "barriers" + per, warp_ops = "warp ops" + per;
  const auto add_count = [&](Column column, double count) {
    add_if(counted, column, text("%.6g", count), count_text(count / units));
  };
  add_count({"barriers_per_block", on_cpu(barriers.c_str())}, result.counters.barriers_per_block);
  add_count({"warp_operations_per_block", on_cpu(warp_ops.c_str())}, result.counters.warp_operations_per_block);

  const bool timed = result.timed;
  const double rate = per_second(result.stage->op->bytes(options.shape, options.variant), result.timing);
  const double peak = device.peak_bytes_per_second, operations = result.stage->op->operations(options.shape);
  add_if(timed, {"microseconds", on_gpu("us")}, text("%.2f", result.timing.microseconds));
  add_if(timed, {"spread_percent", on_gpu("spread"), "%"}, text("%.1f", result.timing.spread_percent));
  add_if(timed, {"gb_per_s", on_gpu("GB/s")}, text("%.1f", rate / 1e9));
  add_if(timed && copy_timed, {"percent_of_copy", on_gpu("of copy"), "%"},
         text("%.1f", 100.0 * rate / per_second(copied_bytes, copy)));
  add_if(timed && peak > 0, {"percent_of_datasheet", on_gpu("of peak"), "%"}, text("%.1f", 100.0 * rate / peak));
  const bool shown =
      std::any_of(results.begin(), results.end(), [](const Result& r) { return r.stage->op->shows_operations(); });
  if (shown)
    add_if(timed && operations > 0, {"gflop_per_s", on_gpu("GFLOP/s")},
           text("%.1f", per_second(operations, result.timing) / 1e9));
  static const std::string over = "speedup_over_" + baseline_name(), versus = "vs " + baseline_name();
  const Result* base = baseline(*this);
  if (!baseline_name().empty())
    add_if(timed && base, {over.c_str(), on_gpu(versus.c_str()), "x"},
           base ? text("%.2f", base->timing.microseconds / result.timing.microseconds) : "");
  add({"operations", nullptr}, text("%.0f", operations));
  add_if(copy_timed, {"copy_microseconds", nullptr}, text("%.2f", copy.microseconds));
  add_if(copy_timed, {"copied_bytes", nullptr}, text("%.0f", copied_bytes));
  add_if(peak > 0, {"datasheet_gb_per_s", nullptr}, text("%.1f", peak / 1e9));
  add_if(timed, {"iterations", nullptr}, std::to_string(options.iterations));
  add({"device", nullptr}, device.name);
  add({"sm", nullptr}, std::to_string(device.compute_capability));
  add({"driver", nullptr}, std::to_string(device.driver));
  add({"runtime", nullptr}, std::to_string(device.runtime));
  add({"date", nullptr}, today());
  return all;
}

// What was run, how, and beside what.
std::string Report::header() const {
  const std::vector<Tensor> tensors = op().tensors({});
  std::vector<std::string> types;  // stages may differ in them
  for (const Result& result : results)
    if (const std::string type = name_of(result.stage->op->tensors(options.shape).front().type);
        std::find(types.begin(), types.end(), type) == types.end())
      types.push_back(type);
  std::string out = shape_text(op(), options.shape);
  for (size_t i = 0; i < types.size(); ++i) out += (i == 0 ? " " : i + 1 == types.size() ? " and " : ", ") + types[i];
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
    out += text("barriers and warp operations are those of one block%s; of several kernels, the most\n",
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
  Table table{header(), {}, {}, "", 2};
  for (const Field& field : fields(results.front())) table.columns.push_back(field.column);
  for (const Result& result : results) {
    table.rows.emplace_back();
    for (const Field& field : fields(result)) table.rows.back().push_back(field.on_screen);
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
  for (const Field& field : fields(results.front())) names.push_back(field.column.name);
  std::string out = csv_line(names);
  for (const Result& result : results) {
    std::vector<std::string> cells;
    for (const Field& field : fields(result)) cells.push_back(field.in_csv);
    out += csv_line(cells);
  }
  return out;
}

Progress::Progress() : terminal_(isatty(STDERR_FILENO)) {}
Progress::~Progress() { clear(); }
void Progress::show(const std::string& line) {
  if (terminal_) std::fprintf(stderr, "\r\033[K%s", line.c_str()), std::fflush(stderr);
}
void Progress::clear() { show(""); }

}  // namespace ladder
