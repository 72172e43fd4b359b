// Experiments 2 to 6, for a GPU. Each returns a table; none prints.
#pragma once
#include <vector>

#include "common/experiment.h"

namespace ladder::serving {

Table grid(const Report& report);
Table claims(const Report& report);
Table multi_stream(const Report& report);
Table block_sizes(const Report& report);
Table claims_bfloat16(const Report& report);

inline const std::vector<Experiment> experiments = {
    {"grid", "before, after and the production header on every shape of the document", grid},
    {"claims", "what is each change worth if it alone is switched on?", claims},
    {"multi_stream", "several tensors: one after the other, on several streams, or in one launch?", multi_stream},
    {"block_sizes", "how many threads should a block have?", block_sizes},
    {"claims_bfloat16", "what is each change worth for bfloat16?", claims_bfloat16},
};

}  // namespace ladder::serving
