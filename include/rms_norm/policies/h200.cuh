// The policy of one GPU, as make tune wrote it.
#pragma once

#include "../shape.cuh"

namespace rms_norm::policies {

struct H200 {
  // Measured by make tune: NVIDIA H200, CUDA 13.0, 2026-11-22. All of it is in profiling_results/h200/header/tune.csv.
  // Up to 32768 KB a time is the mean of a plain and a dependent launch.
  static constexpr Shape kForward[] = {
      {32, 181, 1, 128, 1, Access::contiguous, Eviction::last},       // 1.06 us at 64 x 256, next 1.06
      {32, 65536, 1, 256, 1, Access::contiguous, Eviction::last},     // 9.68 us at 32768 x 256, fastest 9.66
      {64, 181, 1, 128, 1, Access::contiguous, Eviction::last},       // 1.06 us at 32 x 512, next 1.07
      {64, 1448, 2, 128, 1, Access::strided, Eviction::last},         // 1.30 us at 256 x 512, next 1.33
      {64, 65536, 2, 128, 1, Access::contiguous, Eviction::last},     // 9.73 us at 16384 x 512, fastest 9.70
      {64, kAnySize, 2, 128, 1, Access::strided, Eviction::last},     // 126.38 us at 262144 x 512, fastest 126.34
      {256, 65536, 2, 128, 1, Access::contiguous, Eviction::last},    // 9.43 us at 4096 x 2048, next 9.68
      {256, 262144, 2, 128, 1, Access::strided, Eviction::last},      // 33.35 us at 16384 x 2048, next 33.38
      {256, kAnySize, 2, 128, 1, Access::strided, Eviction::first},   // 125.97 us at 65536 x 2048, next 126.08
      {512, 65536, 2, 256, 1, Access::contiguous, Eviction::last},    // 9.54 us at 2048 x 4096, next 9.60
      {512, kAnySize, 2, 256, 1, Access::strided, Eviction::last},    // 127.01 us at 32768 x 4096, fastest 126.51
      {1024, 181, 4, 256, 1, Access::contiguous, Eviction::last},     // 1.54 us at 2 x 8192, next 1.60
      {1024, 1448, 2, 256, 2, Access::strided, Eviction::last},       // 1.75 us at 16 x 8192, next 1.85
      {1024, 11585, 4, 256, 1, Access::contiguous, Eviction::last},   // 2.93 us at 128 x 8192, fastest 2.90
      {1024, 65536, 2, 512, 1, Access::contiguous, Eviction::last},   // 9.70 us at 1024 x 8192, fastest 9.70
      {1024, kAnySize, 4, 256, 1, Access::strided, Eviction::last},   // 126.53 us at 16384 x 8192, fastest 125.88
      {2048, 181, 2, 256, 4, Access::strided, Eviction::first},       // 1.68 us at 1 x 16384, next 1.68
      {2048, 1448, 2, 256, 4, Access::strided, Eviction::last},       // 1.75 us at 8 x 16384
      {2048, 11585, 2, 1024, 1, Access::contiguous, Eviction::last},  // 3.24 us at 64 x 16384, fastest 3.22
      {2048, kAnySize, 4, 256, 2, Access::strided, Eviction::last},   // 126.73 us at 8192 x 16384, next 128.24
      {2048, kAnySize, 8, 256, 1, Access::strided, Eviction::last},   // 128.24 us at 8192 x 16384, fastest 126.73
      {4096, 1448, 2, 256, 8, Access::strided, Eviction::last},       // 1.82 us at 4 x 32768, next 1.98
      {4096, 11585, 2, 256, 8, Access::strided, Eviction::first},     // 3.25 us at 32 x 32768, next 3.29
      {4096, 65536, 2, 256, 8, Access::strided, Eviction::last},      // 10.32 us at 256 x 32768, fastest 10.32
      {4096, kAnySize, 4, 256, 4, Access::strided, Eviction::last},   // 126.51 us at 4096 x 32768, next 128.77
      {4096, kAnySize, 8, 512, 1, Access::strided, Eviction::last},   // 129.09 us at 4096 x 32768, fastest 126.51
      {8192, 1448, 4, 256, 8, Access::strided, Eviction::last},       // 2.21 us at 2 x 65536, next 2.24
      {8192, 11585, 4, 256, 8, Access::strided, Eviction::first},     // 3.51 us at 16 x 65536, fastest 3.50
      {8192, kAnySize, 4, 256, 8, Access::strided, Eviction::last},   // 128.23 us at 2048 x 65536, next 130.05
      {8192, kAnySize, 8, 1024, 1, Access::strided, Eviction::last},  // 135.90 us at 2048 x 65536, fastest 128.23
  };
  static constexpr Shape kFusedAdd[] = {
      {32, 65536, 1, 128, 1, Access::contiguous, Eviction::last},      // 9.76 us at 16384 x 256, next 9.78
      {32, kAnySize, 1, 128, 1, Access::strided, Eviction::first},     // 126.90 us at 262144 x 256, next 127.24
      {64, 11585, 1, 128, 1, Access::contiguous, Eviction::last},      // 2.77 us at 1024 x 512, next 2.81
      {64, 65536, 2, 128, 1, Access::contiguous, Eviction::last},      // 9.74 us at 8192 x 512, next 10.01
      {64, kAnySize, 1, 128, 1, Access::strided, Eviction::first},     // 126.79 us at 131072 x 512, next 127.02
      {256, 65536, 1, 256, 1, Access::contiguous, Eviction::last},     // 9.73 us at 2048 x 2048, next 9.86
      {256, kAnySize, 1, 256, 1, Access::strided, Eviction::first},    // 126.71 us at 32768 x 2048, next 126.90
      {512, 65536, 1, 512, 1, Access::contiguous, Eviction::last},     // 9.91 us at 1024 x 4096, fastest 9.86
      {512, 262144, 4, 128, 1, Access::strided, Eviction::first},      // 34.31 us at 4096 x 4096, fastest 34.09
      {512, kAnySize, 4, 128, 1, Access::strided, Eviction::last},     // 129.16 us at 16384 x 4096, fastest 128.69
      {1024, 2048, 2, 256, 2, Access::strided, Eviction::last},        // 2.19 us at 16 x 8192, next 2.30
      {1024, 11585, 2, 256, 2, Access::strided, Eviction::first},      // 2.97 us at 64 x 8192, next 3.11
      {1024, 65536, 4, 256, 1, Access::strided, Eviction::first},      // 9.89 us at 512 x 8192, next 10.08
      {1024, kAnySize, 1, 1024, 1, Access::strided, Eviction::first},  // 128.84 us at 8192 x 8192, next 129.10
      {2048, 2048, 2, 256, 4, Access::strided, Eviction::last},        // 2.22 us at 8 x 16384, next 2.31
      {2048, 11585, 2, 256, 4, Access::strided, Eviction::first},      // 3.10 us at 32 x 16384, next 3.25
      {2048, 65536, 4, 512, 1, Access::strided, Eviction::first},      // 10.22 us at 256 x 16384, fastest 10.18
      {2048, 262144, 2, 256, 4, Access::strided, Eviction::first},     // 34.16 us at 1024 x 16384, next 34.27
      {2048, kAnySize, 2, 256, 4, Access::strided, Eviction::last},    // 129.54 us at 4096 x 16384, fastest 129.39
      {2048, kAnySize, 4, 512, 1, Access::strided, Eviction::last},    // 131.16 us at 4096 x 16384, fastest 129.39
      {4096, 2048, 2, 256, 8, Access::strided, Eviction::last},        // 2.29 us at 4 x 32768, next 2.31
      {4096, 11585, 2, 256, 8, Access::strided, Eviction::first},      // 3.09 us at 16 x 32768, next 3.26
      {4096, 65536, 4, 512, 2, Access::strided, Eviction::first},      // 10.25 us at 128 x 32768, next 10.50
      {4096, 262144, 2, 256, 8, Access::strided, Eviction::first},     // 34.17 us at 512 x 32768, next 34.33
      {4096, kAnySize, 2, 256, 8, Access::strided, Eviction::last},    // 129.56 us at 2048 x 32768, next 129.99
      {4096, kAnySize, 4, 1024, 1, Access::strided, Eviction::first},  // 134.40 us at 2048 x 32768, fastest 129.56
      {8192, 2048, 2, 512, 8, Access::strided, Eviction::last},        // 2.54 us at 2 x 65536, next 2.57
      {8192, 262144, 2, 512, 8, Access::strided, Eviction::first},     // 34.82 us at 256 x 65536, next 34.93
      {8192, kAnySize, 2, 512, 8, Access::strided, Eviction::last},    // 129.88 us at 1024 x 65536, next 130.20
      {8192, kAnySize, 8, 1024, 1, Access::strided, Eviction::first},  // 137.95 us at 1024 x 65536, fastest 129.88
  };
  // Time of a dependent launch over that of a plain one: 0.745 at 64/128 KB, 0.777 at 512/1024 KB, 0.870 at 4096 KB,
  // 0.954 at 32768 KB, 0.976 at 131072 KB, 0.993 at 524288 KB.
  static constexpr int kDependentKilobytes = kAnySize;
};

}  // namespace rms_norm::policies
