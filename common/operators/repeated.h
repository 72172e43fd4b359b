// Work that is repeated on the same data, so that a cache or the arithmetic decides the time, and not DRAM: ceilings.
// Every operator here has the parameters n and repeats.
#pragma once
#include "common/stage.h"

namespace ladder {

// Reads all of n words `repeats` times, in whatever order. `to` holds a word for each kTile of a reading; it is zero
// before the launch, and afterwards its words add up to `repeats` times the sum of those of `from`, modulo 2^32.
struct RepeatedRead {
  using Launch = void (*)(const float* from, float* to, int64_t n, int64_t repeats, cudaStream_t stream);
  static const Operator& get();

  static constexpr int64_t kTile = 4096;
};

// Replaces each of n floats x by x² + kShift, as one fused multiply-add, `repeats` times. The sequence stays between
// -2 and 2 and never settles: a step too few, too many or with another rounding changes the last bits, and all are
// compared.
struct RepeatedFma {
  using Launch = void (*)(const float* input, float* output, int64_t n, int64_t repeats, cudaStream_t stream);
  static const Operator& get();

  static constexpr float kShift = -1.9f;
};

// A matrix product, added up `repeats` times: output = repeats · A · B. Rows of A and columns of B are kWords 32-bit
// words each: 64 halfs, or 128 int8. The output has n elements in rows of kColumns, the last row may be incomplete; A
// has as many rows, up to the next multiple of kRows. All products and sums of halfs are whole numbers that float32
// holds exactly; sums of int8 are modulo 2^32.
struct Products {
  static constexpr int64_t kRows = 64, kColumns = 256, kWords = 32, kTile = kRows * kColumns;

  // With more repeats a sum of halfs might be rounded: 64 · 4 · 4 · 16384 = 2^24.
  static const char* rounds(const Shape& shape) {
    return shape[1] > 16384 ? "float32 would round the sums; give at most 16384 repeats" : nullptr;
  }
};
struct HalfProducts : Products {
  using Launch = void (*)(const uint32_t* a, const uint32_t* b, float* output, int64_t n, int64_t repeats,
                          cudaStream_t stream);
  static const Operator& get();
};
struct Int8Products : Products {
  using Launch = void (*)(const uint32_t* a, const uint32_t* b, int32_t* output, int64_t n, int64_t repeats,
                          cudaStream_t stream);
  static const Operator& get();
};

}  // namespace ladder
