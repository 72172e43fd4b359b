// The checks that every stage must pass and that every mutant must fail.
#pragma once
#include <string>
#include <vector>

#include "common/compare.h"
#include "common/device_buffer.h"
#include "common/stage.h"

namespace ladder {

struct Shape {
  int64_t rows, cols;
};

// Shapes that find faults: around the sizes of warps, blocks and vectors, no rows, one long row.
std::vector<Shape> hurtful_shapes(bool cpu_device);

// One input on the host with what its oracle needs. Each shape draws its own numbers from the seed.
struct Case {
  Case(Shape shape, uint64_t seed);
  Shape shape;
  HostBuffer input;
  std::vector<float> weight;
  std::vector<double> mean_square;
};

// How the kernel gets a case: with or without weight, each pointer on a 256-byte boundary or one float past it.
struct Variant {
  bool weight = true;
  int input_offset = 0, output_offset = 0, weight_offset = 0;
  float eps = 1e-6f;
};

struct Outcome {
  std::string failure;  // empty: right
  double worst_error = 0, tolerance = 0;
};

// A case on the device. Keeps its buffers, so that several stages can be run on one upload.
class Problem {
 public:
  Problem(const Case& c, const Variant& variant);

  // Runs once in each thread order ("forward", "reversed": the CPU device obeys; nullptr: as it comes) on poisoned
  // output. Every element must be within tolerance, all runs equal in every bit, nothing else written.
  Outcome check(Launch launch, const std::vector<const char*>& orders);

  // Whether a buffer holds the right answer, as check() judges it.
  Outcome verify(const DeviceBuffer& result);

  void launch(Launch kernel, const float* from, float* to, cudaStream_t stream) const;
  Shape shape() const { return case_.shape; }
  std::string context() const;  // "3 x 1025, weight, output off by one element"

  DeviceBuffer input, weight, output;

 private:
  std::string side_effects();  // what was written that nothing may write; put right for the next stage
  bool same_bits(const DeviceBuffer& buffer, const float* host);

  const Case& case_;
  Variant variant_;
  Reference reference_;
  HostBuffer got_, staging_;
};

// All hurtful shapes in all variants. Stops at the first failure, which the outcome names.
class HurtfulChecks {
 public:
  HurtfulChecks(bool cpu_device, uint64_t seed);
  Outcome check(Launch launch) const;
  int count() const;  // problems per stage

 private:
  bool cpu_device_;
  std::vector<Case> cases_;
};

// One shape, aligned, with or without weight, in all thread orders.
Outcome check_shape(Launch launch, Shape shape, bool weight, uint64_t seed, bool cpu_device);

}  // namespace ladder
