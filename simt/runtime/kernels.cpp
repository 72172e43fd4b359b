#include "kernels.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "state.h"

namespace simt {

namespace {

struct Kernels {
  std::unordered_set<const void*> entries;  // of all that were compiled; empty where g++ has kept no list of them
  std::unordered_map<const void*, KernelState> states;
};

Kernels& kernels() {  // guarded by api_mutex()
  static auto* kernels = new Kernels;
  return *kernels;
}

}  // namespace

void note_kernels(const char* const* begin, const char* const* end) {
  std::lock_guard<std::recursive_mutex> lock(api_mutex());
  for (; begin != end; ++begin) kernels().entries.insert(*begin + kBytesBeforeKernel);
}

bool is_kernel(const void* function) {
  std::lock_guard<std::recursive_mutex> lock(api_mutex());
  return function && (kernels().entries.empty() || kernels().entries.count(function));
}

void register_kernel(const void* function, Binder binder) {
  std::lock_guard<std::recursive_mutex> lock(api_mutex());
  kernels().states[function].binder = binder;
}

KernelState state_of(const void* kernel) {
  std::lock_guard<std::recursive_mutex> lock(api_mutex());
  const auto known = kernels().states.find(kernel);
  return known == kernels().states.end() ? KernelState{} : known->second;
}

}  // namespace simt

using namespace simt;

cudaError_t cudaFuncSetAttribute(const void* function, cudaFuncAttribute attribute, int value) {
  std::lock_guard<std::recursive_mutex> lock(api_mutex());
  if (!is_kernel(function)) return record(cudaErrorInvalidDeviceFunction);
  KernelState& state = kernels().states[function];
  switch (attribute) {
    case cudaFuncAttributeMaxDynamicSharedMemorySize:
      if (value < 0 || static_cast<size_t>(value) > kSharedLimit) return record(cudaErrorInvalidValue);
      state.max_dynamic_shared = std::max(value, static_cast<int>(kStaticSharedLimit));
      return cudaSuccess;
    case cudaFuncAttributePreferredSharedMemoryCarveout:
      return value < -1 || value > 100 ? record(cudaErrorInvalidValue) : cudaSuccess;
    case cudaFuncAttributeNonPortableClusterSizeAllowed:
      state.non_portable_cluster = value != 0;
      return cudaSuccess;
    default:
      return record(cudaErrorInvalidValue);
  }
}

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* function) {
  if (!attributes) return record(cudaErrorInvalidValue);
  if (!is_kernel(function)) return record(cudaErrorInvalidDeviceFunction);
  *attributes = {};
  attributes->maxThreadsPerBlock = kMaxThreads;
  attributes->maxDynamicSharedSizeBytes = state_of(function).max_dynamic_shared;
  attributes->binaryVersion = attributes->ptxVersion = 90;
  return cudaSuccess;
}

cudaError_t cudaFuncSetCacheConfig(const void* function, cudaFuncCache) {
  return is_kernel(function) ? cudaSuccess : record(cudaErrorInvalidDeviceFunction);
}
cudaError_t cudaFuncSetSharedMemConfig(const void* function, cudaSharedMemConfig) {
  return is_kernel(function) ? cudaSuccess : record(cudaErrorInvalidDeviceFunction);
}
