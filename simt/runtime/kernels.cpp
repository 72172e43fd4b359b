#include "kernels.h"

#include <link.h>

#include <algorithm>
#include <cstdint>
#include <unordered_map>
#include <unordered_set>

#include "state.h"

namespace simt {

namespace {

std::unordered_map<const void*, KernelState>& kernels() {  // guarded by api_mutex()
  static auto* kernels = new std::unordered_map<const void*, KernelState>;
  return *kernels;
}

// Where the program's kernels call runs::as_kernel(), each relative to its place in the list.
extern "C" __attribute__((weak, visibility("hidden"))) const int32_t __start_simt_kernels[], __stop_simt_kernels[];

// libgcc's lookup of the function around an address, by which exceptions are unwound.
extern "C" struct dwarf_eh_bases { void *text, *data, *function; };
extern "C" const void* _Unwind_Find_FDE(void* address, dwarf_eh_bases* bases);

const std::unordered_set<const void*>& listed_kernels() {
  static const auto* const kernels = [] {
    auto* found = new std::unordered_set<const void*>;
    for (const int32_t* place = __start_simt_kernels; place != __stop_simt_kernels; ++place) {
      dwarf_eh_bases bases;
      char* const inside = const_cast<char*>(reinterpret_cast<const char*>(place)) + *place;
      if (_Unwind_Find_FDE(inside, &bases)) found->insert(bases.function);
    }
    return found;
  }();
  return *kernels;
}

enum class Code { none, own, foreign };  // foreign: of another shared object than this runtime

Code code_of(const void* function) {
  struct Search {
    uintptr_t function;
    Code code;
  } search{reinterpret_cast<uintptr_t>(function), Code::none};
  const auto look = [](dl_phdr_info* object, size_t, void* data) {
    auto& search = *static_cast<Search*>(data);
    const auto holds = [&](uintptr_t address) {
      return std::any_of(object->dlpi_phdr, object->dlpi_phdr + object->dlpi_phnum, [&](const auto& part) {
        return part.p_type == PT_LOAD && part.p_flags & PF_X &&
               address - (object->dlpi_addr + part.p_vaddr) < part.p_memsz;
      });
    };
    if (!holds(search.function)) return 0;
    search.code = holds(reinterpret_cast<uintptr_t>(&listed_kernels)) ? Code::own : Code::foreign;
    return 1;
  };
  dl_iterate_phdr(look, &search);
  return search.code;
}

}  // namespace

bool is_kernel(const void* function) {
  switch (code_of(function)) {
    case Code::none:
      return false;
    case Code::foreign:
      return true;  // its list is out of reach
    case Code::own:
      return listed_kernels().count(function) > 0;
  }
  return false;
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
  if (!is_kernel(function)) return record(cudaErrorInvalidDeviceFunction);
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
