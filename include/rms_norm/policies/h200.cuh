// The policy of one GPU, as make tune wrote it.
#pragma once

#include "../shape.cuh"

namespace rms_norm::policies {

struct H200 {
  // Measured by make tune: NVIDIA H200, CUDA 13.0, 2026-11-26. All of it is in profiling_results/h200/header/tune.csv.
  // Up to 131072 KB a time is the mean of a plain and a dependent launch; of a second or third shape for a length and a
  // size, it is that of a plain one.
  static constexpr Shape kForward[] = {
      {32, 181, 1, 128, 1, Access::contiguous, Eviction::last},       // 1.00 us at 64 x 256, next 1.01
      {32, 181, 1, 128, 1, Access::strided, Eviction::last},          // 1.49 us at 64 x 256, fastest 1.15
      {32, 11585, 1, 256, 1, Access::contiguous, Eviction::last},     // 2.38 us at 4096 x 256, next 2.46
      {32, 262144, 2, 128, 1, Access::contiguous, Eviction::last},    // 33.39 us at 131072 x 256, fastest 33.09
      {64, 181, 1, 128, 1, Access::contiguous, Eviction::last},       // 0.99 us at 32 x 512, next 1.00
      {64, 1448, 2, 128, 1, Access::contiguous, Eviction::last},      // 1.26 us at 256 x 512, next 1.29
      {64, 1448, 2, 128, 1, Access::strided, Eviction::last},         // 1.62 us at 256 x 512, fastest 1.46
      {64, 11585, 2, 128, 1, Access::contiguous, Eviction::last},     // 2.47 us at 2048 x 512, fastest 2.46
      {64, 11585, 2, 128, 1, Access::strided, Eviction::first},       // 2.96 us at 2048 x 512, fastest 2.61
      {64, 65536, 2, 128, 1, Access::contiguous, Eviction::last},     // 9.64 us at 16384 x 512, next 9.68
      {64, kAnySize, 2, 128, 1, Access::strided, Eviction::last},     // 126.20 us at 262144 x 512, next 126.22
      {128, 181, 2, 128, 1, Access::contiguous, Eviction::last},      // 0.95 us at 16 x 1024, next 0.97
      {128, 181, 1, 128, 1, Access::strided, Eviction::last},         // 1.52 us at 16 x 1024, fastest 1.10
      {128, 1448, 2, 128, 1, Access::contiguous, Eviction::last},     // 1.23 us at 128 x 1024, next 1.25
      {128, 1448, 1, 256, 1, Access::strided, Eviction::last},        // 1.65 us at 128 x 1024, fastest 1.39
      {128, 11585, 1, 128, 1, Access::contiguous, Eviction::last},    // 2.58 us at 1024 x 1024, next 2.61
      {128, 11585, 1, 128, 1, Access::strided, Eviction::first},      // 2.92 us at 1024 x 1024, fastest 2.50
      {128, 262144, 2, 128, 1, Access::strided, Eviction::last},      // 33.13 us at 32768 x 1024, fastest 33.13
      {256, 1448, 2, 128, 1, Access::contiguous, Eviction::last},     // 1.19 us at 64 x 2048, next 1.20
      {256, 1448, 1, 256, 1, Access::strided, Eviction::last},        // 1.66 us at 64 x 2048, fastest 1.37
      {256, 11585, 2, 128, 1, Access::contiguous, Eviction::last},    // 2.37 us at 512 x 2048, next 2.42
      {256, 11585, 1, 256, 1, Access::strided, Eviction::first},      // 2.99 us at 512 x 2048, fastest 2.51
      {256, 262144, 2, 128, 1, Access::contiguous, Eviction::last},   // 32.95 us at 16384 x 2048, next 33.01
      {256, kAnySize, 2, 128, 1, Access::strided, Eviction::last},    // 126.04 us at 65536 x 2048, fastest 125.89
      {512, 1448, 2, 256, 1, Access::contiguous, Eviction::last},     // 1.30 us at 32 x 4096, next 1.32
      {512, 1448, 4, 128, 1, Access::strided, Eviction::last},        // 1.81 us at 32 x 4096, fastest 1.53
      {512, 11585, 2, 256, 1, Access::contiguous, Eviction::last},    // 2.47 us at 256 x 4096, next 2.53
      {512, 11585, 2, 256, 1, Access::strided, Eviction::first},      // 3.17 us at 256 x 4096, fastest 2.67
      {512, 65536, 4, 128, 1, Access::contiguous, Eviction::last},    // 9.39 us at 2048 x 4096, next 9.44
      {512, kAnySize, 4, 128, 1, Access::strided, Eviction::last},    // 126.40 us at 32768 x 4096, fastest 126.22
      {640, 65536, 2, 320, 1, Access::contiguous, Eviction::last},    // 9.63 us at 1638 x 5120, next 9.64
      {1024, 1448, 4, 256, 1, Access::contiguous, Eviction::last},    // 1.60 us at 16 x 8192, next 1.66
      {1024, 1448, 4, 256, 1, Access::strided, Eviction::last},       // 2.05 us at 16 x 8192, fastest 1.86
      {1024, 11585, 4, 256, 1, Access::contiguous, Eviction::last},   // 2.68 us at 128 x 8192, next 2.71
      {1024, 11585, 4, 256, 1, Access::strided, Eviction::first},     // 3.31 us at 128 x 8192, fastest 2.93
      {1024, 65536, 4, 256, 1, Access::contiguous, Eviction::last},   // 9.44 us at 1024 x 8192, next 9.70
      {1024, kAnySize, 4, 256, 1, Access::strided, Eviction::last},   // 126.52 us at 16384 x 8192, next 127.48
      {2048, 1448, 2, 256, 4, Access::strided, Eviction::last},       // 1.84 us at 8 x 16384, next 2.04
      {2048, 11585, 2, 1024, 1, Access::contiguous, Eviction::last},  // 2.98 us at 64 x 16384, next 3.04
      {2048, 11585, 4, 512, 1, Access::strided, Eviction::first},     // 3.60 us at 64 x 16384, fastest 3.16
      {2048, 262144, 4, 256, 2, Access::strided, Eviction::last},     // 33.27 us at 2048 x 16384, next 33.99
      {2048, 262144, 4, 512, 1, Access::contiguous, Eviction::last},  // 33.98 us at 2048 x 16384, fastest 33.78
      {2048, kAnySize, 4, 256, 2, Access::strided, Eviction::last},   // 126.60 us at 8192 x 16384, next 128.09
      {2048, kAnySize, 8, 256, 1, Access::strided, Eviction::last},   // 128.09 us at 8192 x 16384, fastest 126.60
      {4096, 1448, 2, 256, 8, Access::strided, Eviction::last},       // 1.98 us at 4 x 32768, next 2.07
      {4096, 11585, 2, 256, 8, Access::strided, Eviction::first},     // 3.35 us at 32 x 32768, next 3.42
      {4096, 11585, 4, 1024, 1, Access::contiguous, Eviction::last},  // 4.24 us at 32 x 32768, fastest 3.65
      {4096, 11585, 4, 1024, 1, Access::strided, Eviction::first},    // 4.53 us at 32 x 32768, fastest 3.65
      {4096, 262144, 4, 256, 4, Access::strided, Eviction::last},     // 33.45 us at 1024 x 32768, next 34.05
      {4096, 262144, 8, 512, 1, Access::strided, Eviction::last},     // 36.44 us at 1024 x 32768, fastest 33.94
      {4096, kAnySize, 4, 256, 4, Access::strided, Eviction::last},   // 126.20 us at 4096 x 32768, next 128.80
      {8192, 1448, 4, 256, 8, Access::strided, Eviction::last},       // 2.10 us at 2 x 65536, next 2.22
      {8192, 11585, 4, 256, 8, Access::strided, Eviction::first},     // 3.40 us at 16 x 65536, next 3.44
      {8192, 65536, 4, 256, 8, Access::strided, Eviction::last},      // 10.15 us at 128 x 65536, next 10.31
      {8192, 65536, 8, 1024, 1, Access::contiguous, Eviction::last},  // 12.28 us at 128 x 65536, fastest 10.41
      {8192, kAnySize, 4, 256, 8, Access::strided, Eviction::last},   // 127.12 us at 2048 x 65536, next 129.57
      {8192, kAnySize, 8, 1024, 1, Access::strided, Eviction::last},  // 135.98 us at 2048 x 65536, fastest 127.12
  };
  static constexpr Shape kFusedAdd[] = {
      {32, 362, 1, 128, 1, Access::contiguous, Eviction::last},        // 1.08 us at 64 x 256, next 1.11
      {32, 362, 1, 128, 1, Access::strided, Eviction::last},           // 1.58 us at 64 x 256, fastest 1.23
      {32, 2048, 1, 256, 1, Access::contiguous, Eviction::last},       // 1.73 us at 512 x 256, next 1.77
      {32, 2048, 1, 256, 1, Access::strided, Eviction::last},          // 2.14 us at 512 x 256, fastest 1.93
      {32, 262144, 1, 256, 1, Access::contiguous, Eviction::last},     // 33.12 us at 65536 x 256, fastest 33.12
      {32, kAnySize, 1, 128, 1, Access::strided, Eviction::first},     // 126.78 us at 262144 x 256, next 127.16
      {64, 362, 1, 128, 1, Access::contiguous, Eviction::last},        // 1.05 us at 32 x 512, next 1.07
      {64, 362, 1, 128, 1, Access::strided, Eviction::last},           // 1.60 us at 32 x 512, fastest 1.20
      {64, 2048, 1, 128, 1, Access::contiguous, Eviction::last},       // 1.79 us at 256 x 512, next 1.81
      {64, 2048, 1, 256, 1, Access::strided, Eviction::last},          // 2.23 us at 256 x 512, fastest 1.90
      {64, 11585, 2, 128, 1, Access::contiguous, Eviction::last},      // 2.47 us at 1024 x 512, next 2.65
      {64, 65536, 4, 128, 1, Access::contiguous, Eviction::last},      // 9.87 us at 8192 x 512, fastest 9.72
      {64, 262144, 2, 128, 1, Access::contiguous, Eviction::last},     // 33.25 us at 32768 x 512, next 33.55
      {64, kAnySize, 1, 128, 1, Access::strided, Eviction::first},     // 126.74 us at 131072 x 512, next 126.94
      {128, 2048, 1, 128, 1, Access::contiguous, Eviction::last},      // 1.81 us at 128 x 1024, next 1.83
      {128, 2048, 2, 128, 1, Access::strided, Eviction::last},         // 2.16 us at 128 x 1024, fastest 1.93
      {128, 11585, 1, 128, 1, Access::contiguous, Eviction::last},     // 2.44 us at 512 x 1024, next 2.50
      {128, 11585, 1, 256, 1, Access::strided, Eviction::first},       // 3.05 us at 512 x 1024, fastest 2.53
      {128, 262144, 1, 128, 1, Access::contiguous, Eviction::last},    // 32.90 us at 16384 x 1024, next 33.59
      {128, kAnySize, 2, 128, 1, Access::strided, Eviction::last},     // 127.87 us at 65536 x 1024, fastest 126.68
      {256, 2048, 1, 256, 1, Access::contiguous, Eviction::last},      // 1.82 us at 64 x 2048, next 1.85
      {256, 2048, 2, 128, 1, Access::strided, Eviction::last},         // 2.18 us at 64 x 2048, fastest 1.96
      {256, 11585, 1, 256, 1, Access::contiguous, Eviction::last},     // 2.46 us at 256 x 2048, next 2.58
      {256, 262144, 2, 128, 1, Access::contiguous, Eviction::last},    // 33.11 us at 8192 x 2048, fastest 32.85
      {256, kAnySize, 1, 256, 1, Access::strided, Eviction::first},    // 126.60 us at 32768 x 2048, next 126.95
      {512, 2048, 2, 256, 1, Access::contiguous, Eviction::last},      // 1.87 us at 32 x 4096, next 1.93
      {512, 2048, 2, 256, 1, Access::strided, Eviction::last},         // 2.29 us at 32 x 4096, fastest 2.05
      {512, 11585, 2, 256, 1, Access::contiguous, Eviction::last},     // 2.51 us at 128 x 4096, next 2.57
      {512, 11585, 2, 256, 1, Access::strided, Eviction::first},       // 3.13 us at 128 x 4096, fastest 2.68
      {512, 65536, 4, 128, 1, Access::contiguous, Eviction::last},     // 9.59 us at 1024 x 4096, fastest 9.48
      {512, 65536, 1, 512, 1, Access::strided, Eviction::first},       // 10.57 us at 1024 x 4096, fastest 9.62
      {512, 262144, 4, 128, 1, Access::contiguous, Eviction::last},    // 33.29 us at 4096 x 4096, fastest 33.14
      {512, kAnySize, 4, 128, 1, Access::strided, Eviction::last},     // 129.38 us at 16384 x 4096, fastest 128.80
      {640, 2048, 2, 320, 1, Access::contiguous, Eviction::last},      // 1.91 us at 25 x 5120, next 2.01
      {640, 2048, 1, 1024, 1, Access::strided, Eviction::last},        // 2.53 us at 25 x 5120, fastest 2.09
      {640, 262144, 2, 320, 1, Access::contiguous, Eviction::last},    // 32.95 us at 3276 x 5120, next 33.56
      {640, kAnySize, 1, 1024, 1, Access::strided, Eviction::first},   // 127.66 us at 13107 x 5120, next 129.01
      {1024, 362, 2, 512, 1, Access::contiguous, Eviction::last},      // 1.67 us at 2 x 8192, next 1.70
      {1024, 362, 2, 256, 2, Access::strided, Eviction::first},        // 2.05 us at 2 x 8192, fastest 1.95
      {1024, 362, 4, 256, 1, Access::strided, Eviction::last},         // 2.52 us at 2 x 8192, fastest 1.95
      {1024, 2048, 2, 512, 1, Access::contiguous, Eviction::last},     // 2.14 us at 16 x 8192, next 2.16
      {1024, 2048, 2, 256, 2, Access::strided, Eviction::last},        // 2.51 us at 16 x 8192, fastest 2.39
      {1024, 11585, 2, 512, 1, Access::contiguous, Eviction::last},    // 2.72 us at 64 x 8192, next 2.79
      {1024, 11585, 2, 256, 2, Access::strided, Eviction::first},      // 3.33 us at 64 x 8192, fastest 2.94
      {1024, 11585, 1, 1024, 1, Access::strided, Eviction::first},     // 3.60 us at 64 x 8192, fastest 2.94
      {1024, 65536, 4, 256, 1, Access::contiguous, Eviction::last},    // 9.49 us at 512 x 8192, next 9.61
      {1024, 65536, 4, 256, 1, Access::strided, Eviction::first},      // 10.74 us at 512 x 8192, fastest 9.83
      {1024, 262144, 4, 256, 1, Access::contiguous, Eviction::last},   // 33.78 us at 2048 x 8192, fastest 33.28
      {1024, kAnySize, 1, 1024, 1, Access::strided, Eviction::last},   // 129.18 us at 8192 x 8192, fastest 128.67
      {2048, 2048, 2, 256, 4, Access::strided, Eviction::last},        // 2.19 us at 8 x 16384, next 2.27
      {2048, 11585, 2, 256, 4, Access::strided, Eviction::first},      // 3.07 us at 32 x 16384, next 3.23
      {2048, 11585, 2, 1024, 1, Access::contiguous, Eviction::last},   // 3.51 us at 32 x 16384, fastest 3.42
      {2048, 11585, 2, 1024, 1, Access::strided, Eviction::first},     // 4.34 us at 32 x 16384, fastest 3.42
      {2048, 65536, 4, 512, 1, Access::contiguous, Eviction::last},    // 9.43 us at 256 x 16384, next 10.08
      {2048, 65536, 4, 512, 1, Access::strided, Eviction::first},      // 10.56 us at 256 x 16384, fastest 9.69
      {2048, 262144, 4, 512, 1, Access::contiguous, Eviction::last},   // 34.32 us at 1024 x 16384, next 34.36
      {2048, 262144, 2, 256, 4, Access::strided, Eviction::first},     // 34.74 us at 1024 x 16384, fastest 34.41
      {2048, kAnySize, 4, 256, 2, Access::strided, Eviction::last},    // 129.63 us at 4096 x 16384, fastest 129.39
      {4096, 2048, 2, 256, 8, Access::strided, Eviction::last},        // 2.27 us at 4 x 32768, next 2.27
      {4096, 11585, 2, 256, 8, Access::strided, Eviction::first},      // 3.09 us at 16 x 32768, next 3.25
      {4096, 65536, 4, 1024, 1, Access::contiguous, Eviction::last},   // 9.85 us at 128 x 32768, next 10.25
      {4096, 65536, 2, 256, 8, Access::strided, Eviction::first},      // 10.81 us at 128 x 32768, fastest 10.01
      {4096, 65536, 4, 1024, 1, Access::strided, Eviction::first},     // 11.13 us at 128 x 32768, fastest 10.01
      {4096, 262144, 2, 256, 8, Access::strided, Eviction::last},      // 34.38 us at 512 x 32768, fastest 34.28
      {4096, 262144, 4, 1024, 1, Access::contiguous, Eviction::last},  // 35.45 us at 512 x 32768, fastest 34.77
      {4096, kAnySize, 2, 256, 8, Access::strided, Eviction::last},    // 129.51 us at 2048 x 32768, next 129.76
      {8192, 2048, 2, 512, 8, Access::strided, Eviction::last},        // 2.53 us at 2 x 65536, next 2.56
      {8192, 11585, 2, 512, 8, Access::strided, Eviction::first},      // 3.19 us at 8 x 65536, next 3.28
      {8192, 262144, 2, 512, 8, Access::strided, Eviction::last},      // 34.73 us at 256 x 65536, fastest 34.64
      {8192, 262144, 8, 1024, 1, Access::contiguous, Eviction::last},  // 37.06 us at 256 x 65536, fastest 35.05
      {8192, kAnySize, 2, 512, 8, Access::strided, Eviction::last},    // 129.59 us at 1024 x 65536, next 129.95
      {8192, kAnySize, 8, 1024, 1, Access::strided, Eviction::first},  // 139.70 us at 1024 x 65536, fastest 129.59
  };
  // Time of a dependent launch over that of a plain one: 0.732 at 64/128 KB, 0.782 at 512/1024 KB, 0.866 at 4096 KB,
  // 0.960 at 32768 KB, 0.986 at 131072 KB, 0.994 at 524288 KB.
  static constexpr int kDependentKilobytes = kAnySize;
  static constexpr int kMultiprocessors = 132;
};

}  // namespace rms_norm::policies
