// Of an analysis: which bytes of an allocation have been written since it was made.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace simt {

class Written {
 public:
  static std::shared_ptr<Written> none_of(size_t size);  // null where it is not tracked

  void add(size_t begin, size_t end);                // bytes of the allocation
  bool has_none_of(size_t begin, size_t end) const;  // false where it is not known

 private:
  explicit Written(size_t size) : bits_(new uint8_t[size / 8 + 1]()) {}
  std::unique_ptr<uint8_t[]> bits_;  // one for each byte
  unsigned era_ = now_;
  static std::atomic<unsigned> now_;
  friend void forget_unwritten();
};

extern bool tracks_writes;  // of allocations from now on

void note_written(const void* pointer, size_t size);
void forget_unwritten();  // code that reports nothing may have written any byte

}  // namespace simt
