// What the judge and the process with a student's kernels say to each other: a request and a reply go through pipes,
// the tensors through memory that both share.
#pragma once
#include <unistd.h>

#include <cstddef>
#include <cstdint>

namespace ladder::judge {

// The runner's file descriptors.
constexpr int kMemory = 3, kRequests = 4, kReplies = 5;

constexpr int kMostTensors = 12, kMostScalars = 8;
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
