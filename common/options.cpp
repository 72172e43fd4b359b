#include "common/options.h"

#include <algorithm>
#include <cctype>
#include <cstring>

#include "common/command_line.h"
#include "common/description.h"
#include "common/device.h"
#include "common/text.h"

namespace ladder {
namespace {

void add_seed(CommandLine& line, Options& options) {
  line.add_number<uint64_t>("--seed", options.seed, 0, UINT64_MAX, "a whole number from 0 to 2^64 - 1, for example 1",
                            "Seed of the random inputs");
}

// The main input if the command line names no other: the ladder's, or else the operator's.
Shape main_shape(const Operator& op) {
  const bool on_cpu = built_for_cpu_device() && !description.cpu_inputs.empty();
  Shape shape;
  const std::vector<Parameter> parameters = op.parameters();
  for (size_t i = 0; i < parameters.size(); ++i) {
    shape.values[i] = parameters[i].main;
    for (const auto& [name, value] : on_cpu ? description.cpu_inputs : description.inputs)
      if (std::strcmp(name, parameters[i].name) == 0) shape.values[i] = value;
  }
  return shape;
}

bool is_same_word(const std::string& a, const std::string& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](unsigned char one, unsigned char other) { return std::tolower(one) == std::tolower(other); });
}

size_t find_stage(const std::vector<AnyStage>& stages, std::string given) {
  for (const auto& [label, name] : description.labels)
    if (is_same_word(given, label)) given = name;
  const bool is_number =
      !given.empty() && given.size() < 9 && given.find_first_not_of("0123456789") == std::string::npos;
  for (size_t i = 0; i < stages.size(); ++i) {
    const std::string name = stages[i].name;
    const size_t letters = name.find_first_not_of("0123456789_");
    if (given == name || (letters != std::string::npos && given == name.substr(letters)) ||
        (is_number && std::stoi(given) == stage_number(stages, i)))
      return i;
  }
  int most = 0;
  for (size_t i = 0; i < stages.size(); ++i) most = std::max(most, stage_number(stages, i));
  throw UsageError(text("--stage '%s': no such stage; give a number from %d to %d or a name that --list shows",
                        given.c_str(), stage_number(stages, 0), most));
}

}  // namespace

int stage_number(const std::vector<AnyStage>& stages, size_t position) {
  const std::string name = stages[position].name;
  const size_t last_letter = name.find_last_not_of("0123456789");
  const bool leads = !name.empty() && std::isdigit(static_cast<unsigned char>(name[0]));
  const std::string digits = leads ? name : last_letter == std::string::npos ? "" : name.substr(last_letter + 1);
  return digits.empty() ? static_cast<int>(position) + 1 : std::atoi(digits.c_str());
}

