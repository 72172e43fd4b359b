// Tests of the production header, include/rms_norm/rms_norm.cuh, against float64. make test runs --quick on the
// CPU device; all of it, on a GPU:   make -j -C tests/headers/rms_norm BACKEND=cuda run
// for the sanitizer:     compute-sanitizer tests/headers/rms_norm/header_test --quick --filter 'bfloat16 forward'
#include <algorithm>
#include <cstdio>
#include <utility>

#include "common/command_line.h"
#include "common/program.h"
#include "tests/headers/rms_norm/groups.h"

namespace header_test {

std::vector<Combination>& combinations() {
  static std::vector<Combination> all;
  return all;
}

std::string Combination::name() const {
  std::string result = name_of(types.x) + std::string(adds() ? " fused_add" : " forward");
  if (residual() != types.x) result += std::string(", ") + name_of(residual()) + " residual";
  if (types.weight != types.x) result += std::string(", ") + name_of(types.weight) + " weight";
  if (types.y != types.x) result += std::string(", to ") + name_of(types.y);
  return result;
}

namespace {

bool device_is_lost() {
  static_cast<void>(cudaGetLastError());
  return cudaDeviceSynchronize() != cudaSuccess;
}

int run(const std::vector<Group>& groups) {
  Tally total;
  for (const Group& group : groups) {
    Tally tally;
    try {
      group.run(tally);
    } catch (const ladder::CudaError& error) {
      tally.expect(error.what());
    }
    std::printf("%s  %-70s %6lld passed",
                tally.failed   ? "FAIL"
                : tally.passed ? "pass"
                               : "skip",
                group.name.c_str(), static_cast<long long>(tally.passed));
    if (tally.failed) std::printf(", %lld failed", static_cast<long long>(tally.failed));
    if (tally.skipped) std::printf(", %lld skipped", static_cast<long long>(tally.skipped));
    std::printf("\n");
    for (const std::string& failure : tally.failures) std::printf("      %s\n", failure.c_str());
    std::fflush(stdout);
    total.passed += tally.passed;
    total.failed += tally.failed;
    total.skipped += tally.skipped;
    if (tally.failed && device_is_lost()) {
      std::printf("the device cannot go on after this fault: the groups that follow were not run\n");
      break;
    }
  }
  std::printf("%lld passed, %lld failed, %lld skipped\n", static_cast<long long>(total.passed),
              static_cast<long long>(total.failed), static_cast<long long>(total.skipped));
  return total.failed > 0 ? 1 : 0;
}

int body(int argc, char** argv) {
  bool quick = false, list = false;
  std::string filter;
  ladder::CommandLine line("Tests of include/rms_norm/rms_norm.cuh against float64.");
  line.add_flag("--quick", quick, "fewer and shorter rows");
  line.add_flag("--list", list, "name the groups and run none");
  line.add_text("--filter", filter, "TEXT", "only the groups whose name contains TEXT");
  std::vector<int64_t> rows = {3}, cols, part = {1, 1};
  line.add_list("--part", part, "K,N", "every Nth group, from the Kth on");
  line.add_list("--cols", cols, "N,...", "only these shapes, with and without a workspace");
  line.add_list("--rows", rows, "N,...", "of --cols; 3 if not given");
  line.parse(argc, argv);
  if (line.was_given("--rows") && cols.empty()) throw ladder::UsageError("--rows without --cols: give both");
  for (const int64_t n : cols)
    if (n < 1 || n > 1 << 28) throw ladder::UsageError("--cols: give numbers from 1 to 2^28");
  for (const int64_t n : rows)
    if (n < 0 || n > 1 << 28) throw ladder::UsageError("--rows: give numbers from 0 to 2^28");

  std::vector<Group> groups = cols.empty() ? topics(quick) : shapes(rows, cols);
  if (cols.empty()) {
    for (Group& group : backward(quick)) groups.push_back(std::move(group));
    for (Group& group : quantized(quick)) groups.push_back(std::move(group));
    for (Group& group : rope(quick)) groups.push_back(std::move(group));
    groups.push_back(large(quick));
  }
  const auto left_out = [&](const Group& group) { return group.name.find(filter) == std::string::npos; };
  groups.erase(std::remove_if(groups.begin(), groups.end(), left_out), groups.end());
  if (groups.empty()) throw ladder::UsageError("--filter '" + filter + "': no group's name contains that; see --list");
  if (part.size() != 2 || part[0] < 1 || part[0] > part[1] || part[0] > static_cast<int64_t>(groups.size()))
    throw ladder::UsageError("--part: give K,N with K from 1 to N and to the number of groups");
  std::vector<Group> chosen;
  for (size_t i = part[0] - 1; i < groups.size(); i += part[1]) chosen.push_back(std::move(groups[i]));
  if (list) {
    for (const Group& group : chosen) std::printf("%s\n", group.name.c_str());
    return 0;
  }
  ladder::require_device();
  return run(chosen);
}

}  // namespace
}  // namespace header_test

int main(int argc, char** argv) {
  return ladder::guarded(argv[0], [&] { return header_test::body(argc, argv); });
}
