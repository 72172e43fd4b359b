// What make tune measures: every candidate at every size of problem that a policy tells apart.
#pragma once
#include <string>
#include <vector>

#include "bench/tune/candidate.h"
#include "common/timing.h"

namespace tune {

const char* access_name(Access access);
const char* reads_name(Eviction reads);

struct Size {
  bool adds;
  int64_t rows, cols;

  double bytes() const;  // that a launch reads and writes, all but the weight
};

struct Measurement {
  const Candidate* candidate;
  Size size;
  int kilobytes;  // of such a problem
  int64_t copies;
  bool winner = false;       // measured once more as the best of its problem, for the two ways to launch it
  bool dependent = false;    // programmatic dependent launch
  std::string refusal = {};  // why it did not launch; then there is no timing
  ladder::Timing timing = {};
};

// All of it, with a line on stdout for each problem. Throws where a candidate writes something wrong or is faster than
// the GPU's datasheet allows.
std::vector<Measurement> measure_all(const ladder::Device& device, int samples);

std::string csv(const std::vector<Measurement>& measurements, const ladder::Device& device, int samples);

// Every candidate on some rows of its length, and of one pack less. Returns how many launches were right; refusals,
// each a sentence, are added to `refused`. Throws where one is wrong.
int check_all(const ladder::Device& device, std::vector<std::string>& refused);

}  // namespace tune
