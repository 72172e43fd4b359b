#include "ceilings.h"

#include <cstring>

#include "common/operators/copy.h"
#include "common/operators/repeated.h"
#include "common/text.h"

namespace ladder::roofline {
namespace {

// What a datasheet promises per second, in units of 10^12; 0: nothing.
struct Promise {
  double tera;
  const char* source;
};

// Dense products, the highest clock. The H200 has the multiprocessors and the clocks of the H100 SXM5.
constexpr const char* kWhitepaper = "NVIDIA H100 Tensor Core GPU Architecture, peak rates of the H100 SXM5";

bool is_sxm_hopper(const Device& device) {
  const auto named = [&](const char* name) { return device.name.find(name) != std::string::npos; };
  return named("H200") || named("H100 80GB HBM3");
}

Promise promise(const std::string& unit, const Device& device) {
  if (unit == "DRAM") return {device.peak_bytes_per_second / 1e12, "memory clock and bus width, from the driver"};
  // 32 banks of 4 bytes, once a cycle.
  if (unit == "shared memory")
    return {128e-9 * device.multiprocessors * device.sm_clock_khz,
            "CUDA C++ Programming Guide: 128 bytes per cycle and SM"};
  if (!is_sxm_hopper(device)) return {};
  if (unit == "float32") return {66.9, kWhitepaper};
  if (unit == "float16 tensor cores") return {989.4, kWhitepaper};
  if (unit == "int8 tensor cores") return {1978.9, kWhitepaper};
  return {};
}

// The unit of the GPU that a stage keeps busy.
const char* unit_of(const AnyStage& stage) {
  const auto named = [&](const char* part) { return std::strstr(stage.name, part) != nullptr; };
  if (named("dram")) return "DRAM";
  if (named("l2")) return "L2 cache";
  if (named("shared")) return "shared memory";
  if (stage.op == &RepeatedFma::get()) return "float32";
  return stage.op == &HalfProducts::get() ? "float16 tensor cores" : "int8 tensor cores";
}

}  // namespace

Table ceilings(const Report& report) {
  Table table;
  table.title = "The ceilings: what each stage moved or computed in its time";
  table.left = 3;
  table.columns = {{"ceiling", "unit"},
                   {"stage", "stage"},
                   {"counted", "counted"},
                   {"amount", nullptr},
                   {"microseconds", "us"},
                   {"spread_percent", "spread", "%"},
                   {"tera_per_s", "10^12/s"},
                   {"datasheet_tera_per_s", "datasheet"},
                   {"percent_of_datasheet", "of it", "%"},
                   {"source_of_datasheet", nullptr}};
  table.remarks = "a fused multiply-add is two operations; a copy reads and writes each byte\n";
  const Shape& shape = report.options.shape;
  for (const Result& result : report.results) {
    if (!result.timed) continue;
    const Operator& op = *result.stage->op;
    const bool reads = &op == &RepeatedRead::get();
    const double bytes = op.bytes(shape, report.options.variant) * (reads ? static_cast<double>(shape[1]) : 1.0);
    const double operations = op.operations(shape), amount = operations > 0 ? operations : bytes;
    const double tera = amount / result.timing.microseconds / 1e6;
    const char* unit = unit_of(*result.stage);
    const Promise promised = promise(unit, report.device);
    append(table.rows.emplace_back(
               Cells{unit, result.stage->name, operations > 0 ? "operations" : "bytes", text("%.0f", amount)}),
           {time_cells(result.timing),
            {text("%.4g", tera), promised.tera > 0 ? text("%.4g", promised.tera) : "",
             promised.tera > 0 ? text("%.1f", 100.0 * tera / promised.tera) : "",
             promised.tera > 0 ? promised.source : ""}});
  }
  return table;
}

}  // namespace ladder::roofline
