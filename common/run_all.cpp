// The program of one stage, of a ladder, or of a ladder with experiments.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <string>

#include "common/check_stages.h"
#include "common/csv_file.h"
#include "common/description.h"
#include "common/experiment.h"
#include "common/program.h"
#include "common/text.h"

namespace ladder {
namespace {

void print_list(const std::vector<AnyStage>& stages, const std::vector<Experiment>& experiments,
                const Options& options) {
  std::vector<std::vector<std::string>> rows = {{"number", "name", "what it does"}};
  for (const size_t i : options.stages) {
    std::string summary = stages[i].summary;
    for (const auto& [label, name] : description.labels)
      if (std::string(name) == stages[i].name) summary += text(" (%s)", label);
    rows.push_back({std::to_string(stage_number(stages, i)), stages[i].name, summary});
  }
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

}  // namespace

int run_all(const std::vector<AnyStage>& stages, const std::vector<Experiment>& experiments, int argc, char** argv) {
  return guarded(argv[0], [&] {
    const Options options = parse_options(stages, experiments.size(), argc, argv);
    if (options.list) {
      print_list(stages, experiments, options);
      return 0;
    }
    const CsvFile csv(options.csv);
    const std::map<size_t, CsvFile> files = files_of(experiments, options);
    const bool in_directory = !options.csv_dir.empty() && is_asked(options, 1);
    const CsvFile main_csv(in_directory ? options.csv_dir + "/main.csv" : "", "--csv-dir");
    require_device(most_devices(*stages.front().op, options.shape));
    if (options.profile) {
      launch_once(stages, options);
      return 0;
    }
    const Report report = check_stages(stages, options);
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

int run_all(const std::vector<AnyStage>& stages, int argc, char** argv) { return run_all(stages, {}, argc, argv); }

}  // namespace ladder
