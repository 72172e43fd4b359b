#include "state.h"

#include <atomic>
#include <cstdio>
#include <vector>

namespace simt {

namespace {
thread_local cudaError_t last_error = cudaSuccess;
std::atomic<cudaError_t> sticky_error{cudaSuccess};

struct ErrorText {
  int number;
  const char *name, *text;
};
constexpr ErrorText kErrors[] = {
#define SIMT_ERROR(name, number, text) {number, #name, text},
#include "simt/errors.def"
#undef SIMT_ERROR
};

const ErrorText& error_text(cudaError_t error) {
  static constexpr ErrorText kUnknown = {0, "unrecognized error code", "unrecognized error code"};
  for (const ErrorText& known : kErrors)
    if (known.number == static_cast<int>(error)) return known;
  return kUnknown;
}
}  // namespace

bool is_profiling = true;
bool runs_on_after_fault = false;
thread_local bool in_host_function = false;

std::recursive_mutex& api_mutex() {
  static auto* mutex = new std::recursive_mutex;  // outlives the objects that free device memory at exit
  return *mutex;
}

bool in_kernel() { return worker; }

cudaError_t sticky() { return sticky_error; }
void set_sticky(cudaError_t error) { sticky_error = error; }
bool is_stopped() { return sticky() != cudaSuccess && !runs_on_after_fault; }
cudaError_t last_error_of_thread() { return last_error; }
void clear_errors() {
  lose_all();
  runs_on_after_fault = false;
  sticky_error = cudaSuccess;
  last_error = cudaSuccess;
}

cudaError_t record(cudaError_t error) {
  if (sticky() != cudaSuccess) error = sticky();
  if (error == cudaSuccess) return error;
  std::lock_guard<std::recursive_mutex> lock(api_mutex());
  lose();
  return last_error = error;
}

namespace {
std::vector<void (*)()>& forgetting() {
  static auto* functions = new std::vector<void (*)()>;
  return *functions;
}
}  // namespace

bool at_device_reset(void (*forget)()) {
  forgetting().push_back(forget);
  return true;
}

void reset_extras() {
  for (void (*forget)() : forgetting()) forget();
}

cudaError_t not_supported(const std::string& sentence) {
  std::fprintf(stderr, "simt: %s\n", sentence.c_str());
  return cudaErrorNotSupported;
}

}  // namespace simt

using namespace simt;

cudaError_t cudaPeekAtLastError() {
  std::lock_guard<std::recursive_mutex> lock(api_mutex());
  was_read();
  return record(last_error);
}

cudaError_t cudaGetLastError() {
  const cudaError_t error = cudaPeekAtLastError();
  last_error = cudaSuccess;
  return error;
}

const char* cudaGetErrorName(cudaError_t error) { return error_text(error).name; }
const char* cudaGetErrorString(cudaError_t error) { return error_text(error).text; }

cudaError_t cudaDriverGetVersion(int* driverVersion) {
  if (!driverVersion) return record(cudaErrorInvalidValue);
  *driverVersion = CUDART_VERSION;
  return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int* runtimeVersion) { return cudaDriverGetVersion(runtimeVersion); }
