// What 8 bits cost in error. It returns a table, and prints nothing.
#pragma once
#include <vector>

#include "common/experiment.h"

namespace ladder::quantized {

Table outliers(const Report& report);

inline const std::vector<Experiment> experiments = {
    {"outliers", "how large is the error of the other columns, if one column of a row is large?", outliers, false},
};

}  // namespace ladder::quantized
