// The device's address space: a large reserved range in which every allocation has pages of its own between
// inaccessible ones, and no address is used twice while the range lasts, so that overruns and uses after free fault.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

#include "cuda_runtime_api.h"
#include "device_limits.h"
#include "devices.h"
#include "written.h"

namespace simt {

enum class MemoryKind { device, managed, pinned, symbol };

struct Allocation {
  uintptr_t begin;
  size_t size;
  MemoryKind kind;
  const char* made_by;     // the API's function
  unsigned flags;          // of cudaHostAlloc and cudaHostRegister; of device memory, the number of its pool or 0
  int device = 0;          // that it belongs to, or of managed and pinned memory, that was current when it was made
  bool symmetric = false;  // of NCCL: it begins at a page, and kernels of all devices may use it
  std::shared_ptr<Written> written = nullptr;  // of device memory that is filled with kPoison, in an analysis
};

// For the current device.
cudaError_t allocate(void** pointer, size_t size, MemoryKind kind, const char* made_by, unsigned flags = 0,
                     bool symmetric = false);
bool release(uintptr_t begin);
void release_all(int device);               // and what is shared, where there is no other device
bool add_foreign(const Allocation& range);  // host memory that the device may use; false where it overlaps another
bool remove_foreign(uintptr_t begin);
size_t free_memory();                  // of the current device
size_t total_memory();                 // of each
size_t allocated_with(unsigned pool);  // bytes of device memory

bool find_allocation(const void* pointer, Allocation& found);  // live and containing the pointer (end pointer counts)
bool in_device_space(const void* pointer);                     // inside the reserved range, live or not
bool is_host_memory(const void* pointer);                      // readable, and none of the first two

// Whether a range may be on that side of a copy: device memory must be within one live allocation, host memory must
// be there and not be the device's; managed and pinned memory is both.
enum class Side { host, device };
bool stands_on(Side side, const void* pointer, size_t size);

// "4 bytes past the end of a 1024-byte allocation (cudaMalloc)", "inside a freed 1024-byte allocation (cudaMalloc)",
// "near no allocation", "host memory", "null".
std::string describe_address(const void* pointer);

// "" or that the address is another device's memory, and what gives this one access to it.
std::string missing_access(const void* pointer, int device);

// After each kernel: empty, or a sentence about the bytes beside an allocation that were overwritten; repairs them.
std::string check_guards();

// Device memory is inaccessible to host code, as on a GPU, except between these two; enqueue() calls them around
// kernels. Calls nest. Both are called under api_mutex(), and so is what follows.
void open_device_memory();
void close_device_memory();

// With several devices: the memory of these and no others is open from now on. Its own lock guards it.
void open_memory_of(DeviceSet devices);

// Opens only the pages of a range, for a copy.
class OpenRange {
 public:
  OpenRange(const void* pointer, size_t size);
  ~OpenRange();
  OpenRange(const OpenRange&) = delete;
  OpenRange& operator=(const OpenRange&) = delete;

 private:
  void* pages_ = nullptr;
  size_t size_ = 0;
};

// Where an array lies, its rows without gaps, and the bytes of an element; false for what is no array. Null in a
// program without arrays, which are the extras'.
extern bool (*find_array)(cudaArray_const_t array, cudaPitchedPtr& place, size_t& element);

}  // namespace simt
