// Which shape of kernel a problem gets. `make tune` measures the two tables between the markers for the GPU of its
// machine, and writes its times beside the lines; a table without times was chosen by hand, on an H200.
#pragma once

#include <cstdint>

namespace rms_norm::detail {

// How a kernel goes about memory. Few contiguous rows are left to the caches, and their kernels made short. Else rows
// may lie anywhere, and the caches may be told of what to keep: to stream is to let it go first, to hold is to let what
// is read go last. Unaligned rows begin at any element, all tensors' alike; only at their ends are elements moved one
// by one.
enum class Traffic { few, plain, stream, hold, hold_stream, unaligned };

// A kernel for rows of up to `packs` packs (of 16 bytes of x) in problems of up to `kilobytes` (all tensors but the
// weight): each thread has `vectors` packs in its registers; `block` threads are a block, or those of one row if they
// are more; a cluster of `parts` blocks shares a row. The first shape that takes a problem gets it.
struct Shape {
  int packs, kilobytes, vectors, block, parts;
  Traffic traffic;
};
constexpr int kAnySize = INT32_MAX;

// policy:begin
inline constexpr Shape kForward[] = {
    {32, 512, 1, 128, 1, Traffic::few},
    {512, 4096, 2, 256, 1, Traffic::few},
    {1024, 512, 4, 256, 1, Traffic::few},
    {2048, 512, 2, 1024, 1, Traffic::few},
    {8192, 512, 8, 1024, 1, Traffic::few},
    {32, kAnySize, 1, 256, 1, Traffic::hold_stream},
    {64, kAnySize, 2, 256, 1, Traffic::hold_stream},
    {256, kAnySize, 2, 128, 1, Traffic::hold_stream},
    {512, kAnySize, 2, 256, 1, Traffic::hold_stream},
    {1024, kAnySize, 4, 256, 1, Traffic::hold_stream},
    {2048, kAnySize, 4, 256, 2, Traffic::hold_stream},
    {2048, kAnySize, 4, 512, 1, Traffic::hold_stream},
    {4096, kAnySize, 4, 256, 4, Traffic::hold_stream},
    {4096, kAnySize, 8, 512, 1, Traffic::hold_stream},
    {8192, kAnySize, 4, 256, 8, Traffic::hold_stream},
    {8192, kAnySize, 8, 1024, 1, Traffic::hold_stream},
};
inline constexpr Shape kForwardAdd[] = {
    {32, 1024, 1, 128, 1, Traffic::few},
    {512, 4096, 1, 512, 1, Traffic::few},
    {1024, 1024, 4, 256, 1, Traffic::few},
    {2048, 1024, 2, 1024, 1, Traffic::few},
    {8192, 1024, 8, 1024, 1, Traffic::few},
    {32, kAnySize, 1, 256, 1, Traffic::hold_stream},
    {64, kAnySize, 1, 128, 1, Traffic::hold_stream},
    {256, kAnySize, 1, 256, 1, Traffic::hold_stream},
    {512, kAnySize, 1, 512, 1, Traffic::hold_stream},
    {1024, kAnySize, 1, 1024, 1, Traffic::hold_stream},
    {2048, kAnySize, 4, 512, 1, Traffic::hold_stream},
    {4096, kAnySize, 4, 256, 4, Traffic::hold_stream},
    {4096, kAnySize, 8, 512, 1, Traffic::hold_stream},
    {8192, kAnySize, 4, 256, 8, Traffic::hold_stream},
    {8192, kAnySize, 8, 1024, 1, Traffic::hold_stream},
};
constexpr int kDependentKilobytes = kAnySize;
// policy:end

// For rows that begin at any element of 16 bytes.
inline constexpr Shape kUnaligned[] = {
    {32, kAnySize, 1, 256, 1, Traffic::unaligned},    {256, kAnySize, 2, 128, 1, Traffic::unaligned},
    {1024, kAnySize, 4, 256, 1, Traffic::unaligned},  {4096, kAnySize, 4, 1024, 1, Traffic::unaligned},
    {8192, kAnySize, 8, 1024, 1, Traffic::unaligned},
};
constexpr int kUnalignedPacks = 6;  // shorter rows are mostly ends

// For what is left: packs of fewer bytes.
inline constexpr Shape kNarrow[] = {
    {128, kAnySize, 4, 256, 1, Traffic::stream},
    {1024, kAnySize, 4, 256, 1, Traffic::stream},
    {4096, kAnySize, 4, 1024, 1, Traffic::stream},
    {16384, kAnySize, 16, 1024, 1, Traffic::stream},
};

}  // namespace rms_norm::detail
