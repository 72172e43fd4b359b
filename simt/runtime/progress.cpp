#include "progress.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <string>

#include "environment.h"
#include "fault.h"
#include "launch.h"

namespace simt {

namespace {

constexpr std::chrono::seconds kPatience(5);
constexpr const char* kClear = "\r\033[K";

struct Shown {
  std::mutex mutex;  // guards what follows
  const Launch* launch = nullptr;
  std::chrono::steady_clock::time_point begin;
  std::string kernel;
  bool is_there = false;
};
Shown& shown() {  // never destroyed: the watchdog outlives main
  static auto* shown = new Shown;
  return *shown;
}

}  // namespace

Progress::Progress(const Launch& launch) {
  const std::lock_guard<std::mutex> lock(shown().mutex);
  shown().launch = &launch;
  shown().begin = std::chrono::steady_clock::now();
}

Progress::~Progress() {
  const std::lock_guard<std::mutex> lock(shown().mutex);
  shown().launch = nullptr;
  if (shown().is_there) std::fputs(kClear, stderr);
  shown().is_there = false;
}

void show_progress() {
  static const bool is_wanted = [] {
    const std::optional<std::string> asked = setting("SIMT_PROGRESS");
    return asked ? asked != "0" : isatty(2) != 0;
  }();
  if (!is_wanted) return;
  const std::lock_guard<std::mutex> lock(shown().mutex);
  const Launch* launch = shown().launch;
  if (!launch || std::chrono::steady_clock::now() - shown().begin < kPatience) return;
  if (!shown().is_there) shown().kernel = short_kernel_name(*launch);
  const uint64_t gangs = std::min<uint64_t>(launch->next_gang, launch->gangs);
  std::fprintf(stderr, "%ssimt: kernel %s: %llu of %llu blocks started", kClear, shown().kernel.c_str(),
               static_cast<unsigned long long>(gangs * launch->blocks_per_gang),
               static_cast<unsigned long long>(launch->gangs * launch->blocks_per_gang));
  shown().is_there = true;
}

}  // namespace simt
