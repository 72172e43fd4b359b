// Tensor maps of two dimensions: what a CUtensorMap says, and the bulk copies of a box of it.
#pragma once
#include <algorithm>

#include "async_copy.h"
#include "core.h"
#include "mbarrier.h"

// In cuda.h.
struct CUtensorMap_st;
typedef struct CUtensorMap_st CUtensorMap;

namespace simt {

// What cuTensorMapEncodeTiled writes into the opaque words. Coordinate 0 runs along a row.
struct TensorMap {
  static constexpr uint64_t kKnown = 0x706d726f736e6574u;
  uint64_t known;
  char* base;
  uint64_t sizes[2];
  uint64_t stride;  // bytes from row to row
  uint32_t box[2];  // elements
  uint32_t element_bytes;
  uint32_t swizzle;  // bits 4 to 6 of a shared address that are exclusively-ored with bits 7 to 9

  // What the rows of a box have in the tensor: part(place of the row in the box, in bytes from the box's start; what of
  // the row lies in the tensor, in bytes from the row's start; the address of the first such byte).
  template <class Part>
  void each_row(int64_t x, int64_t y, Part part) const {
    const int64_t row_bytes = int64_t{box[0]} * element_bytes;
    const int64_t width = static_cast<int64_t>(sizes[0]);
    for (int64_t row = 0; row < box[1]; ++row) {
      int64_t begin = std::clamp<int64_t>(-x, 0, box[0]), end = std::clamp<int64_t>(width - x, begin, box[0]);
      if (y + row < 0 || y + row >= static_cast<int64_t>(sizes[1])) end = begin;
      part(row * row_bytes, begin * element_bytes, end * element_bytes,
           base + (y + row) * static_cast<int64_t>(stride) + (x + begin) * element_bytes);
    }
  }
};

inline TensorMap tensor_map(const CUtensorMap* opaque, const void* shared, Site site) {
  TensorMap map;
  std::memcpy(&map, static_cast<const void*>(opaque), sizeof map);
  if (map.known != TensorMap::kKnown)
    device_fault(cudaErrorIllegalInstruction, "the tensor map was not made by cuTensorMapEncodeTiled", site);
  if (!is_shared(shared))
    device_fault(cudaErrorInvalidAddressSpace, "the box of a tensor copy is not in shared memory", site);
  if (reinterpret_cast<uintptr_t>(shared) % 128 != 0)
    device_fault(cudaErrorMisalignedAddress, "the box of a tensor copy does not begin at a multiple of 128 bytes",
                 site);
  return map;
}

// The rows of a box outside the tensor are filled with zeros. The barrier counts their bytes, too.
SIMT_OWN inline void tensor_to_shared(void* box, const CUtensorMap* opaque, int x, int y, Mbarrier& barrier,
                                      Site site) {
  const TensorMap map = tensor_map(opaque, box, site);
  const size_t row_bytes = size_t{map.box[0]} * map.element_bytes;
  map.each_row(x, y, [&](int64_t row, int64_t begin, int64_t end, const char* source) {
    barrier.defer_row(static_cast<char*>(box) + row, source, row_bytes, static_cast<size_t>(begin),
                      static_cast<size_t>(end), map.swizzle);
  });
}

// What of a box lies outside the tensor is not written. The copy is done at once, so a missing wait does not show.
SIMT_OWN inline void tensor_to_global(const CUtensorMap* opaque, int x, int y, const void* box, Site site) {
  const TensorMap map = tensor_map(opaque, box, site);
  map.each_row(x, y, [&](int64_t row, int64_t begin, int64_t end, char* target) {
    if (begin == end) return;
    const char* source = static_cast<const char*>(box) + row;
    note_copy(target, source + begin, static_cast<size_t>(end - begin), 0, false);
    for (int64_t at = begin; at < end;) {  // pieces of a vector of 16 bytes, which a swizzle moves as a whole
      const int64_t piece = std::min(end, at / 16 * 16 + 16) - at;
      std::memcpy(target + (at - begin), swizzled(source + at, map.swizzle), static_cast<size_t>(piece));
      at += piece;
    }
  });
}

}  // namespace simt
