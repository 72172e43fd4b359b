#include "capacity.h"

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
                  const char* usage_file, const char* cache_key) {
  for (;;) {
    const std::string folder = mount + group + "/";
    const size_t limit = read_number(folder + limit_file), usage = read_number(folder + usage_file);
    if (limit != kNone && usage != kNone) {
      const size_t cache = read_number(folder + "memory.stat", cache_key);  // reclaimable
      const size_t used = cache == kNone || cache > usage ? usage : usage - cache;
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
    if (controllers == ",,")
      apply_limits(capacity, "/sys/fs/cgroup", path, "memory.max", "memory.current", "inactive_file");
    if (controllers.find(",memory,") != std::string::npos)
      apply_limits(capacity, "/sys/fs/cgroup/memory", path, "memory.limit_in_bytes", "memory.usage_in_bytes",
                   "total_inactive_file");
  }
  return capacity;
}

}  // namespace simt
