// For each cell of memory, its last write and two of the reads since. A cell is 4 bytes, or less on pages where smaller
// accesses have been seen.
#pragma once
#include <cstdint>
#include <deque>
#include <memory>
#include <unordered_map>

#include "hazards_order.h"

namespace simt::analysis {

// What an access was, beside who made it and when.
constexpr uint32_t kWrites = 1, kAtomic = 2, kVolatile = 4;
constexpr uint32_t kFenced = 8;      // its thread had a fence since the block's last barrier
constexpr uint32_t kFlying = 16;     // an asynchronous copy that has not landed
constexpr uint32_t kValued = 32;     // the cell holds the value that it stored
constexpr uint32_t kOfBlock = 64;    // an atomic that is one only for the threads of its block
constexpr uint32_t kOfDevice = 128;  // or of its device
constexpr unsigned kTraitBits = 8;

struct Mark {  // that an access leaves
  Stamp stamp;
  uint32_t site_and_traits;

  bool exists() const { return stamp.thread != ~0u; }
  bool is(uint32_t traits) const { return site_and_traits & traits; }
  uint32_t site() const { return site_and_traits >> kTraitBits; }
};

struct Cell {
  Mark write, reads[2];  // reads[] may also hold atomics that `write` has replaced
  uint32_t value;
};

class Shadow {
 public:
  struct Page {
    uint64_t number;
    unsigned cell_bits;  // a cell is 1 << cell_bits bytes
    bool shared;
    std::unique_ptr<Cell[]> cells;
  };
  static constexpr unsigned kPageBits = 12, kPageSize = 1 << kPageBits;
  // Bytes of cells; beyond it, the oldest pages are forgotten.
  static constexpr size_t kBudget = static_cast<size_t>(768) << 20;

  // The page of an address, whose cells hold an access of `size` bytes there without a remainder.
  Page& page(uintptr_t address, size_t size, bool shared) {
    const uint64_t number = address >> kPageBits;
    Page*& recent = recent_[number % kRecent];
    if (!recent || recent->number != number) recent = &find(number, shared);
    if ((address | size) & ((1u << recent->cell_bits) - 1)) refine(*recent, address | size);
    return *recent;
  }
  const Page* find(uintptr_t address) const {  // null where there was no access
    const auto found = pages_.find(address >> kPageBits);
    return found == pages_.end() ? nullptr : found->second.get();
  }
  void clear();
  Shadow take_global();  // what is known of global memory; it is then empty
  size_t bytes() const { return bytes_; }

 private:
  static constexpr size_t kRecent = 1024;
  static size_t cells_in(unsigned cell_bits) { return static_cast<size_t>(kPageSize) >> cell_bits; }
  static std::unique_ptr<Cell[]> make_cells(unsigned cell_bits);
  Page& find(uint64_t number, bool shared);
  void refine(Page& page, uint64_t bits);
  void make_room();

  std::unordered_map<uint64_t, std::unique_ptr<Page>> pages_;
  std::deque<uint64_t> ages_;  // of global memory's pages
  Page* recent_[kRecent] = {};
  size_t bytes_ = 0;
};

}  // namespace simt::analysis
