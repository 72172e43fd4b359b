// The policy of one GPU, as make tune wrote it.
#pragma once

#include "../shape.cuh"

namespace rms_norm::policies {

struct H200 {
  // Measured by make tune: NVIDIA H200, CUDA 13.0, 2026-11-23. All of it is in profiling_results/h200/header/tune.csv.
  // Up to 32768 KB a time is the mean of a plain and a dependent launch.
  static constexpr Shape kForward[] = {
      {32, 181, 1, 128, 1, Access::contiguous, Eviction::last},       // 0.98 us at 64 x 256, next 1.00
      {32, 65536, 1, 256, 1, Access::contiguous, Eviction::last},     // 9.61 us at 32768 x 256, next 9.75
      {64, 181, 1, 128, 1, Access::contiguous, Eviction::last},       // 1.00 us at 32 x 512, next 1.01
      {64, 65536, 2, 128, 1, Access::contiguous, Eviction::last},     // 9.78 us at 16384 x 512, fastest 9.75
      {64, kAnySize, 2, 128, 1, Access::strided, Eviction::last},     // 126.87 us at 262144 x 512, next 126.96
      {128, 1448, 2, 128, 1, Access::contiguous, Eviction::last},     // 1.25 us at 128 x 1024, next 1.29
      {128, 11585, 1, 128, 1, Access::contiguous, Eviction::last},    // 2.61 us at 1024 x 1024, next 2.68
      {128, 65536, 2, 128, 1, Access::strided, Eviction::last},       // 9.69 us at 8192 x 1024, next 9.83
      {256, 1448, 2, 128, 1, Access::contiguous, Eviction::last},     // 1.23 us at 64 x 2048, next 1.29
      {256, 11585, 1, 256, 1, Access::contiguous, Eviction::last},    // 2.50 us at 512 x 2048, fastest 2.45
      {256, 65536, 2, 128, 1, Access::contiguous, Eviction::last},    // 9.46 us at 4096 x 2048, next 9.71
      {256, kAnySize, 2, 128, 1, Access::strided, Eviction::last},    // 126.70 us at 65536 x 2048, fastest 126.63
      {512, 181, 4, 128, 1, Access::contiguous, Eviction::last},      // 1.12 us at 4 x 4096, next 1.14
      {512, 11585, 2, 256, 1, Access::contiguous, Eviction::last},    // 2.61 us at 256 x 4096, fastest 2.60
      {512, 65536, 4, 128, 1, Access::contiguous, Eviction::last},    // 9.49 us at 2048 x 4096, next 9.51
      {512, kAnySize, 2, 256, 1, Access::strided, Eviction::last},    // 127.23 us at 32768 x 4096, fastest 127.02
      {640, 11585, 2, 320, 1, Access::contiguous, Eviction::last},    // 2.70 us at 204 x 5120, next 2.82
      {1024, 181, 4, 256, 1, Access::contiguous, Eviction::last},     // 1.52 us at 2 x 8192, next 1.55
      {1024, 1448, 4, 256, 1, Access::strided, Eviction::last},       // 1.72 us at 16 x 8192, next 1.79
      {1024, 11585, 4, 256, 1, Access::contiguous, Eviction::last},   // 2.91 us at 128 x 8192, next 2.93
      {1024, kAnySize, 4, 256, 1, Access::strided, Eviction::last},   // 127.13 us at 16384 x 8192, next 128.07
      {2048, 1448, 2, 256, 4, Access::strided, Eviction::last},       // 1.84 us at 8 x 16384, next 2.05
      {2048, 11585, 4, 512, 1, Access::strided, Eviction::last},      // 3.19 us at 64 x 16384, fastest 3.19
      {2048, kAnySize, 4, 256, 2, Access::strided, Eviction::last},   // 127.17 us at 8192 x 16384, next 128.30
      {2048, kAnySize, 8, 256, 1, Access::strided, Eviction::last},   // 128.30 us at 8192 x 16384, fastest 127.17
      {4096, 1448, 2, 256, 8, Access::strided, Eviction::last},       // 2.02 us at 4 x 32768, next 2.08
      {4096, 11585, 2, 256, 8, Access::strided, Eviction::first},     // 3.41 us at 32 x 32768, next 3.43
      {4096, kAnySize, 4, 256, 4, Access::strided, Eviction::last},   // 126.91 us at 4096 x 32768, next 129.64
      {4096, kAnySize, 8, 512, 1, Access::strided, Eviction::last},   // 129.64 us at 4096 x 32768, fastest 126.91
      {8192, 1448, 4, 256, 8, Access::strided, Eviction::last},       // 2.11 us at 2 x 65536, next 2.24
      {8192, 11585, 4, 256, 8, Access::strided, Eviction::first},     // 3.42 us at 16 x 65536, next 3.48
      {8192, kAnySize, 4, 256, 8, Access::strided, Eviction::last},   // 128.11 us at 2048 x 65536, next 130.39
      {8192, kAnySize, 8, 1024, 1, Access::strided, Eviction::last},  // 136.67 us at 2048 x 65536, fastest 128.11
  };
  static constexpr Shape kFusedAdd[] = {
      {32, 362, 1, 128, 1, Access::contiguous, Eviction::last},        // 1.05 us at 64 x 256, next 1.10
      {32, 65536, 1, 256, 1, Access::contiguous, Eviction::last},      // 9.59 us at 16384 x 256, fastest 9.56
      {32, kAnySize, 1, 128, 1, Access::strided, Eviction::first},     // 127.51 us at 262144 x 256, next 127.93
      {64, 362, 1, 128, 1, Access::contiguous, Eviction::last},        // 1.06 us at 32 x 512, next 1.07
      {64, 2048, 1, 256, 1, Access::strided, Eviction::last},          // 1.78 us at 256 x 512, next 1.83
      {64, 11585, 1, 128, 1, Access::contiguous, Eviction::last},      // 2.71 us at 1024 x 512, fastest 2.68
      {64, 65536, 4, 128, 1, Access::contiguous, Eviction::last},      // 9.88 us at 8192 x 512, fastest 9.82
      {64, kAnySize, 1, 128, 1, Access::strided, Eviction::first},     // 127.35 us at 131072 x 512, next 127.65
      {128, 65536, 1, 128, 1, Access::contiguous, Eviction::last},     // 9.54 us at 4096 x 1024, next 9.82
      {128, 262144, 1, 128, 1, Access::strided, Eviction::first},      // 33.38 us at 16384 x 1024, next 33.80
      {128, kAnySize, 2, 128, 1, Access::strided, Eviction::last},     // 128.42 us at 65536 x 1024, fastest 127.39
      {256, 362, 1, 256, 1, Access::contiguous, Eviction::last},       // 1.11 us at 8 x 2048, next 1.21
      {256, 2048, 2, 128, 1, Access::strided, Eviction::last},         // 1.75 us at 64 x 2048, next 1.78
      {256, 65536, 1, 256, 1, Access::contiguous, Eviction::last},     // 9.56 us at 2048 x 2048, next 9.68
      {256, kAnySize, 1, 256, 1, Access::strided, Eviction::first},    // 127.30 us at 32768 x 2048, fastest 127.11
      {512, 362, 2, 256, 1, Access::contiguous, Eviction::last},       // 1.29 us at 4 x 4096, next 1.33
      {512, 2048, 2, 256, 1, Access::strided, Eviction::last},         // 1.84 us at 32 x 4096, next 2.01
      {512, 11585, 2, 256, 1, Access::contiguous, Eviction::last},     // 2.63 us at 128 x 4096, next 2.70
      {512, 65536, 4, 128, 1, Access::contiguous, Eviction::last},     // 9.58 us at 1024 x 4096, next 9.68
      {512, kAnySize, 2, 256, 1, Access::strided, Eviction::last},     // 129.71 us at 16384 x 4096, fastest 129.68
      {640, 65536, 2, 320, 1, Access::contiguous, Eviction::last},     // 9.76 us at 819 x 5120, next 10.16
      {640, 262144, 1, 1024, 1, Access::strided, Eviction::last},      // 34.18 us at 3276 x 5120, fastest 33.95
      {1024, 2048, 2, 256, 2, Access::strided, Eviction::last},        // 2.20 us at 16 x 8192, next 2.30
      {1024, 11585, 2, 512, 1, Access::contiguous, Eviction::last},    // 2.89 us at 64 x 8192, next 2.97
      {1024, 65536, 4, 256, 1, Access::contiguous, Eviction::last},    // 9.58 us at 512 x 8192, next 9.93
      {1024, kAnySize, 1, 1024, 1, Access::strided, Eviction::last},   // 129.87 us at 8192 x 8192, fastest 129.49
      {2048, 2048, 2, 256, 4, Access::strided, Eviction::last},        // 2.22 us at 8 x 16384, next 2.30
      {2048, 11585, 2, 256, 4, Access::strided, Eviction::first},      // 3.11 us at 32 x 16384, next 3.28
      {2048, 65536, 4, 512, 1, Access::contiguous, Eviction::last},    // 9.46 us at 256 x 16384, next 10.18
      {2048, kAnySize, 2, 256, 4, Access::strided, Eviction::last},    // 130.13 us at 4096 x 16384, fastest 129.93
      {2048, kAnySize, 8, 256, 1, Access::strided, Eviction::last},    // 134.44 us at 4096 x 16384, fastest 129.93
      {4096, 2048, 2, 256, 8, Access::strided, Eviction::last},        // 2.30 us at 4 x 32768, next 2.30
      {4096, 11585, 2, 256, 8, Access::strided, Eviction::first},      // 3.11 us at 16 x 32768, next 3.28
      {4096, 65536, 4, 1024, 1, Access::contiguous, Eviction::last},   // 10.10 us at 128 x 32768, next 10.34
      {4096, kAnySize, 2, 256, 8, Access::strided, Eviction::last},    // 130.19 us at 2048 x 32768, next 130.57
      {4096, kAnySize, 8, 512, 1, Access::strided, Eviction::last},    // 135.92 us at 2048 x 32768, fastest 130.19
      {8192, 2048, 2, 512, 8, Access::strided, Eviction::last},        // 2.57 us at 2 x 65536, next 2.59
      {8192, 11585, 2, 512, 8, Access::strided, Eviction::first},      // 3.23 us at 8 x 65536, next 3.32
      {8192, kAnySize, 2, 512, 8, Access::strided, Eviction::last},    // 130.45 us at 1024 x 65536, next 130.99
      {8192, kAnySize, 8, 1024, 1, Access::strided, Eviction::first},  // 138.87 us at 1024 x 65536, fastest 130.45
  };
  // Time of a dependent launch over that of a plain one: 0.727 at 64/128 KB, 0.775 at 512/1024 KB, 0.870 at 4096 KB,
  // 0.953 at 32768 KB, 0.977 at 131072 KB, 0.994 at 524288 KB.
  static constexpr int kDependentKilobytes = kAnySize;
};

}  // namespace rms_norm::policies
