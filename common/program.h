// What every program does around its work: errors as one sentence and an exit code, a clean end on Ctrl-C.
#pragma once
#include <functional>

namespace ladder {

// Runs a program's body, which returns the exit code. Whatever it throws becomes one sentence on stderr and the exit
// code 2 (UsageError) or 1; HelpAsked is printed. After SIGINT, SIGTERM or SIGHUP the exit code is 128 + the signal.
int guarded(const char* program, const std::function<int()>& body);

// Throws if no device can be used. The CPU device becomes as many as `devices`, unless SIMT_DEVICES asks for another
// number.
void require_device(int devices = 1);

}  // namespace ladder
