// Command line, table, CSV and exit codes.
#include <doctest/doctest.h>
#include <pty.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "common/csv_file.h"
#include "common/operators/rms_norm.h"
#include "common/report.h"

using namespace ladder;
namespace fs = std::filesystem;

namespace {

void does_nothing(const float*, const float*, float*, int64_t, int64_t, float, cudaStream_t) {}

// RMSNorm in whole vectors of four: right where there is no tail.
void drops_the_tail(const float* input, const float* weight, float* output, int64_t rows, int64_t cols, float eps,
                    cudaStream_t) {
  std::vector<float> x(rows * cols), w(cols, 1.0f), y(rows * cols, 0.0f);
  if (rows == 0) return;
  cudaMemcpy(x.data(), input, x.size() * sizeof(float), cudaMemcpyDeviceToHost);
  if (weight) cudaMemcpy(w.data(), weight, w.size() * sizeof(float), cudaMemcpyDeviceToHost);
  for (int64_t row = 0; row < rows; ++row) {
    const float* from = x.data() + row * cols;
    float sum = 0;
    for (int64_t i = 0; i < cols; ++i) sum += from[i] * from[i];
    for (int64_t i = 0; i < cols / 4 * 4; ++i)
      y[row * cols + i] = from[i] / std::sqrt(sum / static_cast<float>(cols) + eps) * w[i];
  }
  cudaMemcpy(output, y.data(), y.size() * sizeof(float), cudaMemcpyHostToDevice);
}

const std::vector<AnyStage> kStages = {Stage<RmsNorm>{"01_basic", "one", does_nothing},
                                       Stage<RmsNorm>{"02_reduction5", "two", does_nothing},
                                       Stage<RmsNorm>{"06_vectorized", "three", does_nothing}};

Options options(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "program");
  return parse_options(kStages, 0, static_cast<int>(arguments.size()), arguments.data());
}

// The one sentence that a bad command line gets.
std::string complaint(const std::vector<const char*>& arguments) {
  try {
    options(arguments);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "none";
}

int run(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "program");
  return run_all(kStages, static_cast<int>(arguments.size()), const_cast<char**>(arguments.data()));
}

std::string contents(const fs::path& path) {
  std::ifstream file(path);
  std::stringstream all;
  all << file.rdbuf();
  return all.str();
}

struct Folder {
  fs::path path;
  Folder() {
    char name[] = "/tmp/ladder_test_XXXXXX";
    path = mkdtemp(name);
  }
  ~Folder() { fs::remove_all(path); }
};

}  // namespace

TEST_CASE("options") {
  CHECK(options({}).stages == std::vector<size_t>{0, 1, 2});
  CHECK(options({"--stage", "6"}).stages == std::vector<size_t>{2});
  CHECK(options({"--stage", "06,basic", "--stage", "6"}).stages == std::vector<size_t>{0, 2});
  CHECK(options({"--stage", "02_reduction5"}).stages == std::vector<size_t>{1});
  CHECK(options({"--rows", "0", "--cols=7"}).shape[1] == 7);
  CHECK(options({"--seed", "18446744073709551615"}).seed == UINT64_MAX);
  CHECK(options({}).small);
  CHECK(options({}).shape[0] == 8192);  // the operator's
  CHECK(options({}).shape[1] == 4096);  // the ladder's
  CHECK_FALSE(options({"--no-small"}).small);
  CHECK(options({"--profile"}).profile);
  CHECK(options({"--no-weight"}).variant.places[1].absent);
  CHECK_FALSE(options({}).variant.places[1].absent);
  CHECK_THROWS_AS(options({"--help"}), HelpAsked);
}

