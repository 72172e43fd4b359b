// The programs: one stage, a ladder, a ladder with experiments, mutants.
#include <cuda_profiler_api.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <string>

#include "common/experiment.h"
#include "common/program.h"
#include "common/text.h"

namespace ladder {
namespace {

// Host memory that can still be had, within the limit of the container too; 0: unknown.
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

// A problem that does not fit is refused before anything is allocated.
void require_memory(const Operator& op, const Shape& shape, const Device& device, bool timing) {
  const std::vector<Tensor> all = op.tensors(shape);
  double tensors = 0, slack = 64e6;
  for (const Tensor& tensor : all) {
    tensors += tensor.bytes();
    slack += 8.0 * (static_cast<double>(tensor.rows) + static_cast<double>(tensor.cols > 1 ? tensor.cols / 8 : 0));
  }
  // The copy kernel's buffers are given back before the pool is made.
  const double pool = timing ? Pool::bytes(all, op.plain(), device) : 0.0;
  const double on_device = std::max(tensors, pool) + slack;
  const double on_host = tensors + slack + (device.cpu ? on_device : 0.0);
  std::string options;
  for (const Parameter& parameter : op.parameters())
    if (parameter.choices.empty()) options += (options.empty() ? "--" : " or --") + std::string(parameter.name);
  const auto refuse = [&](double needed, double available, const char* where) {
    throw UsageError(text("%s: needs %.1f GB of %s memory, %.1f GB are free; give smaller %s",
                          shape_text(op, shape).c_str(), needed / 1e9, where, available / 1e9, options.c_str()));
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

// Empty if the device can run the stage on such a shape.
std::string why_skipped(const AnyStage& stage, const Shape& shape, const Device& device) {
  if (stage.needs.compute_capability > device.compute_capability)
    return text("needs sm_%d, this device is sm_%d", stage.needs.compute_capability, device.compute_capability);
  const char* reason = stage.needs.refuses ? stage.needs.refuses(shape) : nullptr;
  return reason ? shape_text(*stage.op, shape) + ": " + reason : "";
}

const char* shown_on(Shows shows) {
  return shows == Shows::anywhere ? "any" : shows == Shows::on_cpu_device ? "cpu" : "sm_90";
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

// For a profiler: no other kernel runs in this process. Stages of one operator share their tensors.
void launch_once(const std::vector<AnyStage>& stages, const Options& options) {
  const Device device = current_device();
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
    problem->launch(launcher(stage), problem->buffers.arguments(), cudaStreamPerThread);
    cuda_check(cudaDeviceSynchronize(), stage.name, __FILE__, __LINE__);
    std::printf("%s launched once, not checked: %s\n", stage.name, problem->context().c_str());
  }
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

class LadderRun {
 public:
  LadderRun(const std::vector<AnyStage>& stages, const Options& options) {
    report_.options = options;
    report_.device = current_device();
    report_.thread_order = asked_thread_order(report_.device.cpu);
    for (const size_t position : options.stages) {
      Result& result = report_.results.emplace_back();
      result.stage = &stages[position];
      result.reason = why_skipped(stages[position], options.shape, report_.device);
      if (!result.reason.empty()) result.verdict = Verdict::skipped;
    }
    // The copy kernel moves whole floats, so it would have nothing to do for fewer bytes, and a launcher may launch
    // nothing.
    const bool moves = std::all_of(report_.results.begin(), report_.results.end(), [&](const Result& result) {
      return streamed_bytes(*result.stage->op, options) >= 2 * sizeof(float);
    });
    timing_ = options.timing && !report_.device.cpu && moves;
    for (const Result& result : report_.results)
      if (result.verdict != Verdict::skipped) require_memory(*result.stage->op, options.shape, report_.device, timing_);
  }

  const Report& run() {
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
        run_stage(result);
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
    report_.copy = measure_copy(report_.copied_bytes, report_.device, report_.options.iterations);
    const double copies = static_cast<double>(copies_for(report_.copied_bytes, report_.device));
    if (copies * report_.copied_bytes > 4.0 * report_.device.l2_bytes)
      require_possible("the copy kernel", report_.copied_bytes, report_.copy, report_.device);
    report_.copy_timed = true;
  }

  void run_stage(Result& result) {
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
    const Outcome outcome = problem.check(launcher(stage), orders);
    result.worst_error = outcome.worst_error;
    result.tolerance = outcome.tolerance;
    result.reached = true;
    if (failed(outcome, "")) return;
    result.counters = take_counters();

    if (Pool* pool = bench.pool()) {
      progress_.show(where + "timing");
      pool->prepare();
      result.timing = measure(launcher(stage), problem, *pool, report_.options.iterations);
      if (failed(pool->verify(launcher(stage)), "after timing: ")) return;
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
      problem.launch(launcher(stage), problem.buffers.arguments(), cudaStreamPerThread);
      cuda_check(cudaDeviceSynchronize(), stage.name, __FILE__, __LINE__);
    } catch (const CudaError&) {  // the failed check has its own reason
    }
  }

  Report report_;
  bool timing_ = false;
  Progress progress_;
  const Operator* op_ = nullptr;
  std::optional<Bench> bench_;
};

void print_list(const std::vector<AnyStage>& stages, const std::vector<Experiment>& experiments,
                const Options& options) {
  std::vector<std::vector<std::string>> rows = {{"number", "name", "what it does"}};
  for (const size_t i : options.stages)
    rows.push_back({std::to_string(stage_number(stages, i)), stages[i].name, stages[i].summary});
  std::printf("%s", align(rows, 3).c_str());
  if (experiments.empty()) return;
  rows = {{"experiment", "name", "its question"}, {"1", "stages", "how fast is each stage?"}};
  for (const Experiment& experiment : experiments)
    rows.push_back({std::to_string(rows.size()), experiment.name, experiment.question});
  std::printf("\n%s", align(rows, 3).c_str());
}

// The directory, made if only the last part of its name is missing.
void make_directory(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directory(path, error);
  if (!error && std::filesystem::is_directory(path, error)) return;
  throw UsageError(text("--csv-dir %s: %s; name a directory, or a new one in a directory that can be written",
                        path.c_str(), error ? error.message().c_str() : "is not a directory"));
}

// Whether --experiment asks for that number. A lecture's experiments begin with 2, after the stages.
bool is_asked(const Options& options, int number) { return options.experiment == 0 || options.experiment == number; }

// The files of the experiments, by position; none if no directory is given.
std::map<size_t, CsvFile> files_of(const std::vector<Experiment>& experiments, const Options& options) {
  std::map<size_t, CsvFile> files;
  if (options.csv_dir.empty()) return files;
  make_directory(options.csv_dir);
  for (size_t i = 0; i < experiments.size(); ++i)
    if (is_asked(options, static_cast<int>(i) + 2))
      files.emplace(i, CsvFile(options.csv_dir + "/" + experiments[i].name + ".csv", "--csv-dir"));
  return files;
}

void run_experiments(const std::vector<Experiment>& experiments, const Report& report,
                     const std::map<size_t, CsvFile>& files) {
  Progress progress;
  const bool timed = !report.device.cpu && report.options.timing;
  for (size_t i = 0; i < experiments.size(); ++i) {
    if (!is_asked(report.options, static_cast<int>(i) + 2)) continue;
    if (experiments[i].is_timed && !timed) continue;
    progress.show(text("experiment %s", experiments[i].name));
    const Table table = experiments[i].run(report);
    progress.clear();
    std::printf("\n%s", table.print().c_str());
    std::fflush(stdout);
    if (const auto file = files.find(i); file != files.end()) file->second.write(table.csv(report.device));
  }
}

int run_program(const std::vector<AnyStage>& stages, const std::vector<Experiment>& experiments, int argc, char** argv,
                bool own_program = false) {
  return guarded(argv[0], [&] {
    const Options options = parse_options(stages, experiments.size(), argc, argv, own_program);
    if (options.list) {
      print_list(stages, experiments, options);
      return 0;
    }
    const CsvFile csv(options.csv);
    const std::map<size_t, CsvFile> files = files_of(experiments, options);
    const bool in_directory = !options.csv_dir.empty() && is_asked(options, 1);
    const CsvFile main_csv(in_directory ? options.csv_dir + "/main.csv" : "", "--csv-dir");
    require_device();
    if (options.profile) {
      launch_once(stages, options);
      return 0;
    }
    LadderRun run(stages, options);
    const Report& report = run.run();
    csv.write(report.csv());
    main_csv.write(report.csv());
    std::printf("%s", report.table().c_str());
    std::fflush(stdout);
    if (!report.all_right()) return 1;
    if (options.analyze) return 0;
    run_experiments(experiments, report, files);
    const auto is_timed = [](const Experiment& experiment) { return experiment.is_timed; };
    if (std::none_of(experiments.begin(), experiments.end(), is_timed)) return 0;
    const bool all = std::all_of(experiments.begin(), experiments.end(), is_timed);
    if (report.device.cpu)
      std::printf(
          "\nThe CPU device is never timed: the %sexperiments need a GPU. The README shows what they found on one.\n",
          all ? "" : "other ");
    else if (!options.timing)
      std::printf("\nThe %sexperiments measure time, which --no-timing leaves out.\n", all ? "" : "other ");
    return 0;
  });
}

}  // namespace

int run_lecture(const std::vector<AnyStage>& stages, const std::vector<Experiment>& experiments, int argc,
                char** argv) {
  return run_program(stages, experiments, argc, argv);
}

int run_stages(const std::vector<AnyStage>& stages, int argc, char** argv) {
  return run_program(stages, {}, argc, argv);
}

int run_own_program(const AnyStage& stage, int argc, char** argv) { return run_program({stage}, {}, argc, argv, true); }

int run_any_mutants(const std::vector<AnyMutant>& mutants, int argc, char** argv) {
  return guarded(argv[0], [&] {
    const Options options = parse_mutant_options(argc, argv);
    if (options.list) {
      std::vector<std::vector<std::string>> rows = {{"name", "device", "rejection says", "fault"}};
      for (const AnyMutant& mutant : mutants)
        rows.push_back({mutant.stage.name, shown_on(mutant.shows), mutant.expect, mutant.stage.summary});
      std::printf("%s", align(rows, 4).c_str());
      return 0;
    }
    for (const AnyMutant& mutant : mutants) {
      if (options.mutant != mutant.stage.name) continue;
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
        if (mutant.shape[0] > 0) {
          require_memory(*mutant.stage.op, mutant.shape, device, false);
          Progress progress;
          outcome = check_shape(mutant.stage, mutant.shape, options.seed, device.cpu,
                                [&](const std::string& what) { progress.show(mutant.stage.name + (": " + what)); });
        } else {
          outcome = EdgeCases(*mutant.stage.op, device.cpu, options.seed).check(mutant.stage);
        }
      } catch (const UsageError& error) {
        std::printf("skipped: %s\n", error.what());
        return 77;
      }
      if (outcome.failure.empty()) {
        std::printf("passed: the checks do not see that %s\n", mutant.stage.summary);
        return 0;
      }
      std::printf("rejected: %s\n", outcome.failure.c_str());
      return 1;
    }
    throw UsageError("--mutant " + options.mutant + ": no such mutant; give a name that --list shows");
  });
}

}  // namespace ladder
