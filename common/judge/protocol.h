// What the judge and the process with a student's kernels say to each other: a request and a reply go through pipes,
// the tensors through memory that both share.
#pragma once
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <new>

namespace ladder::judge {

// The runner's file descriptors.
constexpr int kMemory = 3, kRequests = 4, kReplies = 5, kAnalysis = 6;

constexpr int kMostTensors = 40, kMostScalars = 8;
constexpr int64_t kApart = 256;  // allocations begin at multiples of it in the shared memory

struct Request {
  uint64_t nonce, number;  // the reply repeats both
  char order[32];          // SIMT_ORDER, "" for none
  bool is_counted;         // by an analysis
  bool is_captured;        // into a graph that is thrown away, to see whether anything is launched on another stream
  int tensors, scalars, allocations;
  int64_t shape[3];
  double scalar[kMostScalars];
  struct {
    int allocation;  // -1: the tensor is left out
    int64_t offset;  // in it
  } tensor[kMostTensors];
  int64_t bytes[kMostTensors];  // of each allocation; in the shared memory one follows the other
  int device[kMostTensors];     // that each lies on
};

enum class End { done, refused, failed, thrown };  // of a launch: by a refusal, by a fault, by an exception

struct Reply {
  uint64_t nonce, number;
  End end;
  int error;          // cudaError_t
  bool is_elsewhere;  // something was launched on the default stream
  char text[1000];    // of a refusal or an exception
};

inline int64_t whole(int64_t bytes) { return (bytes + kApart - 1) / kApart * kApart; }

// The memory for the tensors of a request, as either process sees it. The judge makes the file as large as it must be.
class SharedMemory {
 public:
  explicit SharedMemory(int file) : file_(file) {}
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;
  ~SharedMemory() { unmap(); }

  char* of(const Request& request, bool is_owner) {
    int64_t size = 0;
    for (int i = 0; i < request.allocations; ++i) size += whole(request.bytes[i]);
    if (size <= size_) return begin_;
    unmap();
    const auto bytes = static_cast<size_t>(size);
    void* there = is_owner && ftruncate(file_, size) != 0
                      ? MAP_FAILED
                      : mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0);
    if (there == MAP_FAILED) throw std::bad_alloc();
    size_ = size;
    return begin_ = static_cast<char*>(there);
  }

 private:
  void unmap() {
    if (size_ > 0) munmap(begin_, static_cast<size_t>(size_));
    size_ = 0;
  }

  int file_;
  char* begin_ = nullptr;
  int64_t size_ = 0;
};

// Whether all of it came, or went.
template <class T>
bool receive(int file, T& message) {
  auto* to = reinterpret_cast<char*>(&message);
  for (size_t done = 0; done < sizeof message;) {
    const ssize_t more = read(file, to + done, sizeof message - done);
    if (more <= 0) return false;
    done += static_cast<size_t>(more);
  }
  return true;
}
template <class T>
bool send(int file, const T& message) {
  return write(file, &message, sizeof message) == static_cast<ssize_t>(sizeof message);
}

}  // namespace ladder::judge
