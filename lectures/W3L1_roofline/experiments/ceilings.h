// The ceilings as a table: what each kernel of the ladder moved or computed in its time.
#pragma once
#include <vector>

#include "common/experiment.h"

namespace ladder::roofline {

Table ceilings(const Report& report);

inline const std::vector<Experiment> experiments = {
    {"ceilings", "how many bytes or operations per second is each unit good for?", ceilings},
};

}  // namespace ladder::roofline
