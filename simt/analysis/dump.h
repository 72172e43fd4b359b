// Writes the results as JSON when the program ends.
#pragma once
#include <atomic>
#include <string>

#include "observer.h"

namespace simt::analysis {

std::string hazards_json();  // a JSON array

// A signal that came while a kernel was launched or ran: the results are written between two of its steps, or when it
// has ended, and the program ends.
extern std::atomic<int> interrupted;
void end_if_interrupted();

// Members of an object, "file":"/path","line":12: the student's line that a return address belongs to, or null and 0.
std::string place_json(Pc pc);
std::string place_json(const std::string& file, int line);

}  // namespace simt::analysis
