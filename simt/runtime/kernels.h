// The program's kernels, and what it has set of them.
#pragma once
#include "device_limits.h"
#include "simt/launch.h"

namespace simt {

struct KernelState {
  Binder binder = nullptr;  // of kernels that were registered by their type
  int max_dynamic_shared = static_cast<int>(kStaticSharedLimit);
  bool non_portable_cluster = false;
};
KernelState state_of(const void* kernel);

}  // namespace simt
