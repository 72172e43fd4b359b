#include "capacity.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <string>

namespace simt {

namespace {

constexpr size_t kNone = std::numeric_limits<size_t>::max();

// The number after `key` in a file of "key number" lines; without a key, the file's first word.
size_t read_number(const std::string& path, const std::string& key = "") {
  std::ifstream file(path);
  std::string word;
  while (file >> word) {
    size_t number;
    if (key.empty()) return word.find_first_not_of("0123456789") == std::string::npos ? std::stoull(word) : kNone;
    if (word == key && file >> number) return number;
  }
  return kNone;
}

// Narrows the capacity by the limits of a control group and of its parents. The group's path may be relative to a root
// that a container does not see; then only the mount's own root counts.
void apply_limits(Capacity& capacity, const std::string& mount, std::string group, const char* limit_file,
                  const char* usage_file, const std::string& of_all) {
  for (;;) {
    const std::string folder = mount + group + "/";
    const size_t limit = read_number(folder + limit_file), usage = read_number(folder + usage_file);
    if (limit != kNone && usage != kNone) {
      size_t used = usage;
      for (const char* cached : {"inactive_file", "active_file"}) {  // the kernel gives them up
        const size_t bytes = read_number(folder + "memory.stat", of_all + cached);
        if (bytes < used) used -= bytes;
      }
      capacity.total = std::min(capacity.total, limit);
      capacity.free = std::min(capacity.free, limit > used ? limit - used : 0);
    }
    if (group.empty()) return;
    group.erase(group.rfind('/'));
  }
}

}  // namespace

Capacity host_capacity() {
  const size_t total = read_number("/proc/meminfo", "MemTotal:"), free = read_number("/proc/meminfo", "MemAvailable:");
  Capacity capacity{total == kNone ? 0 : total * 1024, free == kNone ? 0 : free * 1024};
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {  // number:controllers:/path
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    std::string path = line.substr(second + 1);
    if (path == "/") path.clear();
    if (controllers == ",,") apply_limits(capacity, "/sys/fs/cgroup", path, "memory.max", "memory.current", "");
    if (controllers.find(",memory,") != std::string::npos)
      apply_limits(capacity, "/sys/fs/cgroup/memory", path, "memory.limit_in_bytes", "memory.usage_in_bytes", "total_");
  }
  return capacity;
}

size_t address_space() {
  rlimit limit;
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return kNone;
  const size_t pages = read_number("/proc/self/statm"), taken = pages == kNone ? 0 : pages * sysconf(_SC_PAGESIZE);
  return limit.rlim_cur > taken ? limit.rlim_cur - taken : 0;
}

}  // namespace simt
