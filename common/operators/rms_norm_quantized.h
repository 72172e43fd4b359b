// RMSNorm that ends in 8 bits: kept = x, or x + residual rounded to bfloat16;
//   y = kept · rstd · weight, rounded to bfloat16, with rstd = 1 / sqrt(mean(kept²) + eps)
//   scale = given, or max(largest |y| / largest number, least scale), of a row or of each 128 columns
//   q = y / scale, rounded to nearest even; what is too large becomes the largest number of its sign
#pragma once
#include "common/stage.h"

struct __nv_bfloat16;

namespace ladder {

// float8 with 4 bits of exponent and 3 of fraction, up to 448; or whole numbers from -127 to 127.
enum class Format { e4m3, int8 };
template <Format format>
constexpr float kLargest = format == Format::e4m3 ? 448.0f : 127.0f;
template <Format format>
constexpr float kLeastScale = format == Format::e4m3 ? 1.0f / (448.0f * 512.0f) : 0x1p-23f;  // vLLM's

// Matrices are rows × cols elements without gaps; all are aligned to an element and no more.
struct QuantizedCall {
  const __nv_bfloat16 *x, *weight;  // weight: cols elements, or nullptr: 1
  const __nv_bfloat16* residual;    // or nullptr
  const float* scale;               // one number for all elements; or nullptr: the kernel finds scales
  void* q;                          // one byte for each element
  float* scales;                    // rows; or with blocks, cols / 128 (rounded up) rows of `rows` scales. Or nullptr
  __nv_bfloat16* residual_out;      // kept; or nullptr
  __nv_bfloat16* y;                 // or nullptr
  __nv_bfloat16* scratch;           // a matrix; its contents before a launch are unknown
  float eps;
  int64_t rows, cols;
  Format format;
  bool blocks;  // 128 columns of a row share a scale, and not the whole row
};

constexpr int64_t kBlockColumns = 128;

namespace rms_norm_quantized {
inline Format format_of(const Shape& shape) { return static_cast<Format>(shape[2] % 2); }
inline bool blocks_of(const Shape& shape) { return shape[2] >= 2; }
enum Place { kX, kWeight, kResidual, kScale, kQ, kScales, kResidualOut, kY, kScratch };  // the operator's tensors
}  // namespace rms_norm_quantized

struct RmsNormQuantized {
  using Launch = void (*)(const QuantizedCall& call, cudaStream_t stream);
  static const Operator& get();

  static const char* refuses_blocks(const Shape& shape) {
    return rms_norm_quantized::blocks_of(shape)
               ? "a scale per 128 columns is what 06_blocks and 07_fewer_warps do; give --format e4m3 or int8"
               : nullptr;
  }
  static const char* refuses_beyond_8192(const Shape& shape) {
    return shape[1] > 8192 ? "a block keeps a row, eight columns in each of 1024 threads; give at most 8192 cols"
                           : nullptr;
  }
  static const char* refuses_blocks_and_beyond_8192(const Shape& shape) {
    const char* const why = refuses_blocks(shape);
    return why ? why : refuses_beyond_8192(shape);
  }
};

void call(RmsNormQuantized, RmsNormQuantized::Launch launch, const Arguments& arguments, cudaStream_t stream);

}  // namespace ladder
