// Experiments 2 to 4, for a GPU: what the clocks in the kernels show.
#pragma once
#include <vector>

#include "common/experiment.h"

namespace ladder::latency {

Table latency(const Report& report);
Table footprint(const Report& report);
Table l2_sides(const Report& report);

inline const std::vector<Experiment> experiments = {
    {"latency", "how many cycles does a step take, and how many steps does an SM do at once?", latency},
    {"footprint", "from which size of the table on does a load go further?", footprint},
    {"l2_sides", "how far is a line of L2 from each SM?", l2_sides},
};

}  // namespace ladder::latency
