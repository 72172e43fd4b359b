// The programs: one stage, a ladder, mutants.
#include <cstdio>
#include <fstream>
#include <optional>
#include <string>

#include "common/program.h"
#include "common/report.h"
#include "common/text.h"

namespace ladder {
namespace {

// Host memory that can still be had, within the limit of the container too; 0: not told.
double available_host_bytes() {
  double available = 0;
  std::ifstream meminfo("/proc/meminfo");
  for (std::string word; meminfo >> word;)
    if (word == "MemAvailable:") {
      meminfo >> available;
      available *= 1024.0;
      break;
    }
  double limit = 0, used = 0;
  if (std::ifstream("/sys/fs/cgroup/memory.max") >> limit && std::ifstream("/sys/fs/cgroup/memory.current") >> used)
    available = std::min(available, std::max(limit - used, 0.0));
  return available;
}

// A matrix that does not fit is refused before anything is allocated.
void require_memory(Shape shape, const Device& device, bool timing) {
  const double matrix = 4.0 * static_cast<double>(shape.rows) * static_cast<double>(shape.cols);
  const double slack = 64e6 + 8.0 * static_cast<double>(shape.rows) + 8.0 * static_cast<double>(shape.cols);
  const double on_device = (timing ? std::max(2.0 * matrix, Pool::bytes(shape, device)) : 2.0 * matrix) + slack;
  const double on_host = 2.0 * matrix + slack + (device.cpu ? on_device : 0.0);
  const auto refuse = [&](double needed, double available, const char* where) {
    throw UsageError(text("%s: needs %.1f GB of %s memory, %.1f GB are free; give smaller --rows or --cols",
                          shape_text(shape.rows, shape.cols).c_str(), needed / 1e9, where, available / 1e9));
  };
  const double host = available_host_bytes();
  if (host > 0 && on_host > host) refuse(on_host, host, "host");
  if (device.cpu) return;
  size_t free_bytes = 0, total_bytes = 0;
  CUDA_CHECK(cudaMemGetInfo(&free_bytes, &total_bytes));
  if (on_device > static_cast<double>(free_bytes)) refuse(on_device, static_cast<double>(free_bytes), "GPU");
}

// After an error that ends the CUDA context, every later call fails too.
bool context_is_dead() {
  cudaGetLastError();
  return cudaDeviceSynchronize() != cudaSuccess;
}

Variant main_variant(const Options& options) {
  Variant variant;
  variant.weight = options.weight;
  return variant;
}

// Empty where the device can run the stage.
std::string why_skipped(const Stage& stage, const Device& device) {
  if (stage.min_compute_capability <= device.compute_capability) return "";
  return text("needs sm_%d, this device is sm_%d", stage.min_compute_capability, device.compute_capability);
}

const char* shown_on(Shows shows) {
  return shows == Shows::anywhere ? "any" : shows == Shows::on_cpu_device ? "cpu" : "sm_90";
}

// What a profiler looks at: no other kernel runs in this process.
void launch_once(const std::vector<Stage>& stages, const Options& options) {
  const Device device = current_device();
  const Shape shape{options.rows, options.cols};
  require_memory(shape, device, false);
  std::printf("%s\n", device.line().c_str());
  const Case main_case(shape, options.seed);
  Problem problem(main_case, main_variant(options));
  for (const size_t position : options.stages) {
    const Stage& stage = stages[position];
    const std::string skipped = why_skipped(stage, device);
    if (skipped.empty()) {
      problem.launch(stage.launch, problem.input.data(), problem.output.data(), cudaStreamPerThread);
      cuda_check(cudaDeviceSynchronize(), stage.name, __FILE__, __LINE__);
    }
    std::printf("%s %s: %s\n", stage.name, skipped.empty() ? "launched once, not checked" : "skipped",
                skipped.empty() ? problem.context().c_str() : skipped.c_str());
  }
}

class LadderRun {
 public:
  LadderRun(const std::vector<Stage>& stages, const Options& options) {
    report_.options = options;
    report_.device = current_device();
    for (const size_t position : options.stages) {
      report_.results.emplace_back();
      report_.results.back().stage = &stages[position];
    }
    timing_ = options.timing && !report_.device.cpu && options.rows > 0;
    require_memory({options.rows, options.cols}, report_.device, timing_);
  }

  const Report& run() {
    std::printf("%s\n", report_.device.line().c_str());
    std::fflush(stdout);
    progress_.show("preparing inputs");
    const Options& options = report_.options;
    std::optional<HurtfulChecks> hurtful;
    if (options.small) report_.hurtful_checks = hurtful.emplace(report_.device.cpu, options.seed).count();
    const Case main_case({options.rows, options.cols}, options.seed);
    Problem problem(main_case, main_variant(options));
    std::optional<Pool> pool;
    if (timing_) time_copy(pool.emplace(problem, report_.device));

    std::string dead;
    for (Result& result : report_.results) {
      if (!dead.empty()) {
        result.reason = dead;
        continue;
      }
      try {
        run_stage(result, hurtful ? &*hurtful : nullptr, problem, pool ? &*pool : nullptr);
      } catch (const std::exception& error) {
        result.verdict = Verdict::fail;
        result.timed = false;
        result.reason = error.what();
      }
      if (result.verdict == Verdict::fail && context_is_dead())
        dead = text("the CUDA context did not survive %s; leave that stage out with --stage", result.stage->name);
    }
    progress_.clear();
    return report_;
  }

