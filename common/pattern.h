// What is regular about where wrong elements lie: by lane, by warp, at an end, in every second place. It says more of a
// fault than the first wrong element does.
#pragma once
#include <string>

#include "common/compare.h"

namespace ladder {

// Of an output that failed: "" or phrases that begin with "; ".
std::string pattern(const Comparison& comparison, const Output& output);

}  // namespace ladder
