// The policy of one GPU, as make tune wrote it.
#pragma once

#include "../shape.cuh"

namespace rms_norm::policies {

struct H100 {
  // Measured by make tune: NVIDIA H100 80GB HBM3, CUDA 13.0, 2026-11-27. All of it is in
  // profiling_results/h100/header/tune.csv. Up to 131072 KB a time is the mean of a plain and a dependent launch; of a
  // second or third shape for a length and a size, it is that of a plain one.
  static constexpr Shape kForward[] = {
      {16, 181, 1, 128, 1, Access::contiguous, Eviction::last},       // 1.11 us at 128 x 128, fastest 1.10
      {16, 181, 1, 128, 1, Access::strided, Eviction::last},          // 1.52 us at 128 x 128, fastest 1.37
      {16, 1448, 2, 128, 1, Access::strided, Eviction::last},         // 1.40 us at 1024 x 128, next 1.43
      {16, 11585, 1, 128, 1, Access::contiguous, Eviction::last},     // 2.82 us at 8192 x 128, next 2.83
      {16, 11585, 1, 256, 1, Access::strided, Eviction::first},       // 3.36 us at 8192 x 128, fastest 3.04
      {16, 65536, 2, 128, 1, Access::contiguous, Eviction::last},     // 12.90 us at 65536 x 128, fastest 12.71
      {16, 65536, 1, 256, 1, Access::strided, Eviction::last},        // 13.21 us at 65536 x 128, fastest 12.93
      {32, 1448, 1, 256, 1, Access::contiguous, Eviction::last},      // 1.43 us at 512 x 256, fastest 1.42
      {32, 1448, 1, 256, 1, Access::strided, Eviction::last},         // 1.74 us at 512 x 256, fastest 1.62
      {32, 11585, 1, 256, 1, Access::contiguous, Eviction::last},     // 2.83 us at 4096 x 256, fastest 2.83
      {32, 11585, 2, 256, 1, Access::strided, Eviction::first},       // 3.35 us at 4096 x 256, fastest 3.04
      {32, 65536, 8, 128, 1, Access::strided, Eviction::last},        // 12.56 us at 32768 x 256, next 12.59
      {32, 262144, 2, 128, 1, Access::contiguous, Eviction::last},    // 46.15 us at 131072 x 256, fastest 45.71
      {32, kAnySize, 1, 128, 1, Access::strided, Eviction::first},    // 175.44 us at 524288 x 256, fastest 175.28
      {64, 181, 1, 128, 1, Access::contiguous, Eviction::last},       // 1.03 us at 32 x 512, next 1.04
      {64, 1448, 2, 128, 1, Access::strided, Eviction::last},         // 1.35 us at 256 x 512, next 1.43
      {64, 11585, 2, 128, 1, Access::contiguous, Eviction::last},     // 2.85 us at 2048 x 512, next 2.87
      {64, 11585, 1, 128, 1, Access::strided, Eviction::first},       // 3.26 us at 2048 x 512, fastest 3.00
      {64, 65536, 8, 128, 1, Access::strided, Eviction::last},        // 12.60 us at 16384 x 512, next 12.61
      {64, 262144, 1, 128, 1, Access::strided, Eviction::last},       // 45.96 us at 65536 x 512, fastest 45.64
      {128, 181, 2, 128, 1, Access::contiguous, Eviction::last},      // 1.02 us at 16 x 1024, next 1.04
      {128, 181, 1, 128, 1, Access::strided, Eviction::last},         // 1.39 us at 16 x 1024, fastest 1.19
      {128, 1448, 2, 128, 1, Access::strided, Eviction::last},        // 1.41 us at 128 x 1024, next 1.44
      {128, 262144, 1, 128, 1, Access::contiguous, Eviction::last},   // 45.82 us at 32768 x 1024, fastest 45.55
      {128, kAnySize, 1, 128, 1, Access::strided, Eviction::first},   // 175.10 us at 131072 x 1024, next 176.12
      {256, 1448, 2, 128, 1, Access::contiguous, Eviction::last},     // 1.42 us at 64 x 2048, next 1.42
      {256, 1448, 1, 256, 1, Access::strided, Eviction::last},        // 1.64 us at 64 x 2048, fastest 1.60
      {256, 11585, 1, 256, 1, Access::contiguous, Eviction::last},    // 2.76 us at 512 x 2048, fastest 2.71
      {256, 11585, 1, 256, 1, Access::strided, Eviction::first},      // 3.30 us at 512 x 2048, fastest 2.88
      {256, 262144, 4, 128, 1, Access::contiguous, Eviction::last},   // 45.68 us at 16384 x 2048, fastest 45.52
      {256, kAnySize, 1, 256, 1, Access::strided, Eviction::last},    // 177.04 us at 65536 x 2048, fastest 176.12
      {512, 1448, 2, 256, 1, Access::contiguous, Eviction::last},     // 1.48 us at 32 x 4096, next 1.51
      {512, 1448, 2, 256, 1, Access::strided, Eviction::last},        // 1.76 us at 32 x 4096, fastest 1.69
      {512, 11585, 2, 256, 1, Access::contiguous, Eviction::last},    // 2.83 us at 256 x 4096, next 2.88
      {512, 11585, 2, 256, 1, Access::strided, Eviction::first},      // 3.48 us at 256 x 4096, fastest 3.04
      {512, 262144, 4, 128, 1, Access::contiguous, Eviction::last},   // 45.92 us at 8192 x 4096, fastest 45.73
      {512, kAnySize, 2, 256, 1, Access::strided, Eviction::last},    // 177.91 us at 32768 x 4096, fastest 176.21
      {640, 1448, 2, 320, 1, Access::contiguous, Eviction::last},     // 1.52 us at 25 x 5120, next 1.56
      {640, 1448, 2, 320, 1, Access::strided, Eviction::last},        // 2.04 us at 25 x 5120, fastest 1.75
      {640, 11585, 2, 320, 1, Access::contiguous, Eviction::last},    // 2.90 us at 204 x 5120, next 2.97
      {640, 262144, 4, 256, 1, Access::contiguous, Eviction::last},   // 45.61 us at 6553 x 5120, next 45.63
      {640, kAnySize, 2, 320, 1, Access::strided, Eviction::first},   // 175.25 us at 26214 x 5120, fastest 175.11
      {1024, 65536, 4, 256, 1, Access::contiguous, Eviction::last},   // 12.55 us at 1024 x 8192, next 12.74
      {1024, 65536, 4, 256, 1, Access::strided, Eviction::last},      // 13.21 us at 1024 x 8192, fastest 12.76
      {1024, 262144, 4, 256, 1, Access::contiguous, Eviction::last},  // 45.94 us at 4096 x 8192, fastest 45.66
      {1024, kAnySize, 2, 512, 1, Access::strided, Eviction::first},  // 175.81 us at 16384 x 8192, next 176.82
      {2048, 1448, 2, 256, 4, Access::strided, Eviction::last},       // 2.06 us at 8 x 16384, next 2.10
      {2048, 11585, 2, 1024, 1, Access::contiguous, Eviction::last},  // 3.40 us at 64 x 16384, next 3.44
      {2048, 11585, 4, 512, 1, Access::strided, Eviction::first},     // 3.97 us at 64 x 16384, fastest 3.53
      {2048, kAnySize, 4, 256, 2, Access::strided, Eviction::last},   // 178.31 us at 8192 x 16384, fastest 176.62
      {2048, kAnySize, 4, 512, 1, Access::strided, Eviction::last},   // 178.26 us at 8192 x 16384, fastest 176.62
      {4096, 181, 2, 256, 8, Access::strided, Eviction::last},        // 1.75 us at 1 x 32768, next 1.78
      {4096, 181, 4, 1024, 1, Access::contiguous, Eviction::last},    // 3.35 us at 1 x 32768, fastest 2.04
      {4096, 1448, 2, 256, 8, Access::strided, Eviction::last},       // 2.05 us at 4 x 32768, next 2.20
      {4096, 11585, 2, 256, 8, Access::strided, Eviction::first},     // 3.64 us at 32 x 32768, next 3.74
      {4096, 11585, 4, 1024, 1, Access::strided, Eviction::first},    // 4.74 us at 32 x 32768, fastest 3.94
      {4096, 65536, 8, 512, 1, Access::strided, Eviction::first},     // 12.93 us at 256 x 32768, fastest 12.85
      {4096, 262144, 4, 256, 4, Access::strided, Eviction::last},     // 45.86 us at 1024 x 32768, fastest 45.72
      {4096, 262144, 8, 512, 1, Access::strided, Eviction::first},    // 47.24 us at 1024 x 32768, fastest 46.20
      {4096, kAnySize, 4, 256, 4, Access::strided, Eviction::last},   // 177.89 us at 4096 x 32768, fastest 177.02
      {8192, 1448, 4, 256, 8, Access::strided, Eviction::last},       // 2.22 us at 2 x 65536, next 2.33
      {8192, 11585, 4, 256, 8, Access::strided, Eviction::first},     // 3.75 us at 16 x 65536, next 3.81
      {8192, 65536, 4, 256, 8, Access::strided, Eviction::last},      // 12.77 us at 128 x 65536, next 12.92
      {8192, 65536, 8, 1024, 1, Access::contiguous, Eviction::last},  // 14.70 us at 128 x 65536, fastest 13.05
      {8192, kAnySize, 4, 256, 8, Access::strided, Eviction::last},   // 177.68 us at 2048 x 65536, fastest 177.14
      {8192, kAnySize, 8, 1024, 1, Access::strided, Eviction::last},  // 182.33 us at 2048 x 65536, fastest 177.14
  };
  static constexpr Shape kFusedAdd[] = {
      {16, 362, 1, 128, 1, Access::contiguous, Eviction::last},        // 1.09 us at 128 x 128, next 1.12
      {16, 11585, 1, 256, 1, Access::contiguous, Eviction::last},      // 2.79 us at 4096 x 128, next 2.80
      {16, 65536, 2, 128, 1, Access::contiguous, Eviction::last},      // 12.96 us at 32768 x 128, fastest 12.80
      {32, 362, 1, 128, 1, Access::contiguous, Eviction::last},        // 1.11 us at 64 x 256, next 1.14
      {32, 362, 1, 128, 1, Access::strided, Eviction::last},           // 1.62 us at 64 x 256, fastest 1.28
      {32, 2048, 1, 256, 1, Access::contiguous, Eviction::last},       // 1.82 us at 512 x 256, next 1.87
      {32, 2048, 1, 256, 1, Access::strided, Eviction::first},         // 2.31 us at 512 x 256, fastest 2.01
      {32, 11585, 1, 256, 1, Access::contiguous, Eviction::last},      // 2.80 us at 2048 x 256, next 2.81
      {32, 65536, 4, 128, 1, Access::contiguous, Eviction::last},      // 12.72 us at 16384 x 256, fastest 12.67
      {32, 262144, 2, 128, 1, Access::contiguous, Eviction::last},     // 46.17 us at 65536 x 256, fastest 46.12
      {32, kAnySize, 1, 128, 1, Access::strided, Eviction::first},     // 178.02 us at 262144 x 256, next 178.41
      {64, 2048, 1, 128, 1, Access::contiguous, Eviction::last},       // 1.87 us at 256 x 512, next 1.90
      {64, 11585, 2, 128, 1, Access::contiguous, Eviction::last},      // 2.84 us at 1024 x 512, next 2.95
      {64, 65536, 4, 128, 1, Access::contiguous, Eviction::last},      // 12.57 us at 8192 x 512, fastest 12.52
      {64, 262144, 2, 128, 1, Access::contiguous, Eviction::last},     // 46.24 us at 32768 x 512, fastest 46.01
      {128, 11585, 1, 128, 1, Access::contiguous, Eviction::last},     // 2.80 us at 512 x 1024, next 2.87
      {128, 262144, 4, 128, 1, Access::contiguous, Eviction::last},    // 46.88 us at 16384 x 1024, fastest 46.01
      {128, kAnySize, 1, 128, 1, Access::strided, Eviction::first},    // 178.04 us at 65536 x 1024, next 178.25
      {256, 2048, 1, 256, 1, Access::contiguous, Eviction::last},      // 1.89 us at 64 x 2048, next 1.96
      {256, 2048, 2, 128, 1, Access::strided, Eviction::last},         // 2.14 us at 64 x 2048, fastest 2.04
      {256, 11585, 1, 256, 1, Access::contiguous, Eviction::last},     // 2.82 us at 256 x 2048, next 2.94
      {256, 262144, 4, 128, 1, Access::contiguous, Eviction::last},    // 46.28 us at 8192 x 2048, fastest 45.94
      {256, kAnySize, 1, 256, 1, Access::strided, Eviction::first},    // 177.97 us at 32768 x 2048, next 177.99
      {512, 11585, 2, 256, 1, Access::contiguous, Eviction::last},     // 2.88 us at 128 x 4096, next 2.95
      {512, 262144, 4, 128, 1, Access::contiguous, Eviction::last},    // 46.06 us at 4096 x 4096, fastest 45.91
      {512, kAnySize, 2, 256, 1, Access::strided, Eviction::first},    // 178.73 us at 16384 x 4096, fastest 178.01
      {640, 11585, 2, 320, 1, Access::contiguous, Eviction::last},     // 2.89 us at 102 x 5120, next 2.99
      {640, 11585, 1, 1024, 1, Access::strided, Eviction::first},      // 3.65 us at 102 x 5120, fastest 3.08
      {640, 262144, 2, 320, 1, Access::contiguous, Eviction::last},    // 45.94 us at 3276 x 5120, fastest 45.81
      {640, kAnySize, 2, 320, 1, Access::strided, Eviction::first},    // 178.62 us at 13107 x 5120, fastest 177.76
      {1024, 362, 2, 512, 1, Access::contiguous, Eviction::last},      // 1.69 us at 2 x 8192, next 1.72
      {1024, 362, 2, 256, 2, Access::strided, Eviction::first},        // 2.08 us at 2 x 8192, fastest 1.96
      {1024, 362, 2, 512, 1, Access::strided, Eviction::last},         // 2.46 us at 2 x 8192, fastest 1.96
      {1024, 11585, 2, 512, 1, Access::contiguous, Eviction::last},    // 3.07 us at 64 x 8192, next 3.15
      {1024, 11585, 2, 256, 2, Access::strided, Eviction::first},      // 3.64 us at 64 x 8192, fastest 3.29
      {1024, 11585, 1, 1024, 1, Access::strided, Eviction::first},     // 3.90 us at 64 x 8192, fastest 3.29
      {1024, 65536, 4, 256, 1, Access::contiguous, Eviction::last},    // 12.24 us at 512 x 8192, next 12.79
      {1024, 65536, 4, 512, 1, Access::strided, Eviction::first},      // 13.15 us at 512 x 8192, fastest 12.65
      {1024, 262144, 4, 256, 1, Access::contiguous, Eviction::last},   // 46.33 us at 2048 x 8192, fastest 46.07
      {1024, kAnySize, 2, 512, 1, Access::strided, Eviction::first},   // 179.37 us at 8192 x 8192, fastest 177.82
      {2048, 362, 2, 256, 4, Access::strided, Eviction::last},         // 1.74 us at 1 x 16384, next 1.75
      {2048, 11585, 2, 256, 4, Access::strided, Eviction::first},      // 3.39 us at 32 x 16384, next 3.59
      {2048, 11585, 2, 1024, 1, Access::contiguous, Eviction::last},   // 3.83 us at 32 x 16384, fastest 3.75
      {2048, 11585, 2, 1024, 1, Access::strided, Eviction::first},     // 4.56 us at 32 x 16384, fastest 3.75
      {2048, 65536, 4, 512, 1, Access::contiguous, Eviction::last},    // 12.14 us at 256 x 16384, next 12.59
      {2048, 262144, 4, 256, 2, Access::strided, Eviction::first},     // 46.40 us at 1024 x 16384, fastest 46.01
      {2048, kAnySize, 2, 512, 2, Access::strided, Eviction::first},   // 178.76 us at 4096 x 16384, fastest 178.16
      {4096, 362, 2, 256, 8, Access::strided, Eviction::last},         // 1.84 us at 1 x 32768, next 1.86
      {4096, 11585, 2, 256, 8, Access::strided, Eviction::first},      // 3.40 us at 16 x 32768, next 3.60
      {4096, 65536, 4, 1024, 1, Access::contiguous, Eviction::last},   // 12.39 us at 128 x 32768, next 12.84
      {4096, 65536, 4, 1024, 1, Access::strided, Eviction::first},     // 13.28 us at 128 x 32768, fastest 12.50
      {4096, kAnySize, 2, 512, 4, Access::strided, Eviction::first},   // 178.82 us at 2048 x 32768, fastest 178.30
      {8192, 2048, 2, 512, 8, Access::strided, Eviction::last},        // 2.73 us at 2 x 65536, next 2.75
      {8192, 65536, 2, 512, 8, Access::strided, Eviction::first},      // 13.39 us at 64 x 65536, next 13.59
      {8192, 65536, 8, 1024, 1, Access::contiguous, Eviction::last},   // 15.84 us at 64 x 65536, fastest 13.69
      {8192, kAnySize, 2, 512, 8, Access::strided, Eviction::first},   // 178.58 us at 1024 x 65536, next 179.85
      {8192, kAnySize, 8, 1024, 1, Access::strided, Eviction::first},  // 183.07 us at 1024 x 65536, fastest 178.58
  };
  // Time of a dependent launch over that of a plain one: 0.725 at 64/128 KB, 0.793 at 512/1024 KB, 0.877 at 4096 KB,
  // 0.967 at 32768 KB, 0.989 at 131072 KB, 0.998 at 524288 KB.
  static constexpr int kDependentKilobytes = kAnySize;
  static constexpr int kMultiprocessors = 132;
};

}  // namespace rms_norm::policies
