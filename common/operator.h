// What the harness needs to know of an operator. Each operator is one file below common/operators/ that defines it.
#pragma once
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "common/stage.h"
#include "common/tensor.h"

namespace ladder {

struct Parameter {
  const char* name;      // of the option: "rows"
  int64_t lowest, main;  // the least value, and that of the main input
  const char* help;
  std::vector<const char*> choices = {};  // a name for each value from 0 on, where values are no numbers
  int64_t step = 1;                       // values are multiples of it
  int64_t highest = int64_t{1} << 40;

  std::string text_of(int64_t value) const { return choices.empty() ? std::to_string(value) : choices[value]; }
};

struct Scalar {
  const char* name;  // "eps"
  double value;
};

// How a kernel gets a problem: where each tensor lies, and the values of the scalars.
struct Variant {
  std::vector<Place> places;
  std::vector<double> scalars;
};

// For `count` elements: the exact value, and the bounds of a right result. If they are NaN, the result must be NaN.
struct Answers {
  double *expected, *low, *high;
};

// The first wrong element of an output.
struct Wrong {
  int64_t element;
  double expected, got;
  double factor;  // got / expected, where it is the same for all wrong elements, or NaN
};

// Computes the right answers for the inputs of one problem.
class Oracle {
 public:
  virtual ~Oracle() = default;

  // Elements [first, first + count) of an output, in the order of its rows. Called from several threads.
  virtual void answer(const Variant& variant, int tensor, int64_t first, int64_t count, const Answers& to) const = 0;

  // What the bounds allow, for the report's column "limit": mostly a relative error.
  virtual double tolerance() const = 0;

  // Whether bits are compared, the sign of zero included.
  virtual bool is_exact(int) const { return false; }

  // What may have led to a wrong element, "" or a phrase.
  virtual std::string cause(int, const Wrong&) const { return ""; }

  // For a tensor in pieces: what is wrong with it, "" or one sentence.
  virtual std::string judge(int, const void*) const { return ""; }
};

class Operator {
 public:
  virtual ~Operator() = default;

  virtual const char* title() const = 0;  // "RMSNorm"
  virtual std::vector<Parameter> parameters() const = 0;
  virtual std::vector<Scalar> scalars() const { return {}; }

  // In the order of the launcher's arguments.
  virtual std::vector<Tensor> tensors(const Shape& shape) const = 0;

  // Edge cases: shapes that show faults, and the variants in which each is checked. More of both takes longer, so give
  // many variants to small shapes only. On the CPU device everything runs twice and on few cores.
  virtual std::vector<Shape> edge_cases(bool cpu_device) const = 0;
  virtual std::vector<Variant> variants(const Shape& shape) const = 0;

  // How many devices a launch runs on: 0 to devices - 1, each with tensors of its own. The launcher gets the stream
  // cudaStreamPerThread, which is another one on each device, and launches on all of them.
  virtual int devices(const Shape&) const { return 1; }

  // Draws the contents of a tensor before the launch, rows without gaps. The same seed gives the same bits everywhere.
  virtual void fill(const Shape& shape, int tensor, uint64_t seed, void* to) const = 0;

  // inputs: one per tensor, as filled; nullptr for tensors that are not read. They outlive the oracle.
  virtual std::unique_ptr<Oracle> oracle(const Shape& shape, const std::vector<const void*>& inputs) const = 0;

  // The fewest bytes that a launch moves on a device: every input once, every output once.
  virtual double bytes(const Shape& shape, const Variant& variant) const;

  // Arithmetic operations of a launch, for rooflines; a fused multiply-add is two.
  virtual double operations(const Shape&) const { return 0; }
  // Whether the report shows them per second: not where only bandwidth matters.
  virtual bool shows_operations() const { return false; }

  // Whether the same launch must give the same bits each time.
  virtual bool repeats_bits() const { return true; }

  // Contiguous, aligned, nothing left out, the scalars as declared. If an operator works in place, its output lies in
  // the memory of its input here too.
  virtual Variant plain() const;
  // The same with the first tensors off by so many elements.
  Variant off_by(std::initializer_list<int> elements) const;
};

// The most devices that a launch of that shape or an edge case runs on.
int most_devices(const Operator& op, const Shape& shape);

std::string shape_text(const Operator& op, const Shape& shape);  // "3 x 1025", "n = 257"

}  // namespace ladder
