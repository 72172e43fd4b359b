// The command line of every ladder's programs.
#pragma once
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "common/stage.h"

namespace ladder {

struct Options {
  std::vector<size_t> stages;  // positions in the ladder, ascending
  int64_t rows = 8192, cols = 8192;
  uint64_t seed = 1;
  int iterations = 50;
  bool weight = true, timing = true;
  bool small = true;     // check the small problems before the main input
  bool profile = false;  // one launch of each stage on the main input and nothing else
  std::string csv;       // empty: none
  bool list = false;     // mutants and stages alike
  std::string mutant;    // run_mutants only
};

// What is wrong with the command line, in one sentence. Exit code 2.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// --help was asked for; what() is the text. Exit code 0.
struct HelpAsked : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Throws UsageError or HelpAsked. With a single stage there is no --stage.
Options parse_options(const std::vector<Stage>& stages, int argc, const char* const* argv);
Options parse_mutant_options(int argc, const char* const* argv);

// The number before the name, "05_warp_shuffle": 5; a name without one has its place in the ladder, from 1.
int stage_number(const std::vector<Stage>& stages, size_t position);

// A file that appears whole or not at all: written beside itself, then renamed.
class CsvFile {
 public:
  // Throws UsageError, which names the option that gave the path, where no such file could be written.
  explicit CsvFile(const std::string& path, const char* option = "--csv");
  void write(const std::string& content) const;

 private:
  std::string option_, path_, partial_;
};

}  // namespace ladder
