// A group of checks that belong together: one line of the program's output.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "tests/headers/rms_norm/trial.h"

namespace header_test {

struct Tally {
  int64_t passed = 0, failed = 0, skipped = 0;
  std::vector<std::string> failures;  // the first few

  void expect(const std::string& failure) {  // empty: passed
    failure.empty() ? ++passed : ++failed;
    if (!failure.empty() && failures.size() < 5) failures.push_back(failure);
  }
  void expect(bool right, const std::string& failure) { expect(right ? std::string() : failure); }
  void skip(const std::string& why) {
    ++skipped;
    failures.push_back("skipped: " + why);
  }
};

struct Group {
  std::string name;
  std::function<void(Tally&)> run;
};

std::vector<Group> topics(bool quick);     // what holds for all combinations of types
Group large(bool quick);                   // more elements than 2^31
std::vector<Group> backward(bool quick);   // the gradients
std::vector<Group> quantized(bool quick);  // norms that end in 8 bits
std::vector<Group> rope(bool quick);       // heads that are normalized and rotated
std::vector<Group> shapes(const std::vector<int64_t>& rows, const std::vector<int64_t>& cols);  // with each other

}  // namespace header_test