Options parse_options(const std::vector<AnyStage>& stages, size_t experiments, int argc, const char* const* argv) {
  const Operator& op = *stages.front().op;
  Options options;
  options.shape = main_shape(op);
  options.variant = op.plain();
  for (const AnyStage& stage : stages)  // room for the tensors of every stage's operator
    options.variant.places.resize(std::max(options.variant.places.size(), stage.op->tensors({}).size()));
  std::vector<std::string> chosen;
  CommandLine line(text("Checks %s kernels against a float64 oracle and, on a GPU, times them.", op.title()),
                   "Exit code: 0 all right, 1 a wrong result or a CUDA failure, 2 a bad command line.");
  if (stages.size() > 1)
    line.add_list("--stage", chosen, "S", "Run only these stages: number or name, several with commas or by repeating");
  const std::vector<Parameter> parameters = op.parameters();
  for (size_t i = 0; i < parameters.size(); ++i) {
    const Parameter& p = parameters[i];
    if (!p.choices.empty()) {
      line.add_choice(std::string("--") + p.name, options.shape.values[i], p.choices, p.help);
      continue;
    }
    const std::string kind = p.step > 1 ? text("multiple of %lld", static_cast<long long>(p.step)) : "whole number";
    const std::string allowed =
        text("a %s from %lld to %s, for example %lld", kind.c_str(), static_cast<long long>(p.lowest),
             p.highest == int64_t{1} << 40 ? "2^40" : std::to_string(p.highest).c_str(),
             static_cast<long long>(options.shape[static_cast<int>(i)]));
    line.add_number<int64_t>(std::string("--") + p.name, options.shape.values[i], p.lowest, p.highest, allowed, p.help,
                             p.step);
  }
  add_seed(line, options);
  line.add_number<int>("--iterations", options.iterations, 1, 1000000,
                       "a whole number from 1 to 1000000, for example 50", "Timing samples per stage (GPU only)");
  line.add_number<int>("--pause", options.pause, 0, 60000, "a whole number from 0 to 60000, for example 100",
                       "Milliseconds for which the GPU rests before each sample (GPU only)");
  const std::vector<Tensor> tensors = op.tensors({});
  for (size_t i = 0; i < tensors.size(); ++i)
    if (tensors[i].optional) {
      const bool absent = options.variant.places[i].absent;
      line.add_flag(
          std::string(absent ? "--with-" : "--no-") + tensors[i].name,
          [&options, i, absent] { options.variant.places[i].absent = !absent; },
          text(absent ? "Give the main input its %s" : "Leave the %s out of the main input", tensors[i].name));
    }
  bool no_timing = false, no_small = false;
  line.add_flag("--no-timing", no_timing, "Check only (GPU only: the CPU device is never timed)");
  line.add_flag("--no-small", no_small, "Leave out the small problems: check the main input only");
  line.add_flag(
      "--analyze", options.analyze,
      "What make analyze runs: the smallest of the small problems, uncounted, then the main input; no timing");
  line.add_flag("--profile", options.profile,
                "Launch each stage once on the main input, for a profiler: checks nothing");
  line.add_text("--csv", options.csv, "FILE", "Also write the table to this file");
  if (experiments > 0) {
    const int most = static_cast<int>(experiments) + 1;
    line.add_number<int>("--experiment", options.experiment, 0, most, text("a number from 1 to %d, or 0 for all", most),
                         "Run only this experiment; 1: the stages; 0: all, on a GPU");
    line.add_text("--csv-dir", options.csv_dir, "DIR", "Also write each table to a CSV in this directory");
  }
  line.add_flag("--list", options.list, "List the stages and stop");
  line.parse(argc, argv);

  for (const Parameter& p : parameters) options.shape_given |= line.was_given(std::string("--") + p.name);
  options.timing = !no_timing && !options.analyze;
  options.small = !no_small;
  if (options.profile && line.was_given("--csv"))
    throw UsageError("--profile with --csv: a single unchecked launch has no table; leave one of them out");
  for (size_t i = 0; i < parameters.size(); ++i)
    if (options.profile && parameters[i].choices.empty() && options.shape[static_cast<int>(i)] == 0)
      throw UsageError(text("--profile with --%s 0: nothing to launch; give more", parameters[i].name));
  if (line.was_given("--csv") && options.csv.empty()) throw UsageError("--csv: give the name of a file to write");
  if (experiments > 0 && line.was_given("--csv-dir") && options.csv_dir.empty())
    throw UsageError("--csv-dir: give the name of a directory");
  for (const std::string& stage : chosen) options.stages.push_back(find_stage(stages, stage));
  std::sort(options.stages.begin(), options.stages.end());
  options.stages.erase(std::unique(options.stages.begin(), options.stages.end()), options.stages.end());
  if (options.stages.empty())
    for (size_t i = 0; i < stages.size(); ++i) options.stages.push_back(i);
  return options;
}

Options parse_mutant_options(int argc, const char* const* argv) {
  Options options;
  CommandLine line(
      "Runs one known-wrong kernel through the checks that a stage must pass.",
      "Exit code: 1 rejected, as it should be; 0 it passed, so the checks are blind to it; 2 a bad command line;\n"
      "77 this device cannot show the fault.");
  line.add_text("--mutant", options.mutant, "NAME", "The kernel to run");
  add_seed(line, options);
  line.add_flag("--list", options.list, "List the mutants, their faults and what a rejection must say, and stop");
  line.parse(argc, argv);
  if (!options.list && options.mutant.empty()) throw UsageError("no mutant named: give --mutant NAME, see --list");
  return options;
}

}  // namespace ladder
