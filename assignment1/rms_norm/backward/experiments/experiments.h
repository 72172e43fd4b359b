// Experiment 2: what the other kinds of call cost. It returns a table and prints nothing.
#pragma once
#include <vector>

#include "common/experiment.h"

namespace ladder::backward {

Table forms(const Report& report);

inline const std::vector<Experiment> experiments = {
    {"forms", "other types; no weight; the residual's gradient; a stored rstd: what does each cost?", forms},
};

}  // namespace ladder::backward
