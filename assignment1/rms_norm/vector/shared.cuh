// Which elements of a vector can be accessed 16 bytes at a time. 06_vectorized of the vector ladder introduces it.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace ladder::vector {

// `count` packs of 16 bytes begin at element `head` and hold `inside` elements. `rest` elements lie outside: fewer than
// two packs, before and after those; or all, if the addresses do not reach a multiple of 16 at the same element.
struct VectorPart {
  int64_t head, count, inside, rest;

  // The i-th element outside.
  __device__ int64_t outside(int64_t i) const { return i < head ? i : i + inside; }
};

// weight may be nullptr.
template <class T>
VectorPart vector_part(const T* input, const T* weight, const T* output, int64_t n) {
  constexpr int64_t kPack = 16 / sizeof(T);
  const auto past = [](const T* pointer) {  // a multiple of 16, in elements
    return static_cast<int64_t>(reinterpret_cast<uintptr_t>(pointer) / sizeof(T)) % kPack;
  };
  const bool alike = past(output) == past(input) && (weight == nullptr || past(weight) == past(input));
  const int64_t head = (kPack - past(input)) % kPack;
  const int64_t count = alike && n > head ? (n - head) / kPack : 0;
  return {count > 0 ? head : 0, count, kPack * count, n - kPack * count};
}

}  // namespace ladder::vector
