// What the programs print: the table, the ranking, the failures, the CSV and the progress line.
#pragma once
#include <string>
#include <vector>

#include "common/options.h"
#include "common/roofline.h"
#include "common/timing.h"

namespace ladder {

enum class Verdict { pass, fail, skipped, not_run };

struct Result {
  const Stage* stage = nullptr;
  Verdict verdict = Verdict::not_run;
  std::string reason;                     // of anything but pass
  double worst_error = 0, tolerance = 0;  // on the main input; tolerance 0: not reached
  bool timed = false;
  Timing timing;      // on a GPU
  Counters counters;  // on the CPU device
};

struct Report {
  Device device;
  Options options;
  int hurtful_checks = 0;
  std::vector<Result> results;
  bool copy_timed = false;
  Timing copy;
  int64_t pool_pairs = 0;

  std::string table() const;
  std::string csv() const;
  bool all_right() const;  // no failure, nothing left unrun; skipped stages do not count either way
};

// Columns aligned to their widest cell, the first `left` of them to the left. The first row is the header.
std::string align(const std::vector<std::vector<std::string>>& rows, size_t left);

// One line of a CSV, cells quoted where they must be.
std::string csv_line(const std::vector<std::string>& cells);

std::string today();  // "2026-01-31"

// One line on stderr that is overwritten; nothing where stderr is no terminal.
class Progress {
 public:
  Progress();
  ~Progress();
  void show(const std::string& line);
  void clear();

 private:
  bool terminal_;
};

}  // namespace ladder
