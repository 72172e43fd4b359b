// What a ladder's program prints: the table, the ranking, the failures, the CSV and the progress line.
#pragma once
#include <string>
#include <vector>

#include "common/options.h"
#include "common/table.h"
#include "common/timing.h"

namespace ladder {

enum class Verdict { pass, fail, skipped, not_run };

struct Result {
  const AnyStage* stage = nullptr;
  Verdict verdict = Verdict::not_run;
  std::string reason;                     // of every verdict but pass
  double worst_error = 0, tolerance = 0;  // on the main input
  bool reached = false;                   // the main input was compared
  bool timed = false;
  Timing timing;      // on a GPU
  Counters counters;  // on the CPU device
};

// A result's cell in one column.
struct Field {
  Column column;
  std::string in_csv, on_screen;
};

struct Report {
  Device device;
  Options options;
  int edge_cases = 0;
  std::string thread_order;  // the only one, if the user asks for one
  std::vector<Result> results;
  bool copy_timed = false;
  Timing copy;
  double copied_bytes = 0;  // read and written by the copy kernel
  int64_t pool_copies = 0;

  std::string table() const;
  std::string csv() const;
  bool all_right() const;  // no failure, nothing left unrun; skipped stages do not count either way

 private:
  const Operator& op() const { return *results.front().stage->op; }
  std::vector<Field> fields(const Result& result) const;
  std::string header() const;
};

// One line on stderr that is overwritten; nothing if stderr is no terminal.
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
