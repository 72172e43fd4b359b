#include "common/memory_check.h"

#include <algorithm>
#include <fstream>
#include <string>

#include "common/errors.h"
#include "common/text.h"
#include "common/timing.h"

namespace ladder {
namespace {

// The number after a word in a file of the system; 0: there is none.
double number_after(const std::string& wanted, const char* path) {
  std::ifstream file(path);
  double number = 0;
  for (std::string word; file >> word;)
    if (word == wanted && file >> number) return number;
  return 0;
}

// Host memory that can still be had, within the limit of the container too; 0: unknown. What a container has cached of
// files counts as used there, but is given up when memory is short.
double available_host_bytes() {
  double available = 1024.0 * number_after("MemAvailable:", "/proc/meminfo");
  double limit = 0, used = 0;
  if (std::ifstream("/sys/fs/cgroup/memory.max") >> limit && std::ifstream("/sys/fs/cgroup/memory.current") >> used) {
    const double cached = number_after("inactive_file", "/sys/fs/cgroup/memory.stat");
    available = std::min(available, std::max(limit - used + cached, 0.0));
  }
  return available;
}

}  // namespace

void require_memory(const Operator& op, const Shape& shape, const Device& device, bool timing) {
  const std::vector<Tensor> all = op.tensors(shape);
  double tensors = 0, slack = 64e6;
  for (const Tensor& tensor : all) {
    tensors += tensor.bytes();
    slack += 8.0 * (static_cast<double>(tensor.rows) + static_cast<double>(tensor.cols > 1 ? tensor.cols / 8 : 0));
  }
  // The copy kernel's buffers are given back before the pool is made.
  const double pool = timing ? Pool::bytes(all, op.plain(), device) : 0.0;
  const double on_device = std::max(tensors, pool) + slack;
  const double on_host = tensors + slack + (device.cpu ? on_device : 0.0);
  std::string options;
  for (const Parameter& parameter : op.parameters())
    if (parameter.choices.empty()) options += (options.empty() ? "--" : " or --") + std::string(parameter.name);
  const auto refuse = [&](double needed, double available, const char* where) {
    throw UsageError(text("%s: needs %.1f GB of %s memory, %.1f GB are free; give smaller %s",
                          shape_text(op, shape).c_str(), needed / 1e9, where, available / 1e9, options.c_str()));
  };
  const double host = available_host_bytes();
  if (host > 0 && on_host > host) refuse(on_host, host, "host");
  if (device.cpu) return;
  size_t free_bytes = 0, total_bytes = 0;
  CUDA_CHECK(cudaMemGetInfo(&free_bytes, &total_bytes));
  if (on_device > static_cast<double>(free_bytes)) refuse(on_device, static_cast<double>(free_bytes), "GPU");
}

}  // namespace ladder
