#include "tests/headers/rms_norm/topics.h"

namespace header_test {

Problem in_mode(Problem problem, int number) {
  problem.place(Op::kWeight).absent = number % 5 == 4;
  problem.variant.scalars = {number % 3 == 2 ? 1e-5 : 1e-6, number / 2 % 2 ? 1.0 : 0.0, number % 2 == 1 ? 1.0 : 0.0};
  problem.seed = number + 1;
  return problem;
}

std::vector<int> matrices(const Combination& c) {
  if (c.adds()) return {Op::kX, Op::kY, Op::kResidual, Op::kResidualOut};
  return {Op::kX, Op::kY};
}

void check(Tally& tally, const Combination& combination, const Problem& problem) {
  tally.expect(Trial(combination, problem).run());
}

std::vector<Group> topics(bool quick) {
  struct Topic {
    const char* name;
    void (*run)(Tally&, const Combination&, bool quick);
    bool for_mixed;  // not only for combinations of one type
  };
  const Topic all[] = {
      {"row lengths", lengths, true},
      {"pack counts", pack_counts, false},
      {"row counts", row_counts, false},
      {"modes", modes, true},
      {"alignment", alignment, true},
      {"strides", strides, true},
      {"heads", heads, false},
      {"in place", in_place, true},
      {"workspace", workspace, true},
      {"dependent launches", dependent, false},
      {"graphs", graphs, false},
      {"streams", streams, false},
      {"side by side", side_by_side, false},
      {"two threads", two_threads, false},
      {"values", values, true},
      {"determinism", determinism, false},
      {"batch invariance", batch_invariance, true},
      {"arguments", arguments, true},
  };
  std::vector<Group> groups;
  for (const Combination& c : combinations())
    for (const Topic& topic : all)
      if (c.uniform() || topic.for_mixed)
        groups.push_back(
            {c.name() + ": " + topic.name, [&c, topic, quick](Tally& tally) { topic.run(tally, c, quick); }});
  groups.push_back({"two devices", [quick](Tally& tally) { two_devices(tally, quick); }});
  return groups;
}

std::vector<Group> shapes(const std::vector<int64_t>& rows, const std::vector<int64_t>& cols) {
  std::vector<Group> groups;
  for (const Combination& c : combinations())
    groups.push_back({c.name(), [&c, rows, cols](Tally& tally) {
                        Workspace memory;
                        for (const int64_t r : rows)
                          for (const int64_t n : cols)
                            for (const bool with_workspace : {false, true}) {
                              Problem problem = {r, n};
                              problem.workspace = with_workspace ? memory.data() : nullptr;
                              check(tally, c, problem);
                            }
                      }});
  return groups;
}

}  // namespace header_test