TEST_CASE("a bad command line gets one sentence that says what was given and what is allowed") {
  CHECK(complaint({"--rows", "-1"}) == "--rows '-1': give a whole number from 0 to 2^40, for example 8192");
  CHECK(complaint({"--cols", "0"}) == "--cols '0': give a whole number from 1 to 2^40, for example 4096");
  CHECK(complaint({"--stage", "99"}) ==
        "--stage '99': no such stage; give a number from 1 to 6 or a name that --list shows");
  for (const char* number : {"", "1e3", "0x10", "99999999999999999999", "1.5", "abc", " 1"})
    CHECK(complaint({"--rows", number}).find("--rows") == 0);
  for (const std::vector<const char*>& arguments : std::vector<std::vector<const char*>>{{"--bogus"},
                                                                                         {"extra"},
                                                                                         {"--rows"},
                                                                                         {"--rows", "1", "--rows", "2"},
                                                                                         {"--stage", "3"},
                                                                                         {"--stage", ""},
                                                                                         {"--seed", "-1"},
                                                                                         {"--iterations", "0"},
                                                                                         {"--profile", "--csv", "x"},
                                                                                         {"--profile", "--rows", "0"},
                                                                                         {"--csv"}}) {
    const std::string sentence = complaint(arguments);
    CHECK(sentence != "none");
    CHECK(sentence.find('\n') == std::string::npos);
  }
}

TEST_CASE("a CSV appears whole or not at all") {
  const Folder folder;
  const std::string path = (folder.path / "table.csv").string();
  const CsvFile file(path);
  CHECK(fs::is_empty(folder.path));
  file.write("a,b\n");
  CHECK(contents(path) == "a,b\n");
  file.write("c\n");
  CHECK(contents(path) == "c\n");
  CHECK(std::distance(fs::directory_iterator(folder.path), {}) == 1);
  fs::create_symlink(path, folder.path / "link");
  CsvFile((folder.path / "link").string()).write("d\n");
  CHECK(fs::is_symlink(folder.path / "link"));
  CHECK(contents(path) == "d\n");
  for (const char* bad : {"/nonexistent/x", "/tmp", "/dev/null"}) CHECK_THROWS_AS(CsvFile{bad}, UsageError);
}

TEST_CASE("exit codes") {
  const Folder folder;
  const std::string csv = (folder.path / "table.csv").string();
  CHECK(run({"--help"}) == 0);
  CHECK(run({"--list"}) == 0);
  CHECK(run({"--rows", "-1"}) == 2);
  CHECK(run({"--csv", "/nonexistent/x"}) == 2);
  CHECK(run({"--rows", "1000000000", "--cols", "1000000"}) == 2);
  CHECK(run({"--rows", "8", "--cols", "8", "--csv", csv.c_str()}) == 1);  // these stages write nothing
  CHECK(contents(csv).find("\n01_basic,FAIL,8,8,1,1,") != std::string::npos);
  CHECK(run({"--rows", "8", "--cols", "8", "--profile"}) == 0);  // launched, and not judged
  CHECK(run({"--rows", "8", "--cols", "8", "--no-small", "--csv", csv.c_str()}) == 1);
  CHECK(contents(csv).find("\n01_basic,FAIL,8,8,1,1,NaN,") != std::string::npos);
  const Stage<RmsNorm> hopper = {"07_later", "needs what is not there", does_nothing, {1000}};
  const char* arguments[] = {"program", "--rows", "8", "--cols", "8"};
  CHECK(run_all({hopper}, 5, const_cast<char**>(arguments)) == 0);  // skipped, and said so
  const Stage<RmsNorm> narrow = {"08_narrow", "refuses", does_nothing, {0, RmsNorm::one_block_per_row}};
  const char* many[] = {"program", "--rows", "900000000000", "--cols", "8"};  // too large: refused without allocating
  CHECK(run_all({narrow}, 5, const_cast<char**>(many)) == 2);
  CHECK(run_all({narrow}, 5, const_cast<char**>(arguments)) == 1);
}

TEST_CASE("make analyze's run looks at a tail too") {
  const Stage<RmsNorm> stage = {"09_whole", "no tail", drops_the_tail};
  const auto exit_code = [&](const char* option) {
    const char* arguments[] = {"program", "--rows", "4", "--cols", "64", "--no-timing", option};
    return run_all({stage}, 7, const_cast<char**>(arguments));
  };
  CHECK(exit_code("--no-small") == 0);
  CHECK(exit_code("--analyze") == 1);
}

