// Which shape of kernel a problem gets. `make tune` measures the two tables between the markers for the GPU of its
// machine, and writes its times beside the lines; a table without times was chosen by hand, on an H200.
#pragma once

#include <cstdint>

namespace rms_norm::detail {

// How a kernel goes about memory. Few contiguous rows are left to the caches, and their kernels made short. Else rows
// may lie anywhere, and what is read or written once may be marked so, for the caches to let it go first. Unaligned
// rows begin at any element, all tensors' alike; only at their ends are elements moved one by one.
enum class Traffic { few, plain, stream_in, stream_out, stream, unaligned };

// A kernel for rows of up to `packs` packs (of 16 bytes of x) in problems of up to `kilobytes` (all tensors but the
// weight): each thread has `vectors` packs in its registers; `block` threads are a block, or those of one row if they
// are more; a cluster of `parts` blocks shares a row. The first shape that takes a problem gets it.
struct Shape {
  int packs, kilobytes, vectors, block, parts;
  Traffic traffic;
};
constexpr int kAnySize = INT32_MAX;

// policy:begin
// Measured by make tune: NVIDIA H200, CUDA 13.0, 2026-11-22. All of it is in profiling_results/h200/tune.csv.
inline constexpr Shape kForward[] = {
    {32, 181, 1, 128, 1, Traffic::plain},           // 1.17 us at 64 x 256, next 1.19
    {32, 1448, 1, 256, 1, Traffic::stream_out},     // 1.51 us at 512 x 256, next 1.52
    {32, 11585, 1, 128, 1, Traffic::stream},        // 2.88 us at 4096 x 256, fastest 2.87
    {64, 181, 1, 128, 1, Traffic::few},             // 1.35 us at 32 x 512, next 1.38
    {64, 181, 2, 128, 1, Traffic::plain},           // 1.44 us at 32 x 512, fastest 1.35
    {64, 1448, 1, 128, 1, Traffic::few},            // 1.54 us at 256 x 512, next 1.56
    {64, 1448, 2, 128, 1, Traffic::stream_out},     // 1.56 us at 256 x 512, fastest 1.54
    {64, kAnySize, 2, 128, 1, Traffic::stream},     // 128.15 us at 262144 x 512, next 128.40
    {256, 181, 2, 128, 1, Traffic::few},            // 1.39 us at 8 x 2048, next 1.41
    {256, 181, 1, 256, 1, Traffic::stream_in},      // 1.51 us at 8 x 2048, fastest 1.39
    {256, 1448, 2, 128, 1, Traffic::few},           // 1.56 us at 64 x 2048, next 1.58
    {256, 1448, 2, 128, 1, Traffic::stream_out},    // 1.67 us at 64 x 2048, fastest 1.56
    {256, 11585, 2, 128, 1, Traffic::few},          // 2.99 us at 512 x 2048, next 3.04
    {256, kAnySize, 2, 128, 1, Traffic::stream},    // 128.09 us at 65536 x 2048, fastest 127.88
    {512, 181, 4, 128, 1, Traffic::few},            // 1.53 us at 4 x 4096, fastest 1.53
    {512, 181, 2, 256, 1, Traffic::stream_in},      // 1.67 us at 4 x 4096, fastest 1.53
    {512, 1448, 2, 256, 1, Traffic::few},           // 1.73 us at 32 x 4096, next 1.76
    {512, 1448, 2, 256, 1, Traffic::stream_out},    // 1.81 us at 32 x 4096, fastest 1.73
    {512, 11585, 2, 256, 1, Traffic::few},          // 3.13 us at 256 x 4096, next 3.17
    {512, kAnySize, 2, 256, 1, Traffic::stream},    // 128.16 us at 32768 x 4096, next 128.26
    {1024, 181, 4, 256, 1, Traffic::few},           // 1.86 us at 2 x 8192, next 1.89
    {1024, 1448, 4, 256, 1, Traffic::stream_out},   // 2.07 us at 16 x 8192, next 2.12
    {1024, kAnySize, 4, 256, 1, Traffic::stream},   // 129.20 us at 16384 x 8192, fastest 128.42
    {2048, 1448, 4, 512, 1, Traffic::stream_out},   // 2.52 us at 8 x 16384, next 2.78
    {2048, 11585, 4, 512, 1, Traffic::stream},      // 3.59 us at 64 x 16384, next 3.71
    {2048, 65536, 8, 256, 1, Traffic::stream},      // 10.63 us at 512 x 16384, next 10.90
    {2048, kAnySize, 4, 512, 1, Traffic::stream},   // 130.19 us at 8192 x 16384, next 131.16
    {4096, 181, 2, 256, 8, Traffic::stream_in},     // 2.82 us at 1 x 32768, next 2.84
    {4096, 181, 8, 512, 1, Traffic::few},           // 3.42 us at 1 x 32768, fastest 2.82
    {4096, 181, 4, 1024, 1, Traffic::stream},       // 3.46 us at 1 x 32768, fastest 2.82
    {4096, 1448, 2, 256, 8, Traffic::stream_out},   // 2.93 us at 4 x 32768, next 3.07
    {4096, 1448, 4, 1024, 1, Traffic::stream_out},  // 3.50 us at 4 x 32768, fastest 2.93
    {4096, 11585, 4, 1024, 1, Traffic::stream},     // 4.50 us at 32 x 32768, fastest 4.48
    {4096, kAnySize, 8, 512, 1, Traffic::stream},   // 132.38 us at 4096 x 32768, next 134.22
    {8192, 1448, 4, 256, 8, Traffic::plain},        // 3.28 us at 2 x 65536, fastest 3.26
    {8192, 1448, 8, 1024, 1, Traffic::stream_out},  // 5.54 us at 2 x 65536, fastest 3.26
    {8192, 11585, 4, 256, 8, Traffic::stream},      // 4.67 us at 16 x 65536, next 4.83
    {8192, kAnySize, 8, 1024, 1, Traffic::stream},  // 136.15 us at 2048 x 65536, next 137.87
};
inline constexpr Shape kForwardAdd[] = {
    {32, 362, 1, 128, 1, Traffic::few},              // 1.41 us at 64 x 256, next 1.45
    {32, 362, 1, 128, 1, Traffic::stream_in},        // 1.45 us at 64 x 256, fastest 1.41
    {32, 2048, 1, 256, 1, Traffic::stream_in},       // 2.18 us at 512 x 256, next 2.21
    {32, 11585, 1, 128, 1, Traffic::stream},         // 2.96 us at 2048 x 256, fastest 2.95
    {32, 65536, 4, 128, 1, Traffic::stream_in},      // 10.10 us at 16384 x 256, next 10.11
    {32, kAnySize, 1, 128, 1, Traffic::stream},      // 128.71 us at 262144 x 256, next 128.82
    {64, 362, 1, 128, 1, Traffic::few},              // 1.38 us at 32 x 512, next 1.42
    {64, 362, 1, 128, 1, Traffic::stream_in},        // 1.54 us at 32 x 512, fastest 1.38
    {64, 2048, 1, 128, 1, Traffic::few},             // 2.29 us at 256 x 512, next 2.32
    {64, 2048, 1, 256, 1, Traffic::stream_in},       // 2.32 us at 256 x 512, fastest 2.29
    {64, 11585, 1, 128, 1, Traffic::few},            // 3.01 us at 1024 x 512, next 3.04
    {64, 11585, 1, 128, 1, Traffic::stream},         // 3.04 us at 1024 x 512, fastest 3.01
    {64, 65536, 4, 128, 1, Traffic::stream_in},      // 10.12 us at 8192 x 512, fastest 10.11
    {64, kAnySize, 1, 128, 1, Traffic::stream},      // 128.56 us at 131072 x 512, fastest 128.16
    {256, 362, 1, 256, 1, Traffic::few},             // 1.47 us at 8 x 2048, next 1.58
    {256, 362, 1, 256, 1, Traffic::plain},           // 1.64 us at 8 x 2048, fastest 1.47
    {256, 2048, 1, 256, 1, Traffic::stream_in},      // 2.29 us at 64 x 2048, next 2.33
    {256, 11585, 1, 256, 1, Traffic::few},           // 2.97 us at 256 x 2048, next 3.08
    {256, 11585, 1, 256, 1, Traffic::stream},        // 3.08 us at 256 x 2048, fastest 2.97
    {256, 65536, 4, 128, 1, Traffic::stream_in},     // 10.10 us at 2048 x 2048, fastest 10.03
    {256, kAnySize, 1, 256, 1, Traffic::stream},     // 128.37 us at 32768 x 2048, fastest 128.11
    {512, 362, 4, 128, 1, Traffic::few},             // 1.79 us at 4 x 4096, next 1.79
    {512, 2048, 1, 512, 1, Traffic::stream_in},      // 2.51 us at 32 x 4096, next 2.52
    {512, 11585, 1, 512, 1, Traffic::stream},        // 3.15 us at 128 x 4096, next 3.24
    {512, 65536, 4, 128, 1, Traffic::stream_in},     // 10.07 us at 1024 x 4096, fastest 10.04
    {512, kAnySize, 1, 512, 1, Traffic::stream},     // 128.34 us at 16384 x 4096, next 128.45
    {1024, 362, 2, 512, 1, Traffic::few},            // 2.18 us at 2 x 8192, next 2.38
    {1024, 362, 4, 256, 1, Traffic::stream_in},      // 2.38 us at 2 x 8192, fastest 2.18
    {1024, 2048, 1, 1024, 1, Traffic::stream_in},    // 2.90 us at 16 x 8192, next 2.90
    {1024, 11585, 1, 1024, 1, Traffic::stream},      // 3.49 us at 64 x 8192, next 3.55
    {1024, 65536, 2, 512, 1, Traffic::stream_in},    // 9.78 us at 512 x 8192, next 9.93
    {1024, kAnySize, 2, 512, 1, Traffic::plain},     // 130.28 us at 8192 x 8192, fastest 129.11
    {2048, 362, 2, 256, 4, Traffic::stream_in},      // 2.88 us at 1 x 16384, next 2.88
    {2048, 362, 4, 512, 1, Traffic::few},            // 3.14 us at 1 x 16384, fastest 2.88
    {2048, 2048, 2, 256, 4, Traffic::stream_in},     // 3.47 us at 8 x 16384, next 3.53
    {2048, 2048, 2, 1024, 1, Traffic::few},          // 3.60 us at 8 x 16384, fastest 3.47
    {2048, 2048, 2, 1024, 1, Traffic::stream},       // 3.74 us at 8 x 16384, fastest 3.47
    {2048, 11585, 2, 1024, 1, Traffic::few},         // 4.32 us at 32 x 16384, fastest 4.30
    {2048, 65536, 4, 512, 1, Traffic::stream_in},    // 10.08 us at 256 x 16384, next 10.08
    {2048, 262144, 4, 512, 1, Traffic::plain},       // 35.57 us at 1024 x 16384, next 35.78
    {2048, kAnySize, 4, 512, 1, Traffic::stream},    // 130.97 us at 4096 x 16384, next 132.29
    {4096, 2048, 2, 256, 8, Traffic::stream_in},     // 3.55 us at 4 x 32768, next 3.61
    {4096, 2048, 4, 1024, 1, Traffic::few},          // 5.18 us at 4 x 32768, fastest 3.55
    {4096, 2048, 8, 512, 1, Traffic::plain},         // 5.39 us at 4 x 32768, fastest 3.55
    {4096, 11585, 2, 256, 8, Traffic::stream},       // 4.26 us at 16 x 32768, next 4.36
    {4096, 11585, 4, 1024, 1, Traffic::few},         // 5.91 us at 16 x 32768, fastest 4.26
    {4096, 11585, 4, 1024, 1, Traffic::stream},      // 5.99 us at 16 x 32768, fastest 4.26
    {4096, 262144, 4, 1024, 1, Traffic::stream_in},  // 36.88 us at 512 x 32768, next 37.20
    {4096, kAnySize, 4, 1024, 1, Traffic::plain},    // 133.77 us at 2048 x 32768, next 135.23
    {8192, 11585, 4, 256, 8, Traffic::stream_in},    // 4.66 us at 8 x 65536, next 4.72
    {8192, 65536, 8, 512, 2, Traffic::stream_in},    // 12.13 us at 64 x 65536, next 12.36
    {8192, 65536, 8, 1024, 1, Traffic::stream_in},   // 12.79 us at 64 x 65536, fastest 12.13
    {8192, 262144, 8, 1024, 1, Traffic::plain},      // 39.49 us at 256 x 65536, fastest 39.48
    {8192, kAnySize, 4, 256, 8, Traffic::plain},     // 146.03 us at 1024 x 65536, next 147.03
    {8192, kAnySize, 8, 1024, 1, Traffic::plain},    // 149.59 us at 1024 x 65536, fastest 146.03
};
// Time of a dependent launch over that of a plain one: 0.738 at 64/128 KB, 0.786 at 512/1024 KB, 0.844 at 4096 KB,
// 0.943 at 32768 KB, 0.985 at 131072 KB, 0.996 at 524288 KB.
constexpr int kDependentKilobytes = kAnySize;
// policy:end

// For rows that begin at any element of 16 bytes.
inline constexpr Shape kUnaligned[] = {
    {256, kAnySize, 2, 128, 1, Traffic::unaligned},
    {1024, kAnySize, 4, 256, 1, Traffic::unaligned},
    {4096, kAnySize, 4, 1024, 1, Traffic::unaligned},
    {8192, kAnySize, 8, 1024, 1, Traffic::unaligned},
};
constexpr int kUnalignedPacks = 32;  // shorter rows are mostly ends

// For what is left: packs of fewer bytes.
inline constexpr Shape kNarrow[] = {
    {128, kAnySize, 4, 256, 1, Traffic::stream},
    {1024, kAnySize, 4, 256, 1, Traffic::stream},
    {4096, kAnySize, 4, 1024, 1, Traffic::stream},
    {16384, kAnySize, 16, 1024, 1, Traffic::stream},
};

}  // namespace rms_norm::detail
