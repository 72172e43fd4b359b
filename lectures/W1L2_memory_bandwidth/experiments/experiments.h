// Experiments 2 to 4, for a GPU, and what they share. Each returns a table; none prints.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "common/experiment.h"
#include "common/operators/copy.h"
#include "common/text.h"

namespace ladder::memory_bandwidth {

Table cold_warm(const Report& report);
Table launch(const Report& report);
Table pitfalls(const Report& report);

inline const std::vector<Experiment> experiments = {
    {"cold_warm", "what does a warm cache add, at which sizes?", cold_warm},
    {"launch", "what do three ways to time say about a short kernel?", launch},
    {"pitfalls", "which mistakes are easily made, and how large are they?", pitfalls},
};

using Change = std::function<void(Case&)>;  // replaces the inputs that were drawn
constexpr int64_t kKiB = 1024, kMiB = 1024 * kKiB, kGiB = 1024 * kMiB;

// The byte model: a copy reads each byte of a buffer and writes it again.
inline double moved_bytes(int64_t bytes) { return 2.0 * static_cast<double>(bytes); }

// The fastest copy kernel of the report; the course's copy kernel if --stage has left out all stages that copy.
AnyStage fastest_copy(const Report& report);

// Pairs of buffers, `from` and `to`, of `bytes` bytes each. They lie side by side, so that together they are one copy
// that the harness can check.
class Pairs {
 public:
  Pairs(const AnyStage& copy, int64_t bytes, int64_t count = 1, const Change& change = {});
  void launch(int64_t number, cudaStream_t stream);
  Timing time(int iterations);  // each pair in turn, and checked
  void require_right();         // throws unless every pair holds a copy

 private:
  const AnyStage copy_;
  const int64_t words_, count_;
  const Case case_;
  Problem problem_;
};

// How many pairs, used in turn, are together larger than the L2 cache, so that every copy reads from memory.
int64_t cold_pairs(int64_t bytes, const Device& device);
Timing time_cold(const AnyStage& copy, int64_t bytes, const Report& report, const Change& change = {});

}  // namespace ladder::memory_bandwidth
