// Experiments 2 to 4. Each returns a table; none prints.
#pragma once
#include <vector>

#include "common/experiment.h"

namespace ladder::precision {

Table document(const Report& report);
Table magnitude(const Report& report);
Table thresholds(const Report& report);

inline const std::vector<Experiment> experiments = {
    {"document", "the document's table: outputs and times, and their errors", document, false},
    {"magnitude", "how large is the error, if all elements grow?", magnitude, false},
    {"thresholds", "from which element on is the result 0, and up to which is it infinite?", thresholds, false},
};

// What kernels do with a row, in the format of their elements.
struct Format {
  int digits, lowest_exponent;  // bits of the significand; of the smallest normal number
};
Format format_of(Type type);
double last_place(double value, Type type);  // the distance to the next number of the format, away from 0

// `count` normally distributed numbers with the mean 0 and the variance 1; the same for all formats.
std::vector<float> normal_numbers(int64_t count, uint64_t seed);

}  // namespace ladder::precision
