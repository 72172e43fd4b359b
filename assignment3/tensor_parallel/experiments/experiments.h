// What the page measures besides the times of the stages. Each returns a table and prints nothing.
#pragma once
#include <vector>

#include "common/experiment.h"

namespace ladder::tensor_parallel {

Table link(const Report& report);
Table late(const Report& report);

inline const std::vector<Experiment> experiments = {
    {"link", "what do loads, stores and flags cost that go to another GPU?", link},
    {"late", "are all launches right where one rank comes late at random?", late},
};

}  // namespace ladder::tensor_parallel
