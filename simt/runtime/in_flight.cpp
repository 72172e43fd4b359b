#include "in_flight.h"

#include <algorithm>
#include <vector>

#include "devices.h"
#include "memory.h"
#include "state.h"

namespace simt {

std::atomic<bool> is_in_flight{false}, printed_in_flight{false};

namespace {

struct InFlight {
  Allocation memory;
  std::string kernel;
};
std::vector<InFlight>& in_flight() {  // guarded by api_mutex()
  static auto* all = new std::vector<InFlight>;
  return *all;
}
std::string& latest() {
  static auto* kernel = new std::string;
  return *kernel;
}

}  // namespace

void starts(const Launch& launch, const LaunchConfig& config) {
  latest() = "the latest kernel";
  if (config.kernel)
    latest() =
        std::string("the kernel ") + config.kernel + " (" + config.file + ":" + std::to_string(config.line) + ")";
  for (const auto& [position, pointer, writable] : *launch.body) {
    Allocation a;
    if (!writable || !find_allocation(pointer, a) || (a.kind != MemoryKind::managed && a.kind != MemoryKind::pinned))
      continue;
    in_flight().push_back({a, latest()});
    is_in_flight = true;
  }
}

void was_waited_for() {
  if (!is_in_flight && !printed_in_flight) return;
  std::lock_guard<std::recursive_mutex> lock(api_mutex());
  in_flight().clear();
  is_in_flight = printed_in_flight = false;
}

std::string unsafe_access(const void* pointer, bool polls) {
  std::lock_guard<std::recursive_mutex> lock(api_mutex());
  if (in_host_function || (polls && several_devices())) return "";
  auto& all = in_flight();
  const auto address = reinterpret_cast<uintptr_t>(pointer);
  const auto found = std::find_if(all.begin(), all.end(),
                                  [&](const InFlight& one) { return address - one.memory.begin < one.memory.size; });
  if (found == all.end()) return "";
  const std::string memory = std::string("memory of ") + found->memory.made_by, kernel = found->kernel;
  all.erase(found);
  if (polls)
    return "host code polls " + memory + " that " + kernel +
           " uses, without waiting for it; on the CPU device a kernel runs to its end within its launch, so host and "
           "kernel cannot exchange values while it runs";
  return "host code uses " + memory + " that " + kernel +
         " may still write, since nothing has waited for it; call cudaDeviceSynchronize() first";
}

void say_unflushed() {
  std::lock_guard<std::recursive_mutex> lock(api_mutex());
  if (printed_in_flight.exchange(false))
    say(latest() +
        " prints, and the program ends without waiting for it: on a GPU what it prints may never be shown; "
        "call cudaDeviceSynchronize() before the end");
}

}  // namespace simt
