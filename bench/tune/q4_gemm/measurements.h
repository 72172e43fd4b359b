// What make tune S=q4_gemm measures: every candidate at every product that a policy tells apart.
#pragma once
#include <string>
#include <vector>

#include "bench/q4_tune/candidate.h"
#include "common/timing.h"

namespace q4_tune {

const char* table_name(Table table);

struct Size {
  int64_t m, n, k;
};

struct Measurement {
  const Candidate* candidate;
  Size size;
  int parts, clusters;  // of k, and how many clusters of so many blocks the GPU holds at once
  int64_t copies;
  std::string refusal = {};  // why it did not launch; then there is no timing
  ladder::Timing timing = {};
};

// All of it, with a line on stdout for each product. Throws where a candidate writes something wrong or is faster than
// the GPU's datasheet allows.
std::vector<Measurement> measure_all(const ladder::Device& device, int samples);

std::string csv(const std::vector<Measurement>& measurements, const ladder::Device& device, int samples);

// Every candidate on small products, with up to 3 parts of k and with the most. Returns how many launches were right;
// refusals, each a sentence, are added to `refused`. Throws where one is wrong.
int check_all(const ladder::Device& device, std::vector<std::string>& refused);

}  // namespace q4_tune
