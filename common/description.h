// What a ladder's ladder.json says to its programs; make writes it as C++.
#pragma once
#include <cstdint>
#include <utility>
#include <vector>

namespace ladder {

struct Description {
  const char* id;                                       // "matrix"
  const char* baseline;                                 // the stage that speed-ups are relative to; "": none
  std::vector<std::pair<const char*, int64_t>> inputs;  // the main input: parameters that differ from the operator's
  const char* unit = "";                                // what a block works on: "row"; "": nothing that is named
  const char* unit_parameter = "";                      // the parameter that counts it: "rows"
  std::vector<std::pair<const char*, int64_t>> cpu_inputs = {};  // the main input on the CPU device; empty: the same
  std::vector<std::pair<const char*, const char*>> labels = {};  // other names of stages: {"FAST", "05_warp_shuffle"}
};

// A program that belongs to no ladder gets the empty description of description.cpp.
extern const Description description;

}  // namespace ladder
