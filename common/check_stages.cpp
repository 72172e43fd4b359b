#include "common/check_stages.h"

#include <cuda_profiler_api.h>

#include <algorithm>
#include <cstdio>
#include <optional>

#include "common/memory_check.h"
#include "common/text.h"

namespace ladder {
namespace {

// After an error that ends the CUDA context, every later call fails too.
bool context_is_dead() {
  cudaGetLastError();
  int devices = 0;
  return cudaGetDeviceCount(&devices) != cudaSuccess || synchronize(devices) != cudaSuccess;
}

// Empty if the device can run the stage on such a shape.
std::string why_skipped(const AnyStage& stage, const Shape& shape, const Device& device) {
  if (stage.needs.compute_capability > device.compute_capability)
    return text("needs sm_%d, this device is sm_%d", stage.needs.compute_capability, device.compute_capability);
  const char* reason = stage.needs.refuses ? stage.needs.refuses(shape) : nullptr;
  return reason ? shape_text(*stage.op, shape) + ": " + reason : "";
}

// The bytes that a launch on the main input streams: all tensors but a weight.
double streamed_bytes(const Operator& op, const Options& options) {
  const std::vector<Tensor> tensors = op.tensors(options.shape);
  Variant unshared = options.variant;
  for (size_t i = 0; i < tensors.size(); ++i) unshared.places[i].absent |= tensors[i].shared;
  return op.bytes(options.shape, unshared);
}

// The main input of one of the stages' operators: what the command line leaves out is left out.
Variant main_variant(const Operator& op, const Options& options) {
  Variant variant = op.plain();
  for (size_t i = 0; i < variant.places.size(); ++i) variant.places[i].absent = options.variant.places[i].absent;
  return variant;
}

// The edge cases that make analyze can afford: a tail, a row that is shorter than a block, pointers off by an element.
constexpr int64_t kAnalyzedElements = 10000;

// What a profiler, simt/analyze among them, does not count.
class Uncounted {
 public:
  explicit Uncounted(bool uncounted) : uncounted_(uncounted) {
    if (uncounted_) cudaProfilerStop();
  }
  ~Uncounted() {
    if (uncounted_) cudaProfilerStart();
  }
  Uncounted(const Uncounted&) = delete;
  Uncounted& operator=(const Uncounted&) = delete;

 private:
  bool uncounted_;
};

// The buffers on which the stages of one operator are checked and timed.
class Bench {
 public:
  Bench(const Operator& op, const Options& options, const Device& device, bool timing)
      : main_case_(op, options.shape, options.seed), problem_(main_case_, main_variant(op, options)) {
    if (options.small)
      edge_cases_.emplace(op, device.cpu, options.seed, options.analyze ? kAnalyzedElements : INT64_MAX);
    if (timing) pool_.emplace(problem_, device);
  }
  const EdgeCases* edge_cases() const { return edge_cases_ ? &*edge_cases_ : nullptr; }
  Problem& problem() { return problem_; }
  Pool* pool() { return pool_ ? &*pool_ : nullptr; }

 private:
  std::optional<EdgeCases> edge_cases_;
  const Case main_case_;
  Problem problem_;
  std::optional<Pool> pool_;
};

class Work {
 public:
  Work(const std::vector<AnyStage>& stages, const Options& options) {
    report_.device = current_device();
    report_.options = options;
    report_.options.shape = fitting_shape(stages, options, report_.device);
    report_.thread_order = asked_thread_order(report_.device.cpu);
    for (const size_t position : options.stages) {
      Result& result = report_.results.emplace_back();
      result.stage = &stages[position];
      result.reason = why_skipped(stages[position], report_.options.shape, report_.device);
      if (!result.reason.empty()) result.verdict = Verdict::skipped;
    }
    require_takers();
    // The copy kernel moves whole floats, so it would have nothing to do for fewer bytes, and a launcher may launch
    // nothing.
    const bool moves = std::all_of(report_.results.begin(), report_.results.end(), [&](const Result& result) {
      return streamed_bytes(*result.stage->op, report_.options) >= 2 * sizeof(float);
    });
    timing_ = options.timing && !report_.device.cpu && moves;
    for (const Result& result : report_.results)
      if (result.verdict != Verdict::skipped)
        require_memory(*result.stage->op, report_.options.shape, report_.device, timing_);
  }

  Report run() {
    std::printf("%s\n", report_.device.line().c_str());
    std::fflush(stdout);
    std::string dead;
    for (Result& result : report_.results) {
      if (result.verdict == Verdict::skipped) continue;
      if (!dead.empty()) {
        result.reason = dead;
        continue;
      }
      try {
        check(result);
      } catch (const std::exception& error) {
        result.verdict = Verdict::fail;
        result.timed = false;
        result.reason = error.what();
      }
      if (result.verdict == Verdict::fail && context_is_dead())
        dead = text("the CUDA context did not survive %s; leave that stage out with --stage", result.stage->name);
    }
    bench_.reset();
    op_ = nullptr;
    progress_.clear();
    return report_;
  }

 private:
  // A shape that the command line gives and that every stage refuses is a mistake there, and no skipped check.
  void require_takers() const {
    std::vector<std::string> reasons;
    for (const Result& result : report_.results) {
      const bool refuses = result.stage->needs.compute_capability <= report_.device.compute_capability;
      if (result.verdict != Verdict::skipped || !refuses) return;
      if (std::find(reasons.begin(), reasons.end(), result.reason) == reasons.end()) reasons.push_back(result.reason);
    }
    if (!report_.options.shape_given) return;
    std::string all;
    for (const std::string& reason : reasons) all += (all.empty() ? "no stage takes " : "; ") + reason;
    throw UsageError(all);
  }

