// The hazards found so far. One pair of lines is one hazard, however often it happens.
#pragma once
#include <string>
#include <unordered_map>
#include <vector>

#include "observer.h"

namespace simt::analysis {

// How far apart two threads are: what would have to order them.
enum class Distance : uint8_t {
  same_thread,
  same_warp,
  same_block,
  same_cluster,
  same_grid,
  other_launch,
  other_device
};

struct HazardEnd {
  Pc pc = 0;
  std::string file;  // where there is no pc
  int line = 0;
  std::string kind;  // load, store, atomic; empty where it is no access
  bool has_thread = false;
  uint3 thread{}, block{};
  int device = -1;  // where there are several
};

struct Hazard {
  std::string what, detail, kernel, sentence, variable;
  Space space = Space::global;
  bool has_space = true;
  Distance distance = Distance::same_thread;
  uint64_t count = 0;
  uintptr_t address = 0;
  HazardEnd first, second;
  bool has_second = false;
};

class HazardList {
 public:
  // The entry of a kind of hazard (`key` distinguishes kinds) between two lines, counted once more; null where the list
  // is full. `is_new` says whether it must be filled in: it is new, or the threads are further apart than those it
  // shows.
  Hazard* count(const std::string& kernel, unsigned key, Pc first, Pc second, Distance distance, bool& is_new);
  void add(Hazard hazard) { hazards_.push_back(std::move(hazard)); }
  std::string json() const;

 private:
  struct Key {
    uint64_t kernel;
    unsigned key;
    Pc low, high;
    bool operator==(const Key& k) const { return kernel == k.kernel && key == k.key && low == k.low && high == k.high; }
  };
  struct Hash {
    size_t operator()(const Key& k) const {
      return ((k.low * 0x9e3779b97f4a7c15u) ^ k.high) * 0x9e3779b97f4a7c15u + k.kernel * 31 + k.key;
    }
  };
  std::vector<Hazard> hazards_;
  std::unordered_map<Key, size_t, Hash> known_;
  std::unordered_map<std::string, uint64_t> kernels_;
};

}  // namespace simt::analysis
