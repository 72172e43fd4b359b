// The command line of every ladder's programs.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "common/errors.h"
#include "common/operator.h"

namespace ladder {

struct Options {
  std::vector<size_t> stages;  // positions in the ladder, ascending
  Shape shape;                 // of the main input
  bool shape_given = false;    // by the command line
  Variant variant;             // of the main input: what is left out
  uint64_t seed = 1;
  int iterations = 50;
  int pause = 0;  // milliseconds of rest before each sample
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

// Throw UsageError or HelpAsked. The program of one stage has no --stage, one without experiments no --experiment.
Options parse_options(const std::vector<AnyStage>& stages, size_t experiments, int argc, const char* const* argv);
Options parse_mutant_options(int argc, const char* const* argv);

// The number by which --stage finds a stage: that in its name ("05_warp_shuffle" is 5, reduction5 too), or else its
// place in the ladder, from 1.
int stage_number(const std::vector<AnyStage>& stages, size_t position);

}  // namespace ladder
