// The policy of one GPU, as make tune wrote it.
#pragma once

#include "../shape.cuh"

namespace rms_norm::policies {

struct H200 {
  // Measured by make tune: NVIDIA H200, CUDA 13.0, 2026-11-25. All of it is in profiling_results/h200/header/tune.csv.
  // Up to 32768 KB a time is the mean of a plain and a dependent launch.
  static constexpr Shape kForward[] = {
      {16, 181, 1, 128, 1, Access::contiguous, Eviction::last},       // 1.08 us at 128 x 128, next 1.09
      {16, 65536, 1, 256, 1, Access::contiguous, Eviction::last},     // 9.59 us at 65536 x 128, next 9.74
      {32, 181, 1, 128, 1, Access::contiguous, Eviction::last},       // 1.01 us at 64 x 256, next 1.02
      {32, 11585, 1, 256, 1, Access::contiguous, Eviction::last},     // 2.41 us at 4096 x 256, next 2.49
      {64, 1448, 1, 256, 1, Access::contiguous, Eviction::last},      // 1.30 us at 256 x 512, fastest 1.28
      {64, 65536, 2, 128, 1, Access::contiguous, Eviction::last},     // 9.70 us at 16384 x 512, next 9.73
      {64, kAnySize, 2, 128, 1, Access::strided, Eviction::last},     // 126.82 us at 262144 x 512, fastest 126.81
      {128, 11585, 1, 256, 1, Access::contiguous, Eviction::last},    // 2.65 us at 1024 x 1024, fastest 2.64
      {128, 65536, 2, 128, 1, Access::strided, Eviction::last},       // 9.71 us at 8192 x 1024, next 9.83
      {256, 181, 1, 256, 1, Access::contiguous, Eviction::last},      // 1.01 us at 8 x 2048, fastest 1.01
      {256, 1448, 2, 128, 1, Access::contiguous, Eviction::last},     // 1.23 us at 64 x 2048, fastest 1.21
      {256, 11585, 1, 256, 1, Access::contiguous, Eviction::last},    // 2.44 us at 512 x 2048, next 2.44
      {256, 65536, 2, 128, 1, Access::contiguous, Eviction::last},    // 9.45 us at 4096 x 2048, next 9.68
      {256, kAnySize, 2, 128, 1, Access::strided, Eviction::last},    // 126.59 us at 65536 x 2048, next 126.62
      {512, 11585, 2, 256, 1, Access::contiguous, Eviction::last},    // 2.50 us at 256 x 4096, next 2.59
      {512, 65536, 4, 128, 1, Access::contiguous, Eviction::last},    // 9.46 us at 2048 x 4096, fastest 9.44
      {512, kAnySize, 2, 256, 1, Access::strided, Eviction::last},    // 126.94 us at 32768 x 4096, fastest 126.82
      {640, 65536, 2, 320, 1, Access::contiguous, Eviction::last},    // 9.71 us at 1638 x 5120, fastest 9.65
      {1024, 65536, 4, 256, 1, Access::contiguous, Eviction::last},   // 9.51 us at 1024 x 8192, next 9.71
      {1024, kAnySize, 4, 256, 1, Access::strided, Eviction::last},   // 126.94 us at 16384 x 8192, next 127.98
      {2048, 1448, 2, 256, 4, Access::strided, Eviction::last},       // 1.85 us at 8 x 16384, next 2.06
      {2048, 11585, 2, 1024, 1, Access::contiguous, Eviction::last},  // 3.06 us at 64 x 16384, next 3.06
      {2048, kAnySize, 4, 256, 2, Access::strided, Eviction::last},   // 127.19 us at 8192 x 16384, next 128.57
      {2048, kAnySize, 8, 256, 1, Access::strided, Eviction::last},   // 128.57 us at 8192 x 16384, fastest 127.19
      {4096, 1448, 2, 256, 8, Access::strided, Eviction::last},       // 2.01 us at 4 x 32768, next 2.08
      {4096, 11585, 2, 256, 8, Access::strided, Eviction::first},     // 3.38 us at 32 x 32768, next 3.43
      {4096, kAnySize, 4, 256, 4, Access::strided, Eviction::last},   // 126.72 us at 4096 x 32768, next 129.54
      {4096, kAnySize, 8, 512, 1, Access::strided, Eviction::last},   // 129.54 us at 4096 x 32768, fastest 126.72
      {8192, 1448, 4, 256, 8, Access::strided, Eviction::last},       // 2.11 us at 2 x 65536, next 2.24
      {8192, 11585, 4, 256, 8, Access::strided, Eviction::first},     // 3.42 us at 16 x 65536, next 3.48
      {8192, kAnySize, 4, 256, 8, Access::strided, Eviction::last},   // 127.68 us at 2048 x 65536, next 130.16
      {8192, kAnySize, 8, 1024, 1, Access::strided, Eviction::last},  // 136.53 us at 2048 x 65536, fastest 127.68
  };
  static constexpr Shape kFusedAdd[] = {
      {32, 362, 1, 128, 1, Access::contiguous, Eviction::last},        // 1.10 us at 64 x 256, next 1.15
      {32, 65536, 1, 256, 1, Access::contiguous, Eviction::last},      // 9.61 us at 16384 x 256, fastest 9.58
      {32, kAnySize, 1, 128, 1, Access::strided, Eviction::first},     // 127.42 us at 262144 x 256, next 127.79
      {64, 2048, 1, 256, 1, Access::contiguous, Eviction::last},       // 1.87 us at 256 x 512, fastest 1.84
      {64, 11585, 2, 128, 1, Access::contiguous, Eviction::last},      // 2.50 us at 1024 x 512, next 2.74
      {64, 65536, 4, 128, 1, Access::contiguous, Eviction::last},      // 9.84 us at 8192 x 512, fastest 9.77
      {64, kAnySize, 1, 128, 1, Access::strided, Eviction::first},     // 127.29 us at 131072 x 512, next 127.49
      {128, 11585, 1, 256, 1, Access::contiguous, Eviction::last},     // 2.54 us at 512 x 1024, fastest 2.52
      {128, 65536, 1, 128, 1, Access::contiguous, Eviction::last},     // 9.58 us at 4096 x 1024, next 9.81
      {128, 262144, 1, 128, 1, Access::strided, Eviction::first},      // 33.39 us at 16384 x 1024, next 33.75
      {256, 65536, 1, 256, 1, Access::contiguous, Eviction::last},     // 9.54 us at 2048 x 2048, next 9.71
      {256, 262144, 1, 256, 1, Access::strided, Eviction::first},      // 33.38 us at 8192 x 2048, next 33.87
      {256, kAnySize, 2, 128, 1, Access::strided, Eviction::last},     // 128.36 us at 32768 x 2048, fastest 127.19
      {512, 65536, 2, 256, 1, Access::contiguous, Eviction::last},     // 9.57 us at 1024 x 4096, next 9.68
      {512, kAnySize, 2, 256, 1, Access::strided, Eviction::last},     // 129.56 us at 16384 x 4096, fastest 129.42
      {640, 65536, 2, 320, 1, Access::contiguous, Eviction::last},     // 9.53 us at 819 x 5120, next 10.17
      {1024, 65536, 2, 512, 1, Access::contiguous, Eviction::last},    // 9.66 us at 512 x 8192, next 9.79
      {1024, kAnySize, 1, 1024, 1, Access::strided, Eviction::last},   // 129.76 us at 8192 x 8192, fastest 129.40
      {2048, 2048, 2, 256, 4, Access::strided, Eviction::last},        // 2.22 us at 8 x 16384, next 2.30
      {2048, 11585, 2, 256, 4, Access::strided, Eviction::first},      // 3.11 us at 32 x 16384, next 3.27
      {2048, 65536, 4, 512, 1, Access::contiguous, Eviction::last},    // 9.95 us at 256 x 16384, next 10.09
      {2048, kAnySize, 2, 256, 4, Access::strided, Eviction::last},    // 129.93 us at 4096 x 16384, next 129.98
      {2048, kAnySize, 8, 256, 1, Access::strided, Eviction::last},    // 134.78 us at 4096 x 16384, fastest 129.93
      {4096, 2048, 2, 256, 8, Access::strided, Eviction::last},        // 2.30 us at 4 x 32768, fastest 2.30
      {4096, 11585, 2, 256, 8, Access::strided, Eviction::first},      // 3.11 us at 16 x 32768, next 3.28
      {4096, 65536, 4, 1024, 1, Access::contiguous, Eviction::last},   // 9.84 us at 128 x 32768, next 10.30
      {4096, kAnySize, 2, 256, 8, Access::strided, Eviction::last},    // 129.99 us at 2048 x 32768, next 130.20
      {4096, kAnySize, 8, 512, 1, Access::strided, Eviction::last},    // 135.67 us at 2048 x 32768, fastest 129.99
      {8192, 2048, 2, 512, 8, Access::strided, Eviction::last},        // 2.56 us at 2 x 65536, next 2.58
      {8192, 11585, 2, 512, 8, Access::strided, Eviction::first},      // 3.21 us at 8 x 65536, next 3.31
      {8192, kAnySize, 2, 512, 8, Access::strided, Eviction::last},    // 130.21 us at 1024 x 65536, next 130.63
      {8192, kAnySize, 8, 1024, 1, Access::strided, Eviction::first},  // 140.25 us at 1024 x 65536, fastest 130.21
  };
  // Time of a dependent launch over that of a plain one: 0.731 at 64/128 KB, 0.780 at 512/1024 KB, 0.869 at 4096 KB,
  // 0.963 at 32768 KB, 0.977 at 131072 KB, 0.994 at 524288 KB.
  static constexpr int kDependentKilobytes = kAnySize;
};

}  // namespace rms_norm::policies