 private:
  double matrix_bytes() const { return operator_bytes(report_.options.rows, report_.options.cols, false); }

  void time_copy(Pool& pool) {
    progress_.show("timing the copy kernel");
    const int64_t count = report_.options.rows * report_.options.cols;
    report_.copy =
        measure([=](const float* from, float* to, cudaStream_t stream) { launch_copy(from, to, count, stream); }, pool,
                report_.options.iterations);
    if (pool.larger_than_cache()) require_possible("the copy kernel", matrix_bytes(), report_.copy, report_.device);
    report_.copy_timed = true;
    report_.pool_pairs = pool.pairs();
  }

  void run_stage(Result& result, const HurtfulChecks* hurtful, Problem& problem, Pool* pool) {
    const Stage& stage = *result.stage;
    const Device& device = report_.device;
    result.reason = why_skipped(stage, device);
    if (!result.reason.empty()) {
      result.verdict = Verdict::skipped;
      return;
    }
    const size_t position = static_cast<size_t>(&result - report_.results.data()) + 1;
    const std::string where = text("[%zu/%zu] %s: ", position, report_.results.size(), stage.name);
    const auto failed = [&](const Outcome& outcome, const char* when) {
      if (outcome.failure.empty()) return false;
      result.verdict = Verdict::fail;
      result.reason = when + outcome.failure;
      return true;
    };

    progress_.show(where + "small problems");
    if (hurtful && failed(hurtful->check(stage.launch), "")) return;
    progress_.show(where + problem.context());
    // On a GPU a second run must repeat the first; on the CPU device the small problems have shown that it does.
    const Outcome outcome = problem.check(
        stage.launch, device.cpu ? std::vector<const char*>{nullptr} : std::vector<const char*>{nullptr, nullptr});
    result.worst_error = outcome.worst_error;
    result.tolerance = outcome.tolerance;
    if (failed(outcome, "")) return;
    if (device.cpu) result.counters = last_launch_counters();

    if (pool) {
      progress_.show(where + "timing");
      pool->poison();
      result.timing = measure(
          [&](const float* from, float* to, cudaStream_t stream) { problem.launch(stage.launch, from, to, stream); },
          *pool, report_.options.iterations);
      if (failed(pool->verify(), "after timing: ")) return;
      if (pool->larger_than_cache()) require_possible(stage.name, matrix_bytes(), result.timing, device);
      result.timed = true;
    }
    result.verdict = Verdict::pass;
  }

  Report report_;
  bool timing_ = false;
  Progress progress_;
};

}  // namespace

int run_ladder(const std::vector<Stage>& stages, int argc, char** argv) {
  return guarded(argv[0], [&] {
    const Options options = parse_options(stages, argc, argv);
    if (options.list) {
      std::vector<std::vector<std::string>> rows = {{"number", "name", "what it does"}};
      for (const size_t i : options.stages)
        rows.push_back({std::to_string(stage_number(stages, i)), stages[i].name, stages[i].summary});
      std::printf("%s", align(rows, 3).c_str());
      return 0;
    }
    const CsvFile csv(options.csv);
    require_device();
    if (options.profile) {
      launch_once(stages, options);
      return 0;
    }
    LadderRun run(stages, options);
    const Report& report = run.run();
    csv.write(report.csv());
    std::printf("%s", report.table().c_str());
    return report.all_right() ? 0 : 1;
  });
}

int run_stage(const Stage& stage, int argc, char** argv) { return run_ladder({stage}, argc, argv); }

int run_mutants(const std::vector<Mutant>& mutants, int argc, char** argv) {
  return guarded(argv[0], [&] {
    const Options options = parse_mutant_options(argc, argv);
    if (options.list) {
      std::vector<std::vector<std::string>> rows = {{"name", "device", "rejection says", "fault"}};
      for (const Mutant& mutant : mutants)
        rows.push_back({mutant.name, shown_on(mutant.shows), mutant.expect, mutant.fault});
      std::printf("%s", align(rows, 4).c_str());
      return 0;
    }
    for (const Mutant& mutant : mutants) {
      if (options.mutant != mutant.name) continue;
      require_device();
      const Device device = current_device();
      if (mutant.shows == Shows::on_cpu_device && !device.cpu) {
        std::printf("skipped: only the CPU device shows this fault reliably\n");
        return 77;
      }
      if (mutant.shows == Shows::on_hopper && (device.cpu || device.compute_capability < 90)) {
        std::printf("skipped: only a GPU of compute capability 9.0 or newer shows this fault\n");
        return 77;
      }
      Outcome outcome;
      try {
        if (mutant.rows > 0) {
          require_memory({mutant.rows, mutant.cols}, device, false);
          outcome = check_shape(mutant.launch, {mutant.rows, mutant.cols}, true, options.seed, device.cpu);
        } else {
          outcome = HurtfulChecks(device.cpu, options.seed).check(mutant.launch);
        }
      } catch (const UsageError& error) {
        std::printf("skipped: %s\n", error.what());
        return 77;
      }
      if (outcome.failure.empty()) {
        std::printf("passed: the checks do not see that %s\n", mutant.fault);
        return 0;
      }
      std::printf("rejected: %s\n", outcome.failure.c_str());
      return 1;
    }
    throw UsageError("--mutant " + options.mutant + ": no such mutant; give a name that --list shows");
  });
}

}  // namespace ladder
