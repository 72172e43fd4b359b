// How much memory this machine can give to the device.
#pragma once
#include <cstddef>

namespace simt {

struct Capacity {
  size_t total;  // physical memory, or the control group's limit if that is less
  size_t free;   // of it, what can still be had without swapping
};
Capacity host_capacity();

}  // namespace simt
