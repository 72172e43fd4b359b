// The checks that every stage must pass and that every mutant must fail.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/compare.h"

namespace ladder {

using Launcher = std::function<void(const Arguments& arguments, cudaStream_t stream)>;

// The inputs of one shape on the host, and the oracle for them. Each shape draws its own numbers from the seed.
struct Case {
  // `change` may replace the inputs that were drawn, before the oracle sees them.
  Case(const Operator& op, const Shape& shape, uint64_t seed, const std::function<void(Case&)>& change = {});

  const Operator& op;
  Shape shape;
  std::vector<Tensor> tensors;
  std::vector<HostMemory> inputs;  // one per tensor, rows without gaps
  std::unique_ptr<Oracle> oracle;
};

struct Outcome {
  std::string failure;  // empty: right
  double worst_error = 0, tolerance = 0;
};

// Device memory for all tensors of a problem, each between guards. Tensors that share memory have one buffer.
class Buffers {
 public:
  Buffers(const Case& c, const Variant& variant);

  Arguments arguments() const { return {pointers_.data(), shape_, scalars_.data()}; }
  DeviceTensor& operator[](size_t tensor) { return *tensors_[tensor]; }

  void upload(const Case& c);   // everything that is read
  void prepare(const Case& c);  // what a run overwrites: fresh inputs where an output lies, poison or zeros in outputs

  // The following two functions check at most `sample` rows of each tensor.
  // Which memory was written that no kernel may write, "" or sentences. It is restored for the next stage.
  std::string side_effects(const Case& c, int64_t sample = INT64_MAX);

  // Whether the outputs are right.
  Outcome verify(const Case& c, const Variant& variant, int64_t sample = INT64_MAX);

  // Whether all outputs hold the same bits as when verify() last read them, or last read those of others.
  bool same_as_verified() { return same_as_verified(*this); }
  bool same_as_verified(const Buffers& others);

 private:
  friend class Pool;
  Buffers(const Case& c, const Variant& variant, const Buffers* shared);
  bool written_over(size_t tensor) const { return written_over_[tensor]; }
  void download(const Case& c, size_t tensor, int64_t sample);
  bool is_unchanged(const Case& c, size_t tensor, int64_t sample) const;
  std::string unlike_twin(const Case& c, size_t tensor, int64_t sample) const;  // "", or in which row

  Shape shape_;
  std::vector<double> scalars_;
  std::vector<std::shared_ptr<DeviceTensor>> tensors_;
  std::vector<void*> pointers_;
  std::vector<bool> written_over_;  // inputs whose memory an output shares
  std::vector<HostMemory> got_;     // the outputs
};

// A case on the device in one variant. It keeps its buffers, so that several stages can run on one upload.
class Problem {
 public:
  Problem(const Case& c, const Variant& variant);

  // Runs once in each thread order ("forward", "reversed": the CPU device obeys; nullptr: as it comes) on poisoned
  // outputs. Every element, or those of `sample` rows, must be right, all runs equal in every bit, nothing else
  // written.
  Outcome check(const Launcher& launch, const std::vector<const char*>& orders, int64_t sample = INT64_MAX);

  // Throws if the launch fails.
  void launch(const Launcher& launch, const Arguments& arguments, cudaStream_t stream) const;

  const Case& given() const { return case_; }
  const Variant& variant() const { return variant_; }
  int devices() const { return case_.op.devices(case_.shape); }
  std::string context() const;  // "3 x 1025, weight, eps 1e-06, output off by one element"

  // "", or that not all kernels go to the stream that the launcher is given. Nothing runs.
  std::string launches_elsewhere(const Launcher& launch);

  Buffers buffers;

 private:
  std::string again(const Launcher& kernel, const char* order);

  const Case& case_;
  Variant variant_;
};

// For launches on several devices: one after the other without a wait, with four sets of inputs in turn, each with
// outputs of its own. Before some launches one of the devices is kept waiting for up to 30 microseconds.
Outcome check_in_a_row(const Launcher& launch, const Operator& op, const Shape& shape, uint64_t seed, int launches);

// The thread order that the user asks of the CPU device with SIMT_ORDER; "": none.
std::string asked_thread_order(bool cpu_device);

// That order alone, or both: they show on one CPU what a race would do on a GPU. On a GPU the kernel runs twice
// instead.
std::vector<const char*> thread_orders(bool cpu_device);

// All edge cases of an operator that there are enough devices for, in all their variants. Stops at the first failure,
// which the outcome names.
class EdgeCases {
 public:
  // Leaves out shapes with a tensor of more than `most` elements; scratch memory does not count.
  EdgeCases(const Operator& op, bool cpu_device, uint64_t seed, int64_t most = INT64_MAX);
  Outcome check(const AnyStage& stage) const;  // shapes that the stage refuses are left out
  int count() const;                           // problems per stage

 private:
  bool cpu_device_;
  uint64_t seed_;
  std::vector<std::unique_ptr<Case>> cases_;
};

// One shape as the operator declares it, in all thread orders. `say` is called with each step, for a progress line.
Outcome check_shape(const AnyStage& stage, const Shape& shape, uint64_t seed, bool cpu_device,
                    const std::function<void(const std::string&)>& say = {});

}  // namespace ladder
