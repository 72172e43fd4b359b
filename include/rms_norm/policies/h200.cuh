// The policy of one GPU, as make tune wrote it.
#pragma once

#include "../shape.cuh"

namespace rms_norm::policies {

struct H200 {
  // Measured by make tune: NVIDIA H200, CUDA 13.0, 2026-11-22. All of it is in profiling_results/h200/header/tune.csv.
  // Up to 32768 KB a time is the mean of a plain and a dependent launch.
  static constexpr Shape kForward[] = {
      {32, 181, 1, 128, 1, Access::contiguous, Eviction::last},       // 1.06 us at 64 x 256, next 1.06
      {32, 65536, 1, 256, 1, Access::contiguous, Eviction::last},     // 9.69 us at 32768 x 256, fastest 9.68
      {64, 181, 1, 128, 1, Access::contiguous, Eviction::last},       // 1.06 us at 32 x 512, next 1.07
      {64, 1448, 2, 128, 1, Access::strided, Eviction::last},         // 1.30 us at 256 x 512, next 1.32
      {64, 65536, 2, 128, 1, Access::contiguous, Eviction::last},     // 9.73 us at 16384 x 512, fastest 9.68
      {64, kAnySize, 2, 128, 1, Access::strided, Eviction::last},     // 126.26 us at 262144 x 512, fastest 126.26
      {256, 65536, 2, 128, 1, Access::contiguous, Eviction::last},    // 9.42 us at 4096 x 2048, next 9.67
      {256, kAnySize, 2, 128, 1, Access::strided, Eviction::last},    // 126.08 us at 65536 x 2048, next 126.13
      {512, 65536, 4, 128, 1, Access::contiguous, Eviction::last},    // 9.46 us at 2048 x 4096, next 9.56
      {512, kAnySize, 2, 256, 1, Access::strided, Eviction::last},    // 127.00 us at 32768 x 4096, fastest 126.43
      {1024, 181, 4, 256, 1, Access::contiguous, Eviction::last},     // 1.51 us at 2 x 8192, next 1.58
      {1024, 1448, 2, 256, 2, Access::strided, Eviction::last},       // 1.76 us at 16 x 8192, next 1.82
      {1024, 65536, 4, 256, 1, Access::contiguous, Eviction::last},   // 9.75 us at 1024 x 8192, fastest 9.70
      {1024, kAnySize, 4, 256, 1, Access::strided, Eviction::last},   // 126.47 us at 16384 x 8192, fastest 125.76
      {2048, 1448, 2, 256, 4, Access::strided, Eviction::last},       // 1.74 us at 8 x 16384
      {2048, 11585, 4, 512, 1, Access::contiguous, Eviction::last},   // 3.21 us at 64 x 16384, fastest 3.21
      {2048, kAnySize, 4, 256, 2, Access::strided, Eviction::last},   // 126.68 us at 8192 x 16384, next 128.22
      {2048, kAnySize, 8, 256, 1, Access::strided, Eviction::last},   // 128.22 us at 8192 x 16384, fastest 126.68
      {4096, 1448, 2, 256, 8, Access::strided, Eviction::last},       // 1.83 us at 4 x 32768, next 1.99
      {4096, 11585, 2, 256, 8, Access::strided, Eviction::first},     // 3.24 us at 32 x 32768, next 3.29
      {4096, 65536, 2, 256, 8, Access::strided, Eviction::last},      // 10.33 us at 256 x 32768, fastest 10.32
      {4096, kAnySize, 4, 256, 4, Access::strided, Eviction::last},   // 126.50 us at 4096 x 32768, next 128.88
      {4096, kAnySize, 8, 512, 1, Access::strided, Eviction::last},   // 129.17 us at 4096 x 32768, fastest 126.50
      {8192, 1448, 4, 256, 8, Access::strided, Eviction::last},       // 2.21 us at 2 x 65536, next 2.24
      {8192, 11585, 4, 256, 8, Access::strided, Eviction::first},     // 3.51 us at 16 x 65536, fastest 3.50
      {8192, kAnySize, 4, 256, 8, Access::strided, Eviction::last},   // 128.26 us at 2048 x 65536, next 130.04
      {8192, kAnySize, 8, 1024, 1, Access::strided, Eviction::last},  // 135.82 us at 2048 x 65536, fastest 128.26
  };
  static constexpr Shape kFusedAdd[] = {
      {32, 65536, 1, 128, 1, Access::contiguous, Eviction::last},      // 9.76 us at 16384 x 256, next 9.82
      {32, kAnySize, 1, 128, 1, Access::strided, Eviction::first},     // 126.91 us at 262144 x 256, next 127.24
      {64, 11585, 1, 128, 1, Access::contiguous, Eviction::last},      // 2.78 us at 1024 x 512, next 2.83
      {64, 65536, 2, 128, 1, Access::contiguous, Eviction::last},      // 9.84 us at 8192 x 512, next 10.01
      {64, kAnySize, 1, 128, 1, Access::strided, Eviction::first},     // 126.83 us at 131072 x 512, next 126.96
      {256, 65536, 1, 256, 1, Access::contiguous, Eviction::last},     // 9.75 us at 2048 x 2048, next 9.85
      {256, 262144, 1, 256, 1, Access::strided, Eviction::first},      // 33.30 us at 8192 x 2048, next 33.46
      {256, kAnySize, 2, 128, 1, Access::strided, Eviction::last},     // 127.54 us at 32768 x 2048, fastest 126.63
      {512, 65536, 2, 256, 1, Access::contiguous, Eviction::last},     // 9.97 us at 1024 x 4096, fastest 9.89
      {512, kAnySize, 2, 256, 1, Access::strided, Eviction::last},     // 128.82 us at 16384 x 4096, next 129.10
      {1024, 2048, 2, 256, 2, Access::strided, Eviction::last},        // 2.20 us at 16 x 8192, next 2.27
      {1024, 11585, 2, 512, 1, Access::contiguous, Eviction::last},    // 2.91 us at 64 x 8192, next 2.97
      {1024, 65536, 4, 256, 1, Access::strided, Eviction::first},      // 9.89 us at 512 x 8192, next 10.11
      {1024, kAnySize, 1, 1024, 1, Access::strided, Eviction::last},   // 129.16 us at 8192 x 8192, fastest 128.84
      {2048, 2048, 2, 256, 4, Access::strided, Eviction::last},        // 2.23 us at 8 x 16384, next 2.31
      {2048, 11585, 2, 256, 4, Access::strided, Eviction::first},      // 3.11 us at 32 x 16384, next 3.25
      {2048, 65536, 4, 512, 1, Access::strided, Eviction::first},      // 10.19 us at 256 x 16384, fastest 10.16
      {2048, kAnySize, 2, 256, 4, Access::strided, Eviction::last},    // 129.51 us at 4096 x 16384, fastest 129.46
      {2048, kAnySize, 4, 512, 1, Access::strided, Eviction::last},    // 131.48 us at 4096 x 16384, fastest 129.46
      {4096, 2048, 2, 256, 8, Access::strided, Eviction::last},        // 2.29 us at 4 x 32768, next 2.30
      {4096, 11585, 2, 256, 8, Access::strided, Eviction::first},      // 3.10 us at 16 x 32768, next 3.26
      {4096, 65536, 4, 512, 2, Access::strided, Eviction::first},      // 10.26 us at 128 x 32768, next 10.49
      {4096, kAnySize, 2, 256, 8, Access::strided, Eviction::last},    // 129.50 us at 2048 x 32768, next 129.85
      {4096, kAnySize, 4, 1024, 1, Access::strided, Eviction::last},   // 135.32 us at 2048 x 32768, fastest 129.50
      {8192, 2048, 2, 512, 8, Access::strided, Eviction::last},        // 2.54 us at 2 x 65536, next 2.57
      {8192, 11585, 2, 512, 8, Access::strided, Eviction::first},      // 3.19 us at 8 x 65536, next 3.29
      {8192, kAnySize, 2, 512, 8, Access::strided, Eviction::last},    // 129.90 us at 1024 x 65536, next 130.06
      {8192, kAnySize, 8, 1024, 1, Access::strided, Eviction::first},  // 138.14 us at 1024 x 65536, fastest 129.90
  };
  // Time of a dependent launch over that of a plain one: 0.747 at 64/128 KB, 0.777 at 512/1024 KB, 0.876 at 4096 KB,
  // 0.954 at 32768 KB, 0.976 at 131072 KB, 0.994 at 524288 KB.
  static constexpr int kDependentKilobytes = kAnySize;
};

}  // namespace rms_norm::policies
