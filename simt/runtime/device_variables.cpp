// __device__ and __constant__ variables are variables of the program. With several devices each has its own copy: that
// of the device whose operation runs is in place.
#include "device_variables.h"

#include <cstring>
#include <string>
#include <vector>

#include "devices.h"
#include "simt/core.h"

namespace simt {

namespace {

struct Variable {
  void* address;
  size_t size;
  std::vector<std::string> copies;  // of each device but the one in place
};

std::vector<Variable>& variables() {
  static auto* all = new std::vector<Variable>;
  return *all;
}

size_t prepared = 0;
int in_place = 0;

}  // namespace

void add_device_variable(void* address, size_t size) {
  for (const Variable& known : variables())
    if (known.address == address) return;  // an inline variable, once for each file
  variables().push_back({address, size, {}});
}

void put_variables_in_place(int device) {
  auto& all = variables();
  for (; prepared < all.size(); ++prepared) {
    Variable& fresh = all[prepared];
    fresh.copies.assign(static_cast<size_t>(device_count()),
                        std::string(static_cast<const char*>(fresh.address), fresh.size));
  }
  if (device == in_place) return;
  for (Variable& variable : all) {
    std::memcpy(variable.copies[static_cast<size_t>(in_place)].data(), variable.address, variable.size);
    std::memcpy(variable.address, variable.copies[static_cast<size_t>(device)].data(), variable.size);
  }
  in_place = device;
}

}  // namespace simt
