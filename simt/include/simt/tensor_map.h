// Tensor maps of two dimensions: what a CUtensorMap says, and the bulk copies of a box of it.
#pragma once
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

  // What a row of a box has in the tensor: bytes [begin, end) of the row, of which the first is at `address`.
  struct Part {
    int64_t begin, end;
    char* address;
  };
  SIMT_OWN Part part_of_row(int64_t x, int64_t y) const {
    const int64_t left = x < 0 ? -x : 0, right = static_cast<int64_t>(sizes[0]) - x, width = box[0];
    int64_t begin = left < width ? left : width, end = right < width ? right : width;
    if (end < begin || y < 0 || y >= static_cast<int64_t>(sizes[1])) end = begin;
    return {begin * element_bytes, end * element_bytes,
            base + y * static_cast<int64_t>(stride) + (x + begin) * element_bytes};
  }
  int64_t row_bytes() const { return int64_t{box[0]} * element_bytes; }
};

SIMT_OWN inline TensorMap tensor_map(const CUtensorMap* opaque, const void* shared, Site site) {
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
  for (int64_t row = 0; row < map.box[1]; ++row) {
    const TensorMap::Part part = map.part_of_row(x, y + row);
    barrier.defer_row(static_cast<char*>(box) + row * map.row_bytes(), part.address,
                      static_cast<size_t>(map.row_bytes()), static_cast<size_t>(part.begin),
                      static_cast<size_t>(part.end), map.swizzle);
  }
}

// What of a box lies outside the tensor is not written. The copy is done at once, so a missing wait does not show.
SIMT_OWN inline void tensor_to_global(const CUtensorMap* opaque, int x, int y, const void* box, Site site) {
  const TensorMap map = tensor_map(opaque, box, site);
  for (int64_t row = 0; row < map.box[1]; ++row) {
    const TensorMap::Part part = map.part_of_row(x, y + row);
    if (part.begin == part.end) continue;
    const char* source = static_cast<const char*>(box) + row * map.row_bytes();
    const auto bytes = static_cast<size_t>(part.end - part.begin);
    note_copy(part.address, source + part.begin, bytes, 0, true);
    for (int64_t at = part.begin; at < part.end;) {  // pieces of a vector of 16 bytes, which a swizzle moves whole
      const int64_t next = at / 16 * 16 + 16, end = next < part.end ? next : part.end;
      std::memcpy(part.address + (at - part.begin), swizzled(source + at, map.swizzle), static_cast<size_t>(end - at));
      at = end;
    }
    note_landing(part.address, bytes, nullptr);
  }
}

}  // namespace simt