  // One bench at a time, since two may not fit into the device's memory.
  Bench& bench_of(const Operator& op) {
    if (op_ == &op) return *bench_;
    progress_.show("preparing inputs");
    bench_.reset();
    if (timing_ && !report_.copy_timed) time_copy(op);
    op_ = &op;
    bench_.emplace(op, report_.options, report_.device, timing_);
    if (bench_->pool()) report_.pool_copies = bench_->pool()->copies();
    if (bench_->edge_cases()) report_.edge_cases = bench_->edge_cases()->count();
    return *bench_;
  }

  void time_copy(const Operator& op) {
    progress_.show("timing the copy kernel");
    report_.copied_bytes = streamed_bytes(op, report_.options);
    report_.copy =
        measure_copy(report_.copied_bytes, report_.device, report_.options.iterations, report_.options.pause);
    const double copies = static_cast<double>(copies_for(report_.copied_bytes, report_.device));
    if (copies * report_.copied_bytes > 4.0 * report_.device.l2_bytes)
      require_possible("the copy kernel", report_.copied_bytes, report_.copy, report_.device);
    report_.copy_timed = true;
  }

  void check(Result& result) {
    const AnyStage& stage = *result.stage;
    const Device& device = report_.device;
    Bench& bench = bench_of(*stage.op);
    const size_t position = static_cast<size_t>(&result - report_.results.data()) + 1;
    const std::string where = text("[%zu/%zu] %s: ", position, report_.results.size(), stage.name);
    const auto failed = [&](const Outcome& outcome, const char* when) {
      if (outcome.failure.empty()) return false;
      result.verdict = Verdict::fail;
      result.reason = when + outcome.failure;
      return true;
    };

    progress_.show(where + "small problems");
    Problem& problem = bench.problem();
    if (bench.edge_cases()) {
      const auto check_small = [&] {
        const Uncounted uncounted(report_.options.analyze);
        return bench.edge_cases()->check(stage);
      };
      if (failed(check_small(), "")) {
        if (report_.options.analyze) launch_unchecked(stage, problem);
        return;
      }
    }
    progress_.show(where + problem.context());
    // On a GPU a second run must repeat the first; on the CPU device the small problems have shown that it does.
    std::vector<const char*> orders = thread_orders(device.cpu);
    if (device.cpu) orders.resize(1);
    static_cast<void>(take_counters());  // of the small problems
    const Outcome outcome = problem.check(stage, orders);
    result.worst_error = outcome.worst_error;
    result.tolerance = outcome.tolerance;
    result.reached = true;
    if (failed(outcome, "")) return;
    result.counters = take_counters();

    if (Pool* pool = bench.pool()) {
      progress_.show(where + "timing");
      pool->prepare();
      result.timing =
          measure(stage, problem, *pool, report_.options.iterations, kWarmUpMicroseconds, report_.options.pause);
      if (failed(pool->verify(stage), "after timing: ")) return;
      const double bytes = stage.op->bytes(report_.options.shape, report_.options.variant);
      if (pool->larger_than_cache()) require_possible(stage.name, bytes, result.timing, device);
      result.timed = true;
    }
    result.verdict = Verdict::pass;
  }

  // A wrong kernel's accesses are counted too, where it can still be launched.
  static void launch_unchecked(const AnyStage& stage, Problem& problem) {
    try {
      problem.buffers.prepare(problem.given());
      problem.launch(stage, problem.buffers.arguments(), cudaStreamPerThread);
      cuda_check(synchronize(problem.devices()), stage.name, __FILE__, __LINE__);
    } catch (const CudaError&) {  // the failed check has its own reason
    }
  }

  Report report_;
  bool timing_ = false;
  Progress progress_;
  const Operator* op_ = nullptr;
  std::optional<Bench> bench_;
};

}  // namespace

Report check_stages(const std::vector<AnyStage>& stages, const Options& options) { return Work(stages, options).run(); }

// Stages of one operator share their tensors.
void launch_once(const std::vector<AnyStage>& stages, Options options) {
  const Device device = current_device();
  options.shape = fitting_shape(stages, options, device);
  std::printf("%s\n", device.line().c_str());
  std::optional<Case> main_case;
  std::optional<Problem> problem;
  for (const size_t position : options.stages) {
    const AnyStage& stage = stages[position];
    const std::string skipped = why_skipped(stage, options.shape, device);
    if (!skipped.empty()) {
      std::printf("%s skipped: %s\n", stage.name, skipped.c_str());
      continue;
    }
    if (!main_case || &main_case->op != stage.op) {
      problem.reset();
      main_case.reset();
      require_memory(*stage.op, options.shape, device, false);
      main_case.emplace(*stage.op, options.shape, options.seed);
      problem.emplace(*main_case, main_variant(*stage.op, options));
    }
    problem->buffers.prepare(*main_case);
    problem->launch(stage, problem->buffers.arguments(), cudaStreamPerThread);
    cuda_check(synchronize(problem->devices()), stage.name, __FILE__, __LINE__);
    std::printf("%s launched once, not checked: %s\n", stage.name, problem->context().c_str());
  }
}

}  // namespace ladder
