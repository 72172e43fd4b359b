#include "common/memory_check.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "common/errors.h"
#include "common/text.h"
#include "common/timing.h"
#include "simt/runtime/capacity.h"

namespace ladder {
namespace {

std::string options_of(const Operator& op) {
  std::string options;
  for (const Parameter& parameter : op.parameters())
    if (parameter.choices.empty()) options += (options.empty() ? "--" : " or --") + std::string(parameter.name);
  return options;
}

int device_count() {
  int devices = 0;
  CUDA_CHECK(cudaGetDeviceCount(&devices));
  return devices;
}

// "": there is enough; or what there is too little of, "needs 1.2 GB of memory, 0.5 GB are free".
std::string lack_of_memory(const Operator& op, const Shape& shape, const Device& device, bool timing) {
  const std::vector<Tensor> all = op.tensors(shape);
  double tensors = 0, slack = 64e6;
  for (const Tensor& tensor : all) {
    tensors += tensor.bytes();
    slack += 8.0 * (static_cast<double>(tensor.rows) + static_cast<double>(tensor.cols > 1 ? tensor.cols / 8 : 0));
  }
  // The copy kernel's buffers are given back before the pool is made.
  const double pool = timing ? Pool::bytes(all, op.plain(), device) : 0.0;
  const double on_device = std::max(tensors, pool) + slack;
  const double on_host = tensors + slack;
  size_t free_on_device = 0, total = 0;
  CUDA_CHECK(cudaMemGetInfo(&free_on_device, &total));
  const simt::Capacity host = simt::host_capacity();
  struct Memory {
    double needed;
    size_t free;
    std::string name;
  };
  std::vector<Memory> memories = {{on_device, free_on_device, "GPU memory"}};
  if (host.total > 0) memories.push_back({on_host, host.free, "host memory"});
  if (device.cpu) {  // all of it is the host's, and what the host locks is taken from the device's addresses
    const bool limited = simt::address_space() != SIZE_MAX;
    const size_t free = std::min(host.free, free_on_device * static_cast<size_t>(device_count()));
    memories = {{on_host + on_device, free, limited ? "memory within ulimit -v" : "memory"}};
  }
  for (const Memory& memory : memories)
    if (memory.needed > static_cast<double>(memory.free))
      return text("needs %.1f GB of %s, %.1f GB are free", memory.needed / 1e9, memory.name.c_str(),
                  static_cast<double>(memory.free) / 1e9);
  return "";
}

// Halves the largest number of the shape; false where none can be smaller.
bool halve(const Operator& op, Shape& shape) {
  const std::vector<Parameter> parameters = op.parameters();
  int largest = -1;
  for (int i = 0; i < static_cast<int>(parameters.size()); ++i) {
    const Parameter& p = parameters[i];
    if (!p.choices.empty() || shape[i] / 2 < std::max(p.lowest, p.step)) continue;
    if (largest < 0 || shape[i] > shape[largest]) largest = i;
  }
  if (largest < 0) return false;
  shape.values[largest] = shape[largest] / 2 / parameters[largest].step * parameters[largest].step;
  return true;
}

}  // namespace

void require_memory(const Operator& op, const Shape& shape, const Device& device, bool timing) {
  const int devices = device_count();
  if (op.devices(shape) > devices)
    throw UsageError(text("%s: needs %d devices, there %s %d; give fewer%s", shape_text(op, shape).c_str(),
                          op.devices(shape), devices == 1 ? "is" : "are", devices,
                          device.cpu ? ", or leave SIMT_DEVICES out" : ", or build with BACKEND=cpu"));
  const std::string lack = lack_of_memory(op, shape, device, timing);
  if (lack.empty()) return;
  throw UsageError(
      text("%s: %s; give smaller %s", shape_text(op, shape).c_str(), lack.c_str(), options_of(op).c_str()));
}

Shape fitting_shape(const std::vector<AnyStage>& stages, const Options& options, const Device& device) {
  Shape shape = options.shape;
  if (!device.cpu || options.shape_given) return shape;
  for (const size_t position : options.stages) {
    const Operator& op = *stages[position].op;
    const Shape wanted = shape;
    const std::string lack = lack_of_memory(op, wanted, device, false);
    if (lack.empty()) continue;
    while (!lack_of_memory(op, shape, device, false).empty())
      if (!halve(op, shape)) require_memory(op, wanted, device, false);
    std::printf("%s %s: the input is %s; %s choose another\n", shape_text(op, wanted).c_str(), lack.c_str(),
                shape_text(op, shape).c_str(), options_of(op).c_str());
  }
  return shape;
}

}  // namespace ladder
