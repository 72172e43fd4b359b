// How the tuners of the norms and of the gradients try the candidates for one problem: one after the other, on the same
// tensors of an operator.
#pragma once
#include <functional>
#include <optional>

#include "bench/tune/core.h"

namespace tune {

constexpr int64_t kSampledRows = 8;           // of a problem that is timed; of a small one, every row is looked at
constexpr double kWarmUpMicroseconds = 4000;  // the GPU comes from measuring the candidate before

// A candidate at a problem, and how it is launched on the problem's tensors.
struct Entrant {
  std::string name;  // as a message says it
  bool has_clusters;
  std::function<cudaError_t(const ladder::Arguments& arguments, cudaStream_t stream)> launch;
};

class Contest {
 public:
  // Without samples nothing is timed, and every row is looked at.
  Contest(const ladder::Operator& op, const ladder::Shape& shape, const ladder::Variant& variant,
          const ladder::Device& device, int samples)
      : device_(device), samples_(samples), case_(op, shape, 1), problem_(case_, variant) {
    if (samples > 0) pool_.emplace(problem_, device);
  }

  // One launch on fresh tensors, checked; why it is refused, or nothing.
  std::string launch_once(const Entrant& entrant) {
    if (entrant.has_clusters && device_.compute_capability < 90) return kNeedsClusters;
    std::string refusal;
    const ladder::Outcome outcome = problem_.check(launcher(entrant, refusal), {nullptr}, sample());
    if (refusal.empty()) require_right(entrant, outcome);
    return refusal;
  }

  Result measure(const Entrant& entrant, double bytes) {
    Result result{bytes, pool_->copies(), launch_once(entrant)};
    if (!result.refusal.empty()) return result;
    pool_->prepare();
    const ladder::Launcher launch = launcher(entrant, result.refusal);
    result.timing = ladder::measure(launch, problem_, *pool_, samples_, kWarmUpMicroseconds);
    require_right(entrant, pool_->verify(launch, sample()));
    ladder::require_possible(entrant.name, bytes, result.timing, device_);
    return result;
  }

 private:
  int64_t sample() const { return samples_ > 0 ? kSampledRows : INT64_MAX; }

  static ladder::Launcher launcher(const Entrant& entrant, std::string& refusal) {
    return [&entrant, &refusal](const ladder::Arguments& arguments, cudaStream_t stream) {
      const cudaError_t error = entrant.launch(arguments, stream);
      if (error == cudaSuccess) return;
      refusal = refusal_of(error);
      CUDA_CHECK(error);
    };
  }

  static void require_right(const Entrant& entrant, const ladder::Outcome& outcome) {
    if (!outcome.failure.empty()) throw std::runtime_error(entrant.name + ": " + outcome.failure);
  }

  const ladder::Device& device_;
  int samples_;
  const ladder::Case case_;
  ladder::Problem problem_;
  std::optional<ladder::Pool> pool_;
};

}  // namespace tune
