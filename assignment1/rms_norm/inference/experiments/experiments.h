// Experiments 2 to 5. Each returns a table; none prints.
#pragma once
#include <vector>

#include "common/experiment.h"

namespace ladder::inference {

Table dispatch(const Report& report);
Table document(const Report& report);
Table resources(const Report& report);
Table replay(const Report& report);

inline const std::vector<Experiment> experiments = {
    {"dispatch", "which kernel serves which types and ranks, and what is refused?", dispatch, false},
    {"resources", "what does a kernel take of a multiprocessor, and how many of its blocks fit?", resources},
    {"document", "the document's timing table, and what it lacks", document},
    {"replay", "what do the calls of one step of a model take?", replay},
};

}  // namespace ladder::inference
