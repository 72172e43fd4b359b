// Weights to multiply with, in both forms, and what a product is, in float64.
#pragma once
#include <cstdint>

#include "common/memory.h"

namespace tune {

// Random blocks of q4_0 and random columns of x, the same in every run.
void fill(unsigned char* blocks, int64_t block_count, float* x, int64_t x_count);

// The header's: bytes, and blocks in the order of a product.
int64_t packed_bytes(int64_t m, int64_t k);
int64_t workspace_bytes(int64_t m, int64_t n, int64_t k);
void repack(const unsigned char* blocks, char* packed, int64_t m, int64_t k);

// Some columns of a product, exactly: of x as it is in q8_1; or rounded, with weights and x rounded to float16.
class Reference {
 public:
  Reference(const unsigned char* blocks, const float* x, int64_t m, int64_t n, int64_t k, bool rounded);

  // How many elements of these columns are off by more than their roundings can be; NaN is.
  int64_t wrong(const float* y) const;

 private:
  int64_t m_, first_, last_, n_;  // columns below first_ and from last_ on
  double tolerance_;
  ladder::DeviceMemory<double> sums_, magnitudes_;
  ladder::DeviceMemory<int> wrong_;
};

}  // namespace tune
