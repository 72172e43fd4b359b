// Which bytes a tensor occupies, and whether two tensors overlap: rms_norm/ and q4_gemm/ refuse the same calls.
#pragma once

#include <cstdint>
#include <numeric>
#include <utility>

namespace memory_overlap {

// Rows of `size` bytes, which two strides lay out. The smaller stride is the inner one. `span` is the distance from the
// first row of a stride to its last row; 0 where there is one row.
struct Region {
  uintptr_t begin = 0, size = 0;  // the lowest row; nothing, if its size is 0
  uintptr_t inner_stride = 0, inner_span = 0, outer_stride = 0, outer_span = 0;

  Region() = default;
  // Bytes, and numbers of rows. Strides may be negative.
  Region(const void* data, int64_t bytes, int64_t rows = 1, int64_t stride = 0, int64_t heads = 1,
         int64_t head_stride = 0)
      : begin(reinterpret_cast<uintptr_t>(data)), size(data == nullptr ? 0 : static_cast<uintptr_t>(bytes)) {
    add_direction(rows, stride);
    add_direction(heads, head_stride);
    if (inner_stride <= outer_stride || outer_stride == 0) return;
    std::swap(inner_stride, outer_stride);
    std::swap(inner_span, outer_span);
  }

  uintptr_t end() const { return begin + outer_span + inner_span + size; }
  bool overlaps(const Region& other) const {
    if (size == 0 || other.size == 0 || begin >= other.end() || other.begin >= end()) return false;
    return may_meet(*this, other) && may_meet(joined(), other) && may_meet(*this, other.joined()) &&
           may_meet(joined(), other.joined());
  }

 private:
  void add_direction(int64_t count, int64_t stride) {
    if (count <= 1 || stride == 0) return;
    const uintptr_t span = static_cast<uintptr_t>(count - 1) * static_cast<uintptr_t>(stride);  // modulo 2^64
    if (stride < 0) begin += span;
    const bool is_first = outer_stride == 0;
    (is_first ? outer_stride : inner_stride) = static_cast<uintptr_t>(stride < 0 ? -stride : stride);
    (is_first ? outer_span : inner_span) = stride < 0 ? 0 - span : span;
  }
  // The gaps between the rows of the inner stride belong to it, too.
  Region joined() const {
    Region region = *this;
    region.size += inner_span;
    region.inner_stride = region.inner_span = 0;
    return region;
  }
  // Rows of one tensor may lie between those of the other. Modulo a common divisor of all strides, every row of a
  // tensor lies at the same place: tensors whose places are apart have nothing in common.
  static bool may_meet(const Region& a, const Region& b) {
    const uintptr_t period =
        std::gcd(std::gcd(a.inner_stride, a.outer_stride), std::gcd(b.inner_stride, b.outer_stride));
    if (period == 0) return true;
    const Region &low = a.begin < b.begin ? a : b, &high = a.begin < b.begin ? b : a;
    const uintptr_t distance = (high.begin - low.begin) % period;
    return distance < low.size || distance + high.size > period;
  }
};

}  // namespace memory_overlap
