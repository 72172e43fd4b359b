// Which shape of kernel a problem gets. `make tune` measures the two tables between the markers for the GPU of its
// machine, and writes its times beside the lines; a table without times was chosen by hand, on an H200.
#pragma once

#include <cstdint>

namespace rms_norm::detail {

// How a kernel goes about memory. Few contiguous rows are left to the caches, and their kernels made short. Else rows
// may lie anywhere, what is written is marked for the caches to let go first, and what is read either so too, or, held,
// to let go last. Unaligned rows, held, begin at any element, all tensors' alike; only at their ends are elements moved
// one by one.
enum class Traffic { few, stream, hold, unaligned };

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
    {32, 181, 2, 128, 1, Traffic::few},           // 1.41 us at 64 x 256, next 1.44
    {64, 181, 1, 128, 1, Traffic::few},           // 1.37 us at 32 x 512, next 1.41
    {64, 1448, 2, 128, 1, Traffic::hold},         // 1.52 us at 256 x 512, next 1.63
    {64, 11585, 2, 128, 1, Traffic::stream},      // 2.84 us at 2048 x 512, fastest 2.84
    {64, kAnySize, 2, 128, 1, Traffic::hold},     // 126.32 us at 262144 x 512, fastest 126.31
    {256, 11585, 2, 128, 1, Traffic::few},        // 2.91 us at 512 x 2048, next 2.99
    {256, kAnySize, 2, 128, 1, Traffic::hold},    // 126.35 us at 65536 x 2048, fastest 125.96
    {512, 11585, 4, 128, 1, Traffic::few},        // 3.08 us at 256 x 4096, fastest 3.07
    {512, kAnySize, 2, 256, 1, Traffic::hold},    // 126.12 us at 32768 x 4096, fastest 125.94
    {1024, 181, 4, 256, 1, Traffic::few},         // 1.87 us at 2 x 8192, next 1.90
    {1024, 1448, 4, 256, 1, Traffic::hold},       // 2.06 us at 16 x 8192, next 2.15
    {1024, 11585, 4, 256, 1, Traffic::stream},    // 3.26 us at 128 x 8192, next 3.33
    {1024, kAnySize, 4, 256, 1, Traffic::hold},   // 126.48 us at 16384 x 8192, fastest 125.93
    {2048, 1448, 2, 256, 4, Traffic::hold},       // 2.44 us at 8 x 16384, next 2.59
    {2048, 65536, 4, 512, 1, Traffic::stream},    // 10.76 us at 512 x 16384, fastest 10.65
    {2048, kAnySize, 4, 512, 1, Traffic::hold},   // 127.99 us at 8192 x 16384, fastest 127.91
    {4096, 1448, 2, 256, 8, Traffic::hold},       // 2.50 us at 4 x 32768, next 2.69
    {4096, 11585, 2, 256, 8, Traffic::stream},    // 3.99 us at 32 x 32768, next 4.18
    {4096, 65536, 8, 512, 1, Traffic::stream},    // 11.13 us at 256 x 32768, next 11.38
    {4096, kAnySize, 8, 512, 1, Traffic::hold},   // 129.07 us at 4096 x 32768, next 131.63
    {8192, 1448, 4, 256, 8, Traffic::hold},       // 3.01 us at 2 x 65536, fastest 3.00
    {8192, 11585, 2, 512, 8, Traffic::stream},    // 4.33 us at 16 x 65536, next 4.45
    {8192, 65536, 8, 1024, 1, Traffic::stream},   // 12.28 us at 128 x 65536, next 12.43
    {8192, kAnySize, 8, 1024, 1, Traffic::hold},  // 134.93 us at 2048 x 65536, next 136.84
};
inline constexpr Shape kForwardAdd[] = {
    {32, 362, 1, 128, 1, Traffic::few},            // 1.52 us at 64 x 256, next 1.58
    {32, 2048, 1, 256, 1, Traffic::hold},          // 2.04 us at 512 x 256, next 2.09
    {32, kAnySize, 1, 256, 1, Traffic::stream},    // 128.13 us at 262144 x 256, fastest 127.20
    {64, 362, 1, 128, 1, Traffic::few},            // 1.44 us at 32 x 512, next 1.49
    {64, 2048, 1, 128, 1, Traffic::hold},          // 2.26 us at 256 x 512, fastest 2.24
    {64, 11585, 1, 128, 1, Traffic::few},          // 2.99 us at 1024 x 512, next 3.08
    {64, kAnySize, 1, 128, 1, Traffic::stream},    // 127.03 us at 131072 x 512, next 127.51
    {256, 362, 1, 256, 1, Traffic::few},           // 1.54 us at 8 x 2048, next 1.60
    {256, 2048, 2, 128, 1, Traffic::hold},         // 2.05 us at 64 x 2048, next 2.18
    {256, 11585, 1, 256, 1, Traffic::few},         // 2.97 us at 256 x 2048, next 3.10
    {256, 65536, 2, 128, 1, Traffic::stream},      // 10.13 us at 2048 x 2048, next 10.21
    {256, kAnySize, 2, 128, 1, Traffic::hold},     // 127.70 us at 32768 x 2048, fastest 127.14
    {512, 362, 2, 256, 1, Traffic::few},           // 1.81 us at 4 x 4096, next 1.83
    {512, 2048, 2, 256, 1, Traffic::hold},         // 2.31 us at 32 x 4096, next 2.38
    {512, 11585, 1, 512, 1, Traffic::stream},      // 3.19 us at 128 x 4096, next 3.21
    {512, 65536, 2, 256, 1, Traffic::stream},      // 10.15 us at 1024 x 4096, next 10.24
    {512, kAnySize, 2, 256, 1, Traffic::hold},     // 127.81 us at 16384 x 4096, fastest 127.00
    {1024, 362, 2, 512, 1, Traffic::few},          // 2.16 us at 2 x 8192, next 2.32
    {1024, 2048, 1, 1024, 1, Traffic::hold},       // 2.82 us at 16 x 8192, next 2.87
    {1024, 11585, 1, 1024, 1, Traffic::stream},    // 3.50 us at 64 x 8192, next 3.53
    {1024, 262144, 2, 512, 1, Traffic::stream},    // 34.18 us at 2048 x 8192, fastest 33.99
    {1024, kAnySize, 2, 512, 1, Traffic::hold},    // 129.10 us at 8192 x 8192, fastest 127.91
    {2048, 2048, 2, 256, 4, Traffic::hold},        // 2.87 us at 8 x 16384, next 2.98
    {2048, 11585, 2, 256, 4, Traffic::stream},     // 3.81 us at 32 x 16384, next 3.99
    {2048, 65536, 2, 1024, 1, Traffic::stream},    // 10.21 us at 256 x 16384, next 10.53
    {2048, kAnySize, 2, 256, 4, Traffic::stream},  // 129.55 us at 4096 x 16384, fastest 129.51
    {2048, kAnySize, 8, 256, 1, Traffic::hold},    // 131.99 us at 4096 x 16384, fastest 129.51
    {4096, 362, 2, 256, 8, Traffic::stream},       // 2.60 us at 1 x 32768, next 2.60
    {4096, 2048, 2, 256, 8, Traffic::hold},        // 2.94 us at 4 x 32768, next 3.04
    {4096, 11585, 2, 256, 8, Traffic::stream},     // 3.84 us at 16 x 32768, next 4.03
    {4096, 65536, 4, 1024, 1, Traffic::stream},    // 11.13 us at 128 x 32768, next 11.31
    {4096, 262144, 2, 256, 8, Traffic::stream},    // 34.79 us at 512 x 32768, next 35.19
    {4096, kAnySize, 2, 512, 4, Traffic::hold},    // 130.74 us at 2048 x 32768, fastest 130.30
    {4096, kAnySize, 4, 1024, 1, Traffic::hold},   // 136.42 us at 2048 x 32768, fastest 130.30
    {8192, 362, 2, 512, 8, Traffic::hold},         // 3.22 us at 1 x 65536, next 3.24
    {8192, kAnySize, 2, 512, 8, Traffic::stream},  // 131.33 us at 1024 x 65536, fastest 130.53
    {8192, kAnySize, 8, 1024, 1, Traffic::hold},   // 157.67 us at 1024 x 65536, fastest 130.53
};
// Time of a dependent launch over that of a plain one: 0.740 at 64/128 KB, 0.772 at 512/1024 KB, 0.844 at 4096 KB,
// 0.949 at 32768 KB, 0.982 at 131072 KB, 0.995 at 524288 KB.
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
