// Writes the results as JSON when the program ends.
#pragma once
#include <string>

#include "events.h"

namespace simt::analysis {

std::string pc_json(Pc pc);  // {"object": "/path/of/program", "offset": 1234}
std::string hazards_json();  // a JSON array

}  // namespace simt::analysis
