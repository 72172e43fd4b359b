#include "lesson.h"

#include <cstdio>
#include <filesystem>
#include <map>

#include "check.h"
#include "common/command_line.h"
#include "common/program.h"
#include "common/report.h"
#include "experiments.h"

namespace memory_bandwidth {
namespace {

using ladder::text;
using ladder::UsageError;

struct Experiment {
  const char* name;  // of its CSV
  const char* question;
  Table (Experiments::*run)();
};

constexpr Experiment kExperiments[] = {
    {"copy_ladder", "how fast is each way to copy, and which is the ceiling?", &Experiments::copy_ladder},
    {"cold_warm", "what does a warm cache add, at which sizes?", &Experiments::cold_warm},
    {"launch", "what do three ways to time say about a short kernel?", &Experiments::launch},
    {"pitfalls", "what does a reader get wrong, and by how much?", &Experiments::pitfalls},
};

struct Options {
  int experiment = 0;  // 0: all
  int iterations = 50;
  std::string csv_dir;
  bool list = false;
};

Options parse_options(int argc, const char* const* argv) {
  Options options;
  CLI::App app("Checks ways to copy memory and, on a GPU, measures what they and a stopwatch are worth.");
  app.footer("Exit code: 0 all right, 1 a wrong copy, an impossible time or a CUDA failure, 2 a bad command line.");
  ladder::add_number<int>(app, "--experiment", options.experiment, 0, 4, "a number from 1 to 4, or 0 for all",
                          "Run only this experiment; 0: all (GPU only)");
  ladder::add_number<int>(app, "--iterations", options.iterations, 1, 10000,
                          "a whole number from 1 to 10000, for example 50", "Samples of each time");
  app.add_option("--csv-dir", options.csv_dir, "Also write each table to a CSV in this directory")->type_name("DIR");
  app.add_flag("--list", options.list, "List the variants and the experiments and stop");
  ladder::parse(app, argc, argv);
  if (app.count("--csv-dir") > 0 && options.csv_dir.empty())
    throw UsageError("--csv-dir: give the name of a directory");
  return options;
}

void print_list(const std::vector<Variant>& variants) {
  std::vector<std::vector<std::string>> rows = {{"variant", "what it does"}};
  for (const Variant& variant : variants) rows.push_back({variant.name, variant.what});
  rows.insert(rows.end(), {{}, {"experiment", "its question"}});
  for (const Experiment& experiment : kExperiments)
    rows.push_back(
        {text("%d %s", static_cast<int>(&experiment - kExperiments) + 1, experiment.name), experiment.question});
  std::printf("%s", ladder::align(rows, 2).c_str());
}

// The directory, made if only the last part of its name is missing.
void make_directory(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directory(path, error);
  if (!error && std::filesystem::is_directory(path, error)) return;
  throw UsageError(text("--csv-dir %s: %s; name a directory, or a new one in a directory that can be written",
                        path.c_str(), error ? error.message().c_str() : "is not a directory"));
}

// Every variant on every small problem; the first failure of each. Stops where the CUDA context did not survive.
std::string check(const std::vector<Variant>& variants, bool cpu_device, ladder::Progress& progress) {
  std::string failures;
  for (const Variant& variant : variants) {
    progress.show(text("checking %s", variant.name));
    const std::string failure = check_small(variant, cpu_device);
    if (failure.empty()) continue;
    failures += text("%s FAIL: %s\n", variant.name, failure.c_str());
    if (cudaDeviceSynchronize() != cudaSuccess) break;
  }
  progress.clear();
  return failures;
}

void show(const Table& table) {
  std::printf("\n%s", table.print().c_str());
  std::fflush(stdout);
}

}  // namespace

int run(const std::vector<Variant>& variants, int argc, char** argv) {
  return ladder::guarded(argv[0], [&] {
    const Options options = parse_options(argc, argv);
    if (options.list) {
      print_list(variants);
      return 0;
    }
    ladder::require_device();
    const ladder::Device device = ladder::current_device();

    // The CPU device is never timed, so it has no more than the first table.
    std::vector<const Experiment*> chosen;
    for (const Experiment& experiment : kExperiments)
      if ((options.experiment == 0 || &experiment == &kExperiments[options.experiment - 1]) &&
          (!device.cpu || &experiment == kExperiments))
        chosen.push_back(&experiment);
    std::vector<ladder::CsvFile> files;
    if (!options.csv_dir.empty()) {
      make_directory(options.csv_dir);
      for (const Experiment* experiment : chosen)
        files.emplace_back(options.csv_dir + "/" + experiment->name + ".csv", "--csv-dir");
    }

    std::printf("%s\n", device.line().c_str());
    std::fflush(stdout);
    ladder::Progress progress;
    const std::string failures = check(variants, device.cpu, progress);
    if (!failures.empty()) {
      std::printf("%swrong copies are not timed\n", failures.c_str());
      return 1;
    }
    std::printf(
        "%zu variants PASS, each on %d small problems: odd sizes, pointers off by one element, guards untouched\n",
        variants.size(), small_problems());
    std::fflush(stdout);

    std::vector<Table> tables;
    if (device.cpu) {
      for (size_t i = 0; i < chosen.size(); ++i) show(tables.emplace_back(modelled_ladder(variants)));
      std::printf(
          "\nThe CPU device is never timed: the experiments need a GPU. The README shows what they found on one.\n");
    } else {
      std::printf("%s, clocks as found, up to %d MHz (SM) and %d MHz (memory); spread: 10th to 90th percentile\n",
                  ladder::today().c_str(), device.sm_clock_khz / 1000, device.memory_clock_khz / 1000);
      Experiments experiments(variants, device, options.iterations);
      for (const Experiment* experiment : chosen) {
        progress.show(text("experiment %s", experiment->name));
        const Table table = (experiments.*experiment->run)();
        progress.clear();
        show(tables.emplace_back(table));
      }
    }
    for (size_t i = 0; i < files.size(); ++i) files[i].write(tables[i].csv(device));
    return 0;
  });
}

}  // namespace memory_bandwidth