TEST_CASE("a mutant that takes long says on a terminal what it is doing") {
  int ours = -1, terminal = -1;
  if (openpty(&ours, &terminal, nullptr, nullptr, nullptr) != 0) return;  // this machine has no pseudo-terminals
  const Mutant<RmsNorm> mutant{"large", "does nothing", does_nothing, "", Shows::anywhere, {{7, 33}}};
  const char* arguments[] = {"program", "--mutant", "large"};
  const int errors = dup(STDERR_FILENO);
  dup2(terminal, STDERR_FILENO);
  const int code = run_mutants({mutant}, 3, const_cast<char**>(arguments));
  dup2(errors, STDERR_FILENO);
  close(errors);
  close(terminal);
  std::string shown;  // arrives in pieces; after the last one, read fails, since the terminal is closed
  char piece[4096];
  for (ssize_t size; (size = read(ours, piece, sizeof piece)) > 0;) shown.append(piece, size);
  close(ours);
  CHECK(code == 1);
  CHECK(shown.find("large: 7 x 33: running the kernel") != std::string::npos);
}

TEST_CASE("counts are for people, and of what the heading names") {
  Report report;
  report.device.cpu = true;
  report.options.shape = {{8192, 8192}};
  report.options.variant = RmsNorm::get().plain();
  Result result;
  result.stage = &kStages[0];
  result.verdict = Verdict::fail;
  result.reached = true;
  result.worst_error = -std::nan("");
  result.counters = {8, 1024, 163840};
  report.results.push_back(result);
  CHECK(report.table().find("barriers per block") != std::string::npos);  // these tests belong to no ladder
  CHECK(report.table().find("163,840") != std::string::npos);
  CHECK(report.table().find("e+05") == std::string::npos);
  CHECK(report.table().find(" NaN ") != std::string::npos);
  CHECK(report.csv().find(",163840,") != std::string::npos);
  report.results[0].counters.barriers_per_block = 1025.0 / 1024;
  CHECK(report.table().find("1.00098") == std::string::npos);
  report.thread_order = "reversed";
  CHECK(report.table().find("the order 'reversed' alone") != std::string::npos);
}

TEST_CASE("the table fits 100 columns") {
  Report report;
  report.device.peak_bytes_per_second = 4.8e12;
  report.options.shape = {{1234567, 1234567}};
  report.options.variant = RmsNorm::get().plain();
  report.copy_timed = true;
  report.copy = {127.5, 0.2};
  report.copied_bytes = 8.0 * 1234567 * 1234567;
  for (size_t i = 0; i < kStages.size(); ++i) {
    Result result;
    result.stage = &kStages[i];
    result.verdict = Verdict::pass;
    result.worst_error = result.tolerance = 1e-5;
    result.reached = true;
    result.reason = "a reason " + std::string(i * 9, 'x') + " that is far longer than a line has room for, " +
                    "so that it must be broken somewhere, and then once more if it goes on like this";
    result.timed = true;
    result.timing = {12345.67 / static_cast<double>(i + 1), 12.3};
    report.results.push_back(result);
  }
  for (const bool cpu : {false, true}) {
    report.device.cpu = report.results[1].timed = cpu;
    report.results[1].verdict = cpu ? Verdict::pass : Verdict::fail;
    std::istringstream lines(report.table());
    for (std::string line; std::getline(lines, line);) {
      CAPTURE(line);
      CHECK(line.size() <= 100);
    }
  }
  report.device.cpu = false;
  report.results[1].verdict = Verdict::pass;
  report.results[1].timed = true;
  CHECK(report.table().find("fastest first: 06_vectorized > 02_reduction5 > 01_basic") != std::string::npos);
  CHECK(report.table().find("3.00x") != std::string::npos);
  CHECK(report.csv().find(",speedup_over_basic,") != std::string::npos);
  CHECK(report.all_right());
  report.results[1].verdict = Verdict::skipped;
  CHECK(report.all_right());
  report.results[1].verdict = Verdict::not_run;
  CHECK_FALSE(report.all_right());
}
