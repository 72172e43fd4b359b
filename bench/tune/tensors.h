// The tensors that candidates work on: copies of one problem, side by side, and the check of what was written.
#pragma once
#include <string>

#include "bench/tune/candidate.h"
#include "common/device_buffer.h"

namespace tune {

struct Problem {
  bool adds;
  int64_t rows, cols;

  int64_t elements() const { return rows * cols; }
  // That a launch reads and writes, all but the weight: x and y, and with a residual that too, in and out.
  double bytes() const { return (adds ? 8.0 : 4.0) * static_cast<double>(elements()); }
};

class Pool {
 public:
  Pool(const Problem& problem, int64_t copies);

  int64_t copies() const { return copies_; }
  Tensors tensors(int64_t copy) const;

  // Around a launch on the first copy: NaN into y, a fresh residual; then what is wrong, in words, or nothing where
  // every sum and every y is right and nothing else was written.
  void prepare_first();
  std::string check_first() { return check(1, true); }

  // The same around launches on every copy, any number of times: a residual is whatever it has grown to.
  void prepare_all();
  std::string check_all() { return check(copies_, false); }

 private:
  std::string check(int64_t copies, bool with_sums);
  bf16* at(const ladder::DeviceBuffer& buffer, int64_t copy) const;

  Problem problem_;
  int64_t copies_;
  ladder::DeviceBuffer x_, y_, residual_, first_residual_, weight_;
  ladder::DeviceBuffer wrong_;  // two 64-bit counts
};

}  // namespace tune
