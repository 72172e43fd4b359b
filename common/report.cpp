#include "common/report.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <sstream>

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

double bandwidth(const Options& options, const Timing& timing) {
  return operator_bytes(options.rows, options.cols, options.weight) / (timing.microseconds * 1e-6);
}

double copy_bandwidth(const Options& options, const Timing& timing) {
  return operator_bytes(options.rows, options.cols, false) / (timing.microseconds * 1e-6);
}

// The first stage of the ladder, when it was timed: what the others are compared with.
const Result* baseline(const Report& report) {
  for (const Result& result : report.results)
    if (result.timed && std::string(result.stage->name).find("basic") != std::string::npos) return &result;
  return nullptr;
}

// The measured figures of one stage, empty where there are none.
struct Figures {
  std::string microseconds, spread, gb_per_s, of_copy, of_peak, speedup;
};

Figures figures(const Report& report, const Result& result) {
  Figures f;
  if (!result.timed) return f;
  const double rate = bandwidth(report.options, result.timing), peak = report.device.peak_bytes_per_second;
  f.microseconds = text("%.2f", result.timing.microseconds);
  f.spread = text("%.1f", result.timing.spread_percent);
  f.gb_per_s = text("%.1f", rate / 1e9);
  if (report.copy_timed) f.of_copy = text("%.1f", 100.0 * rate / copy_bandwidth(report.options, report.copy));
  if (peak > 0) f.of_peak = text("%.1f", 100.0 * rate / peak);
  if (const Result* base = baseline(report))
    f.speedup = text("%.2f", base->timing.microseconds / result.timing.microseconds);
  return f;
}

std::string or_dash(const std::string& cell, const char* unit = "") { return cell.empty() ? "-" : cell + unit; }

// Columns on a terminal: UTF-8 continuation bytes take none.
size_t width(const std::string& cell) {
  return static_cast<size_t>(std::count_if(cell.begin(), cell.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

// The text after `head`, broken at spaces into lines of at most 100 columns that align with its start.
std::string wrap(const std::string& head, const std::string& body) {
  std::string all, line = head;
  std::istringstream words(body);
  for (std::string word; words >> word;) {
    if (line.size() > head.size() && width(line) + 1 + width(word) > 100) {
      all += line + "\n";
      line = std::string(head.size(), ' ');
    }
    line += (line.size() > head.size() ? " " : "") + word;
  }
  return all + line + "\n";
}

std::string quoted(const std::string& cell) {
  if (cell.find_first_of(",\"\n") == std::string::npos) return cell;
  std::string result = "\"";
  for (const char c : cell) result += c == '"' ? std::string("\"\"") : std::string(1, c);
  return result + "\"";
}

}  // namespace

std::string today() {
  char date[16];
  const std::time_t now = std::time(nullptr);
  std::strftime(date, sizeof date, "%Y-%m-%d", std::localtime(&now));
  return date;
}

std::string csv_line(const std::vector<std::string>& cells) {
  std::string line;
  for (size_t i = 0; i < cells.size(); ++i) line += (i ? "," : "") + quoted(cells[i]);
  return line + "\n";
}

std::string align(const std::vector<std::vector<std::string>>& rows, size_t left) {
  std::vector<size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width(row[i]));
  }
  std::string result;
  for (const auto& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      const std::string fill(widths[i] - width(row[i]), ' ');
      line += (i ? "  " : "") + (i < left ? row[i] + fill : fill + row[i]);
    }
    result += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return result;
}

bool Report::all_right() const {
  return std::all_of(results.begin(), results.end(), [](const Result& result) {
    return result.verdict == Verdict::pass || result.verdict == Verdict::skipped;
  });
}

