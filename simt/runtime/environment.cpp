#include "environment.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <mutex>
#include <numeric>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "capacity.h"
#include "device_limits.h"
#include "devices.h"
#include "launch.h"
#include "simt/analysis.h"

namespace simt {

namespace {

constexpr int kMostWorkers = 1024, kMostMultiprocessors = 1024;

struct Settings {
  std::mutex mutex;
  std::map<std::string, std::string, std::less<>> texts;  // by the variables' names

  Settings() { read(); }
  void read() {
    texts.clear();
    for (char** variable = environ; variable && *variable; ++variable) {
      const std::string_view text = *variable;
      const size_t equals = text.find('=');
      if (text.substr(0, 5) == "SIMT_" && equals != text.npos)
        texts.emplace(text.substr(0, equals), text.substr(equals + 1));
    }
  }
};

// Never destroyed: threads that read it outlive main.
Settings& settings() {
  static auto* all = new Settings;
  return *all;
}

std::string is_not_allowed(const char* variable, const std::string& allowed) {
  return std::string(variable) + " is '" + setting(variable).value_or("") + "'; it must be " + allowed;
}

bool is_set(const char* variable, const char* value) { return setting(variable) == value; }

int asked_number(const char* variable, int most) {  // 0 if there is none, or what there is makes no sense
  const int asked = std::atoi(setting(variable).value_or("0").c_str());
  return asked >= 1 && asked <= most ? asked : 0;
}

std::string order_asked() { return setting("SIMT_ORDER").value_or("forward"); }

bool is_seed(const std::string& order) {
  return !order.empty() && order.find_first_not_of("0123456789") == std::string::npos;
}

void shuffle(std::vector<uint32_t>& v, std::mt19937_64& random) {
  for (size_t i = v.size(); i > 1; --i) std::swap(v[i - 1], v[random() % i]);
}

// SIMT_ORDER: forward (default), reversed, or the seed of a shuffle.
std::string set_order(Launch& launch) {
  const std::string order = order_asked();
  std::vector<uint32_t> lanes(32), warps(launch.warps_per_block);
  std::iota(lanes.begin(), lanes.end(), 0);
  std::iota(warps.begin(), warps.end(), 0);
  if (order == "reversed") {
    std::reverse(lanes.begin(), lanes.end());
    std::reverse(warps.begin(), warps.end());
    launch.copies_land_early = true;
  } else if (is_seed(order)) {
    std::mt19937_64 random(std::strtoull(order.c_str(), nullptr, 10));
    shuffle(lanes, random);
    shuffle(warps, random);
  } else if (order != "forward") {
    return is_not_allowed("SIMT_ORDER", "forward, reversed or a seed (a number)");
  }
  launch.forward = std::is_sorted(lanes.begin(), lanes.end());
  for (uint32_t position = 0; position < 32; ++position) {
    launch.lane_at[position] = static_cast<uint8_t>(lanes[position]);
    launch.position_of[lanes[position]] = static_cast<uint8_t>(position);
  }
  launch.warp_at = warps;
  return "";
}

// SIMT_COPIES: whether asynchronous copies land early or late. By default the order decides.
std::string set_copies(Launch& launch) {
  if (!setting("SIMT_COPIES")) return "";
  launch.copies_land_early = is_set("SIMT_COPIES", "early");
  return launch.copies_land_early || is_set("SIMT_COPIES", "late") ? ""
                                                                   : is_not_allowed("SIMT_COPIES", "early or late");
}

}  // namespace

void read_settings() {
  const std::lock_guard<std::mutex> lock(settings().mutex);
  settings().read();
}

std::optional<std::string> setting(std::string_view variable) {
  const std::lock_guard<std::mutex> lock(settings().mutex);
  const auto found = settings().texts.find(variable);
  return found == settings().texts.end() ? std::nullopt : std::optional<std::string>(found->second);
}

double timeout_seconds() {
  const double seconds = std::atof(setting("SIMT_TIMEOUT").value_or("0").c_str());
  return seconds > 0 ? seconds : kAnalysis ? 120 : 20;
}

std::vector<uint32_t> order_of(uint32_t count) {
  std::vector<uint32_t> order(count);
  std::iota(order.begin(), order.end(), 0);
  const std::string asked = order_asked();
  if (asked == "reversed") std::reverse(order.begin(), order.end());
  if (is_seed(asked)) {
    std::mt19937_64 random(std::strtoull(asked.c_str(), nullptr, 10));
    shuffle(order, random);
  }
  return order;
}

std::string apply_settings(Launch& launch) {
  if (const std::string refused = devices_refused(); !refused.empty()) return refused;
  launch.exited_threads_arrive = is_set("SIMT_EXITED", "arrive");
  launch.barriers_may_differ = is_set("SIMT_BARRIERS", "any");
  for (const auto& [variable, most] :
       {std::pair{"SIMT_WORKERS", kMostWorkers}, std::pair{"SIMT_MULTIPROCESSORS", kMostMultiprocessors}})
    if (setting(variable) && !asked_number(variable, most))
      return is_not_allowed(variable, "a number from 1 to " + std::to_string(most));
  const std::string wrong = set_order(launch);
  return wrong.empty() ? set_copies(launch) : wrong;
}

unsigned workers_asked() {
  if (const int asked = asked_number("SIMT_WORKERS", kMostWorkers)) return static_cast<unsigned>(asked);
  static const size_t most = std::clamp<size_t>(address_space() / kWorkerSpace, 1, kMostWorkers);
  cpu_set_t cpus;
  const bool known = sched_getaffinity(0, sizeof cpus, &cpus) == 0;
  const size_t cores = known ? static_cast<size_t>(CPU_COUNT(&cpus)) : std::thread::hardware_concurrency();
  return static_cast<unsigned>(std::clamp<size_t>(cores, 1, most));
}

unsigned multiprocessors() {
  static const int asked = asked_number("SIMT_MULTIPROCESSORS", kMostMultiprocessors);
  return asked ? static_cast<unsigned>(asked) : kMultiprocessors;
}

}  // namespace simt
