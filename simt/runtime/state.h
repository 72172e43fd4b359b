// What every API function shares: the lock, the last error, the error that a kernel left, and the way into a stream.
#pragma once
#include <functional>
#include <mutex>
#include <string>

#include "cuda_runtime_api.h"
#include "simt/core.h"
#include "unread.h"

namespace simt {

class Worker;
extern __thread Worker* worker;  // null outside a kernel

std::recursive_mutex& api_mutex();  // every API call holds it

// Remembers an error as the thread's last one and returns it; the sticky one wins.
cudaError_t record(cudaError_t error);
void set_sticky(cudaError_t error);  // after a kernel fault: every later call returns it until cudaDeviceReset
void clear_errors();
cudaError_t last_error_of_thread();
cudaError_t sticky();
bool is_stopped();  // by a sticky error: nothing is done any more

extern bool runs_on_after_fault;  // an analysis goes on, though every call returns the sticky error

extern bool is_profiling;  // from the start on, and between cudaProfilerStart and cudaProfilerStop

extern thread_local bool in_host_function;  // a callback makes no API calls

inline void refuse_in_kernel() {
  if (worker) device_fault(cudaErrorNotSupported, "the CPU device does not call the runtime API from kernels", {});
}

// The body of an API function.
template <class Body>
cudaError_t api(Body&& body) {
  refuse_in_kernel();
  std::lock_guard<std::recursive_mutex> lock(api_mutex());
  forget_explanation();
  if (in_host_function) return record(cudaErrorNotPermitted);
  if (is_stopped()) return record(sticky());
  return record(body());
}

// Says on stderr what the CPU device cannot do; returns cudaErrorNotSupported.
cudaError_t not_supported(const std::string& sentence);

using Operation = std::function<cudaError_t()>;

// Validates the handle, then runs the operation, or records it into the graph that the stream is being captured into.
cudaError_t enqueue(cudaStream_t stream, Operation operation, cudaGraphNodeType type = cudaGraphNodeTypeKernel);

// Of the operation that runs: the launch directly before it, on its stream or in its graph. 0 if something else is
// there, or if the host has waited since. A launch notes its own number.
uint64_t launch_before();
void note_launch(uint64_t id);
void note_host_wait();  // for the whole device: no launch can overlap one before it

// A call that waits for the device is refused during a capture, and invalidates it.
cudaError_t check_unsafe_call();    // cudaMalloc and the like: by the rules of cudaThreadExchangeStreamCaptureMode
cudaError_t check_legacy_stream();  // what uses the legacy stream, as cudaMemcpy does
cudaError_t check_device_wait();
bool is_capturing(cudaStream_t stream);

void reset_streams(int device);  // cudaDeviceReset: its streams, events and graphs are gone

// What the extras, which a program links only where it calls them, have to forget then. Called before main.
bool at_device_reset(void (*forget)());
void reset_extras();

}  // namespace simt
