// One call of the header on a problem of the harness.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/check.h"
#include "tests/headers/rms_norm/combination.h"

namespace header_test {

using Op = ladder::TypedRmsNorm;
using ladder::Case;

// Zeroed device memory for Options::workspace, between guards. It must outlive the calls.
class Workspace {
 public:
  Workspace();
  void* data() const { return memory_.data(); }
  bool is_overrun() { return !memory_.overrun("workspace").empty(); }

 private:
  ladder::DeviceTensor memory_;
};

struct Problem {
  int64_t rows, cols;
  ladder::Variant variant = {std::vector<ladder::Place>(5), {1e-6, 0.0, 0.0}};
  void* workspace = nullptr;
  bool dependent_launch = false, batch_invariant = false;
  uint64_t seed = 1;

  ladder::Place& place(int tensor) { return variant.places[tensor]; }
  Layout& layout(int tensor) { return place(tensor).layout; }
};

class Trial {
 public:
  // `change` may write other inputs over those drawn.
  Trial(const Combination& combination, const Problem& problem, const std::function<void(Case&)>& change = {});

  // The whole of it, as often as is asked for: what was wrong in one sentence, or nothing.
  std::string run(int times = 1);

  // Its parts. reset() writes inputs and poison; check() waits, and compares everything with what is right for `given`,
  // or for inputs of the same shape that other calls have written.
  void reset() { buffers().prepare(given); }
  cudaError_t launch(cudaStream_t stream) const { return combination_.run(call(), stream); }
  std::string check(const Case& read);
  std::string check() { return check(given); }
  std::vector<char> results();  // the bits of all outputs, without gaps; waits
  bool untouched();             // nothing at all has been written since reset()

  Call call() const;
  ladder::Buffers& buffers() { return problem_->buffers; }
  const Problem& asked() const { return asked_; }
  const Combination& combination() const { return combination_; }
  std::string failed(const std::string& why) const { return why.empty() ? "" : name() + ": " + why; }
  std::string failed(cudaError_t error) const;

  const Case given;
  std::vector<void*> tensors;  // what the call gets; another trial's memory may stand here

 private:
  std::string name() const;

  const Combination& combination_;
  Problem asked_;
  std::unique_ptr<ladder::Problem> problem_;
  Layout layouts_[5];
};

}  // namespace header_test
