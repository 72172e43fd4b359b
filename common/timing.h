// Time on a GPU with a cold cache: launches back to back in one CUDA graph over buffers larger than the L2 cache.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/check.h"
#include "common/device.h"

namespace ladder {

struct Timing {
  double microseconds = 0;    // per launch: median of the samples
  double spread_percent = 0;  // from the 10th to the 90th percentile, relative to the median
};

Timing summarize(std::vector<double> microseconds);

// Throws if a cold launch that moves that many bytes took less time than the datasheet's bandwidth allows: then the
// measurement is wrong. If the datasheet's bandwidth is unknown, there is nothing to compare with.
void require_possible(const std::string& what, double bytes, const Timing& timing, const Device& device);

// A stream of its own, and the time that work on it takes from one event to another. With several devices, the stream
// cudaStreamPerThread of each, and the time of the slowest.
class Stopwatch {
 public:
  explicit Stopwatch(int devices = 1);
  int devices() const { return static_cast<int>(events_.size()); }
  cudaStream_t stream() const { return stream_ ? stream_.get() : cudaStreamPerThread; }
  double microseconds(const std::function<void()>& work) { return laps(1, work).front(); }
  std::vector<double> laps(int count, const std::function<void()>& work);  // one after the other, with no pause

 private:
  using Event = std::unique_ptr<std::remove_pointer_t<cudaEvent_t>, CudaDeleter<cudaEventDestroy>>;
  void record(size_t event);

  std::unique_ptr<std::remove_pointer_t<cudaStream_t>, CudaDeleter<cudaStreamDestroy>> stream_;
  std::vector<std::vector<Event>> events_;  // of each device
};

// iterations samples; each is one replay of a graph that holds about two milliseconds of launches: number 0 to
// round - 1, over and over. Replays follow each other with no pause, and the first is left out, so that the time in
// which the CPU submits a replay is hidden behind the one before. The cache is cold if a whole round touches several
// times as much as the cache holds. A GPU that has just been in use reaches its clock sooner than an idle one.
// With a pause the GPU rests for that many milliseconds before each sample; the replay between the two is left out.
// With several devices each has a graph of its own, and all are started one after the other.
constexpr double kWarmUpMicroseconds = 20e3;
using NumberedLaunch = std::function<void(int64_t number, cudaStream_t stream)>;
Timing measure(const NumberedLaunch& launch, int64_t round, int iterations,
               double warm_up_microseconds = kWarmUpMicroseconds, int pause = 0, int devices = 1);

// How many copies of the memory that a launch touches are needed to outgrow the L2 cache: pool_bytes of them, or 64. A
// problem several times as large as the L2 cache needs no copy. (tools/ladder/measure/graph_timing.py has that of
// peers.)
constexpr double kPoolBytes = 600e6;
int64_t copies_for(double bytes, const Device& device, double pool_bytes = kPoolBytes);

// A problem's own buffers and copies of them, each with the same inputs. Tensors that all calls share are not copied.
class Pool {
 public:
  Pool(Problem& problem, const Device& device, double pool_bytes = kPoolBytes);
  // The device memory that the pool takes.
  static double bytes(const std::vector<Tensor>& tensors, const Variant& variant, const Device& device);

  int64_t copies() const { return 1 + static_cast<int64_t>(extra_.size()); }
  Arguments arguments(int64_t i) { return buffers(i).arguments(); }
  bool larger_than_cache() const { return larger_than_cache_; }

  void prepare();
  // Compares every output with the oracle, at most `sample` rows of each tensor. If launches overwrite their inputs,
  // the buffers have changed with every launch: then one more launch is checked.
  Outcome verify(const Launcher& launch, int64_t sample = INT64_MAX);

 private:
  Buffers& buffers(int64_t i) { return i == 0 ? problem_.buffers : extra_[i - 1]; }

  Problem& problem_;
  std::vector<Buffers> extra_;
  bool larger_than_cache_;
};

// The same with every copy of the pool in turn.
Timing measure(const Launcher& launch, Problem& problem, Pool& pool, int iterations,
               double warm_up_microseconds = kWarmUpMicroseconds, int pause = 0);

// The copy kernel on that many bytes, half of them read and half written, with an equally cold cache.
Timing measure_copy(double bytes, const Device& device, int iterations, int pause = 0);

}  // namespace ladder
