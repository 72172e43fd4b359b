// Signals that device code raises become CUDA errors; kernels that hang are stopped.
#pragma once
#include <signal.h>

#include <cstdint>
#include <string>

#include "cuda_runtime_api.h"

namespace simt {

class Worker;
struct Lane;
struct Launch;

constexpr int kSignals = 5;

// For host code that accesses device memory: unless the program has handlers of its own.
void install_fault_handlers();

// What is left to do when a signal is about to end the process; null for nothing.
extern void (*before_death)();

std::string timeout_sentence(const Lane& lane);  // it is the lane that runs

std::string short_kernel_name(const Launch& launch);  // without scopes, a template with its arguments

// In place while kernels run, whatever handlers the program has. Starts the watchdog the first time.
class FaultHandlers {
 public:
  FaultHandlers();
  ~FaultHandlers();
  FaultHandlers(const FaultHandlers&) = delete;
  FaultHandlers& operator=(const FaultHandlers&) = delete;
};

// Ends the kernel with the student's line that led to an instruction.
[[noreturn]] void fail_at_line(Worker& worker, cudaError_t error, uintptr_t pc, const std::string& sentence);

// Threads that start while it is in place never get a signal that is to end the program: the program's own threads do,
// whose handlers know what they hold.
class WithoutInterrupts {
 public:
  WithoutInterrupts();
  ~WithoutInterrupts();
  WithoutInterrupts(const WithoutInterrupts&) = delete;
  WithoutInterrupts& operator=(const WithoutInterrupts&) = delete;

 private:
  sigset_t before_;
};

// Gives the calling thread a stack for the handlers, since the fault may be a stack overflow.
void use_fault_stack();

}  // namespace simt