std::string Report::table() const {
  std::vector<std::vector<std::string>> rows = {{"stage", "verdict", "error", "limit"}};
  const std::vector<std::string> more =
      device.cpu ? std::vector<std::string>{"bytes/element", "sectors/request", "barriers", "warp ops"}
                 : std::vector<std::string>{"us", "spread", "GB/s", "of copy", "of peak", "vs basic"};
  rows[0].insert(rows[0].end(), more.begin(), more.end());
  for (const Result& result : results) {
    std::vector<std::string> row = {result.stage->name, verdict_text(result.verdict)};
    const bool reached = result.tolerance > 0;
    row.push_back(reached ? text("%.1e", result.worst_error) : "-");
    row.push_back(reached ? text("%.1e", result.tolerance) : "-");
    if (device.cpu) {
      row.push_back(text("%.0f", moved_bytes_per_element(result.stage->model)));
      row.push_back(text("%d", sectors_per_request(result.stage->model, options.cols)));
      row.push_back(reached ? text("%.4g", result.counters.barriers_per_block) : "-");
      row.push_back(reached ? text("%.4g", result.counters.warp_operations_per_block) : "-");
    } else {
      const Figures f = figures(*this, result);
      for (const std::string& cell : {or_dash(f.microseconds), or_dash(f.spread, "%"), or_dash(f.gb_per_s),
                                      or_dash(f.of_copy, "%"), or_dash(f.of_peak, "%"), or_dash(f.speedup, "x")})
        row.push_back(cell);
    }
    rows.push_back(row);
  }

  std::string out =
      text("%s float32, %s, eps 1e-06, seed %llu, %s\n", shape_text(options.rows, options.cols).c_str(),
           options.weight ? "weight" : "no weight", static_cast<unsigned long long>(options.seed), today().c_str());
  out += options.small ? text("checked on %d small problems first", hurtful_checks)
                       : std::string("checked on the main input only");
  out += "; error: worst relative error on the main input\n";
  if (device.cpu)
    out += "modelled: bytes, sectors of a warp's load; counted: barriers and warp operations of a block\n";
  if (copy_timed) {
    out += text("time: median of %d samples with a cold cache (%lld buffer pair%s); spread: 10th to 90th percentile\n",
                options.iterations, static_cast<long long>(pool_pairs), pool_pairs == 1 ? "" : "s");
    const double rate = copy_bandwidth(options, copy), peak = device.peak_bytes_per_second;
    out += text("copy kernel on the same bytes: %.2f us, %.1f GB/s", copy.microseconds, rate / 1e9);
    out += peak > 0 ? text(", %.1f%% of peak (the datasheet's)\n", 100.0 * rate / peak) : "\n";
    out += text("clocks as found, up to %d MHz (SM) and %d MHz (memory)\n", device.sm_clock_khz / 1000,
                device.memory_clock_khz / 1000);
  }
  out += "\n" + align(rows, 2);

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
  if (!reasons.empty()) out += "\n" + reasons;
  return out;
}

std::string Report::csv() const {
  std::string out =
      "stage,verdict,rows,cols,weight,seed,worst_error,tolerance,bytes_per_element,sectors_per_request,"
      "barriers_per_block,warp_operations_per_block,microseconds,spread_percent,gb_per_s,percent_of_copy,"
      "percent_of_datasheet,speedup_over_basic,copy_microseconds,iterations,device,sm,driver,runtime,date\n";
  for (const Result& result : results) {
    const bool reached = result.tolerance > 0, counted = reached && device.cpu;
    const Figures f = figures(*this, result);
    const std::vector<std::string> cells = {result.stage->name,
                                            verdict_text(result.verdict),
                                            std::to_string(options.rows),
                                            std::to_string(options.cols),
                                            options.weight ? "1" : "0",
                                            std::to_string(options.seed),
                                            reached ? text("%.3e", result.worst_error) : "",
                                            reached ? text("%.3e", result.tolerance) : "",
                                            text("%.0f", moved_bytes_per_element(result.stage->model)),
                                            std::to_string(sectors_per_request(result.stage->model, options.cols)),
                                            counted ? text("%.6g", result.counters.barriers_per_block) : "",
                                            counted ? text("%.6g", result.counters.warp_operations_per_block) : "",
                                            f.microseconds,
                                            f.spread,
                                            f.gb_per_s,
                                            f.of_copy,
                                            f.of_peak,
                                            f.speedup,
                                            copy_timed ? text("%.2f", copy.microseconds) : "",
                                            result.timed ? std::to_string(options.iterations) : "",
                                            device.name,
                                            std::to_string(device.compute_capability),
                                            std::to_string(device.driver),
                                            std::to_string(device.runtime),
                                            today()};
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
