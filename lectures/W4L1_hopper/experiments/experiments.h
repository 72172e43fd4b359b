// Experiments 2 to 5, for a GPU: each pair over the sizes at which its feature gains and costs.
#pragma once
#include <vector>

#include "common/experiment.h"

namespace ladder::hopper {

// The pairs, which the program checks and times; and the same kernels in other shapes, for the experiments alone.
extern const std::vector<AnyStage> stages, variants;

Table cluster(const Report& report);
Table bulk_copy(const Report& report);
Table dependent_launch(const Report& report);
Table residency(const Report& report);

inline const std::vector<Experiment> experiments = {
    {"cluster", "when do eight blocks of a cluster beat one?", cluster},
    {"bulk_copy", "how many threads does it take to keep memory busy?", bulk_copy},
    {"dependent_launch", "how long is the pause between two kernels?", dependent_launch},
    {"residency", "which tables does L2 keep if it is asked to?", residency},
};

}  // namespace ladder::hopper
