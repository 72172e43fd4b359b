// What is checked of each combination of types. A quick run takes fewer and shorter rows.
#pragma once
#include <utility>
#include <vector>

#include "tests/headers/rms_norm/groups.h"

namespace header_test {

using Shapes = std::vector<std::pair<int64_t, int64_t>>;  // rows, cols

// Goes through the modes of computation as `number` counts up: weight or none, its offset, rounding, eps.
Problem in_mode(Problem problem, int number);
// The tensors of a combination whose places differ, the weight left aside.
std::vector<int> matrices(const Combination& combination);
void check(Tally& tally, const Combination& combination, const Problem& problem);

// topics_rows.cpp
void lengths(Tally& tally, const Combination& c, bool quick);
void pack_counts(Tally& tally, const Combination& c, bool quick);
void row_counts(Tally& tally, const Combination& c, bool quick);
void modes(Tally& tally, const Combination& c, bool quick);
void alignment(Tally& tally, const Combination& c, bool quick);
void strides(Tally& tally, const Combination& c, bool quick);
void heads(Tally& tally, const Combination& c, bool quick);
void in_place(Tally& tally, const Combination& c, bool quick);
void values(Tally& tally, const Combination& c, bool quick);

// topics_launches.cpp
void workspace(Tally& tally, const Combination& c, bool quick);
void dependent(Tally& tally, const Combination& c, bool quick);
void graphs(Tally& tally, const Combination& c, bool quick);
void streams(Tally& tally, const Combination& c, bool quick);
void side_by_side(Tally& tally, const Combination& c, bool quick);
void determinism(Tally& tally, const Combination& c, bool quick);
void two_threads(Tally& tally, const Combination& c, bool quick);
void two_devices(Tally& tally, bool quick);

// topics_invariance.cpp
void batch_invariance(Tally& tally, const Combination& c, bool quick);

// topics_arguments.cpp
void arguments(Tally& tally, const Combination& c, bool quick);

}  // namespace header_test
