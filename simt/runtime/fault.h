// Signals that device code raises become CUDA errors; kernels that hang are stopped.
#pragma once
#include <signal.h>

namespace simt {

constexpr int kSignals = 4;

// For host code that accesses device memory: unless the program has handlers of its own.
void install_fault_handlers();

// Stands while kernels run, whatever handlers the program has. Starts the watchdog the first time.
class FaultHandlers {
 public:
  FaultHandlers();
  ~FaultHandlers();
  FaultHandlers(const FaultHandlers&) = delete;
  FaultHandlers& operator=(const FaultHandlers&) = delete;

 private:
  struct sigaction previous_[kSignals];
};

// Gives the calling thread a stack for the handlers, since the fault may be a stack overflow.
void use_fault_stack();

}  // namespace simt
