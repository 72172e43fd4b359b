// The command line of every ladder's programs.
#pragma once
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "common/operator.h"

namespace ladder {

struct Options {
  std::vector<size_t> stages;  // positions in the ladder, ascending
  Shape shape;                 // of the main input
  Variant variant;             // of the main input: what is left out
  uint64_t seed = 1;
  int iterations = 50;
  bool timing = true;
  bool small = true;     // check the edge cases before the main input
  bool analyze = false;  // for simt/analyze: the smallest edge cases, uncounted, and the main input; no timing
  bool profile = false;  // one launch of each stage on the main input and nothing else
  std::string csv;       // empty: none
  int experiment = 0;    // 0: the stages and all experiments; 1: the stages; from 2 on: one experiment
  std::string csv_dir;   // empty: none
  bool list = false;     // mutants and stages alike
  std::string mutant;    // run_mutants only
};

// Says in one sentence what is wrong with the command line. Exit code 2.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// --help was asked for; what() is the text. Exit code 0.
struct HelpAsked : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Throws UsageError or HelpAsked. A stage's own program has no --stage, one without experiments no --experiment.
Options parse_options(const std::vector<AnyStage>& stages, size_t experiments, int argc, const char* const* argv,
                      bool own_program = false);
Options parse_mutant_options(int argc, const char* const* argv);

// The main input if the command line names no other: the ladder's, or else the operator's.
Shape main_shape(const Operator& op);

// The number in a stage's name ("05_warp_shuffle" is 5, reduction5 too), or else its place in the ladder, from 1.
int stage_number(const std::vector<AnyStage>& stages, size_t position);

// A file that appears whole or not at all: written beside itself, then renamed.
class CsvFile {
 public:
  // Throws UsageError, which names the option that gave the path, if the file cannot be written.
  explicit CsvFile(const std::string& path, const char* option = "--csv");
  void write(const std::string& content) const;

 private:
  std::string option_, path_, partial_;
};

}  // namespace ladder
