// Errors that the program has not asked for. CUDA keeps silent about a refused launch and about a code that nobody
// looks at; here a sentence says it when the program ends, or when no call can ask for the error any more.
#pragma once
#include <string>
#include <vector>

#include "cuda_runtime_api.h"

namespace simt {

void explain(std::string why);  // the refusal that this thread's API call is about to return
void forget_explanation();      // a new call begins

// Under api_mutex().
void note_unread(const std::string& what, const char* file, int line, cudaError_t error, const char* advice);
void was_read();  // this thread asked for its last error
void lose();      // another error takes the place of this thread's last one
void lose_all();  // and of every thread's

std::string failed_allocation();             // "", or which allocation gave no memory, for a null pointer
void say(const std::string& sentence);       // on stderr, once
void add_said(const std::string& sentence);  // an error that is on stderr and is no kernel's own
const std::vector<std::string>& all_said();  // also those

}  // namespace simt
