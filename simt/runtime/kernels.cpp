#include "kernels.h"

#include <link.h>

#include <algorithm>
#include <unordered_map>

#include "state.h"

namespace simt {

namespace {

std::unordered_map<const void*, KernelState>& kernels() {  // guarded by api_mutex()
  static auto* kernels = new std::unordered_map<const void*, KernelState>;
  return *kernels;
}

}  // namespace

bool can_be_kernel(const void* function) {
  struct Search {
    uintptr_t address;
    bool is_code;
  } search{reinterpret_cast<uintptr_t>(function), false};
  const auto look = [](dl_phdr_info* object, size_t, void* data) {
    auto& search = *static_cast<Search*>(data);
    for (int i = 0; i < object->dlpi_phnum; ++i) {
      const auto& part = object->dlpi_phdr[i];
      if (part.p_type == PT_LOAD && part.p_flags & PF_X &&
          search.address - (object->dlpi_addr + part.p_vaddr) < part.p_memsz)
        search.is_code = true;
    }
    return static_cast<int>(search.is_code);
  };
  dl_iterate_phdr(look, &search);
  return search.is_code;
}

void register_kernel(const void* function, Binder binder) {
  std::lock_guard<std::recursive_mutex> lock(api_mutex());
  kernels()[function].binder = binder;
}

KernelState state_of(const void* kernel) {
  std::lock_guard<std::recursive_mutex> lock(api_mutex());
  const auto known = kernels().find(kernel);
  return known == kernels().end() ? KernelState{} : known->second;
}

}  // namespace simt

using namespace simt;

cudaError_t cudaFuncSetAttribute(const void* function, cudaFuncAttribute attribute, int value) {
  std::lock_guard<std::recursive_mutex> lock(api_mutex());
  if (!can_be_kernel(function)) return record(cudaErrorInvalidDeviceFunction);
  KernelState& state = kernels()[function];
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
  if (!can_be_kernel(function)) return record(cudaErrorInvalidDeviceFunction);
  *attributes = {};
  attributes->maxThreadsPerBlock = kMaxThreads;
  attributes->maxDynamicSharedSizeBytes = state_of(function).max_dynamic_shared;
  attributes->binaryVersion = attributes->ptxVersion = 90;
  return cudaSuccess;
}

cudaError_t cudaFuncSetCacheConfig(const void* function, cudaFuncCache) {
  return can_be_kernel(function) ? cudaSuccess : record(cudaErrorInvalidDeviceFunction);
}
cudaError_t cudaFuncSetSharedMemConfig(const void* function, cudaSharedMemConfig) {
  return can_be_kernel(function) ? cudaSuccess : record(cudaErrorInvalidDeviceFunction);
}
