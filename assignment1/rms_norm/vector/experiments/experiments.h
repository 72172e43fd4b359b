// Experiments 2 and 3, for a GPU. Each returns a table; none prints.
#pragma once
#include <vector>

#include "common/experiment.h"

namespace ladder::vector {

Table warm(const Report& report);
Table waits(const Report& report);

inline const std::vector<Experiment> experiments = {
    {"warm", "how fast does each stage seem to be if the data is in the L2 cache?", warm},
    {"waits", "what do a launch and a barrier over the grid cost, if there is nothing else to do?", waits},
};

}  // namespace ladder::vector
