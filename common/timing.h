// Time on a GPU with a cold cache: launches back to back in one CUDA graph over buffers larger than the L2 cache.
#pragma once
#include <functional>
#include <vector>

#include "common/check.h"
#include "common/roofline.h"

namespace ladder {

// The problem's own buffers, and copies of them until they outgrow the L2 cache: 600 MB or 64 pairs. Buffers several
// times the L2 cache each need no copy.
class Pool {
 public:
  Pool(Problem& problem, const Device& device);
  static double bytes(Shape shape, const Device& device);  // device memory that a pool for this shape takes

  int64_t pairs() const { return 1 + static_cast<int64_t>(extra_.size()); }
  const float* input(int64_t i) const { return i == 0 ? problem_.input.data() : extra_[i - 1].input.data(); }
  float* output(int64_t i) { return i == 0 ? problem_.output.data() : extra_[i - 1].output.data(); }
  bool larger_than_cache() const { return larger_than_cache_; }
  Problem& problem() { return problem_; }

  void poison();
  Outcome verify();  // every output, against the oracle

 private:
  struct Pair {
    DeviceBuffer input, output;
  };
  Problem& problem_;
  std::vector<Pair> extra_;
  bool larger_than_cache_;
};

struct Timing {
  double microseconds = 0;    // a launch: median of the samples
  double spread_percent = 0;  // from the 10th to the 90th percentile, relative to the median
};

using TimedLaunch = std::function<void(const float* input, float* output, cudaStream_t stream)>;

// iterations samples; each is one replay of a graph that holds about two milliseconds of launches.
Timing measure(const TimedLaunch& launch, Pool& pool, int iterations);

}  // namespace ladder
