// The policy of one GPU, as make tune wrote it.
#pragma once

#include "../shape.cuh"

namespace rms_norm::policies {

struct H200 {
  // Measured by make tune: NVIDIA H200, CUDA 13.0, 2026-11-22. All of it is in profiling_results/h200/header/tune.csv.
  static constexpr Shape kForward[] = {
      {32, 181, 2, 128, 1, Access::contiguous, Eviction::last},       // 1.40 us at 64 x 256, next 1.43
      {64, 181, 1, 128, 1, Access::contiguous, Eviction::last},       // 1.37 us at 32 x 512, next 1.41
      {64, 1448, 2, 128, 1, Access::strided, Eviction::last},         // 1.52 us at 256 x 512, next 1.62
      {64, 11585, 2, 128, 1, Access::strided, Eviction::first},       // 2.86 us at 2048 x 512, next 2.88
      {64, kAnySize, 2, 128, 1, Access::strided, Eviction::last},     // 126.38 us at 262144 x 512, next 126.38
      {256, 11585, 2, 128, 1, Access::contiguous, Eviction::last},    // 2.90 us at 512 x 2048, next 2.99
      {256, kAnySize, 2, 128, 1, Access::strided, Eviction::last},    // 126.27 us at 65536 x 2048, fastest 125.87
      {512, 11585, 4, 128, 1, Access::contiguous, Eviction::last},    // 3.07 us at 256 x 4096, fastest 3.07
      {512, kAnySize, 2, 256, 1, Access::strided, Eviction::last},    // 126.24 us at 32768 x 4096, fastest 125.92
      {1024, 181, 4, 256, 1, Access::contiguous, Eviction::last},     // 1.85 us at 2 x 8192, next 1.88
      {1024, 1448, 2, 256, 2, Access::strided, Eviction::last},       // 1.95 us at 16 x 8192, next 2.04
      {1024, 11585, 4, 256, 1, Access::strided, Eviction::first},     // 3.29 us at 128 x 8192, next 3.34
      {1024, kAnySize, 4, 256, 1, Access::strided, Eviction::last},   // 126.41 us at 16384 x 8192, fastest 125.68
      {2048, 1448, 2, 256, 4, Access::strided, Eviction::last},       // 1.95 us at 8 x 16384, next 2.27
      {2048, 11585, 2, 256, 4, Access::strided, Eviction::first},     // 3.50 us at 64 x 16384, next 3.58
      {2048, 65536, 2, 256, 4, Access::strided, Eviction::last},      // 10.48 us at 512 x 16384, fastest 10.39
      {2048, kAnySize, 4, 256, 2, Access::strided, Eviction::last},   // 126.26 us at 8192 x 16384, next 127.96
      {2048, kAnySize, 8, 256, 1, Access::strided, Eviction::last},   // 127.96 us at 8192 x 16384, fastest 126.26
      {4096, 181, 2, 256, 8, Access::strided, Eviction::first},       // 1.97 us at 1 x 32768, next 1.97
      {4096, 1448, 2, 256, 8, Access::strided, Eviction::last},       // 2.04 us at 4 x 32768, next 2.32
      {4096, 11585, 2, 256, 8, Access::strided, Eviction::first},     // 3.57 us at 32 x 32768, next 3.72
      {4096, 65536, 4, 256, 4, Access::strided, Eviction::first},     // 10.55 us at 256 x 32768, next 10.64
      {4096, kAnySize, 4, 256, 4, Access::strided, Eviction::last},   // 126.37 us at 4096 x 32768, next 128.95
      {4096, kAnySize, 8, 512, 1, Access::strided, Eviction::last},   // 129.06 us at 4096 x 32768, fastest 126.37
      {8192, 1448, 4, 256, 8, Access::strided, Eviction::last},       // 2.39 us at 2 x 65536, next 2.52
      {8192, 65536, 4, 256, 8, Access::strided, Eviction::first},     // 10.92 us at 128 x 65536, next 10.93
      {8192, kAnySize, 4, 256, 8, Access::strided, Eviction::last},   // 127.66 us at 2048 x 65536, next 129.85
      {8192, kAnySize, 8, 1024, 1, Access::strided, Eviction::last},  // 134.97 us at 2048 x 65536, fastest 127.66
  };
  static constexpr Shape kForwardAdd[] = {
      {32, 362, 1, 128, 1, Access::contiguous, Eviction::last},        // 1.51 us at 64 x 256, next 1.56
      {32, 2048, 1, 256, 1, Access::strided, Eviction::last},          // 2.03 us at 512 x 256, next 2.10
      {32, kAnySize, 1, 256, 1, Access::strided, Eviction::first},     // 128.29 us at 262144 x 256, fastest 128.07
      {64, 362, 1, 128, 1, Access::contiguous, Eviction::last},        // 1.44 us at 32 x 512, next 1.50
      {64, 2048, 1, 128, 1, Access::strided, Eviction::last},          // 2.17 us at 256 x 512, next 2.19
      {64, 11585, 1, 128, 1, Access::contiguous, Eviction::last},      // 2.98 us at 1024 x 512, next 3.10
      {64, kAnySize, 1, 128, 1, Access::strided, Eviction::first},     // 128.22 us at 131072 x 512, fastest 127.49
      {256, 362, 1, 256, 1, Access::contiguous, Eviction::last},       // 1.52 us at 8 x 2048, next 1.59
      {256, 2048, 1, 256, 1, Access::strided, Eviction::last},         // 2.14 us at 64 x 2048, fastest 2.12
      {256, 11585, 1, 256, 1, Access::contiguous, Eviction::last},     // 2.96 us at 256 x 2048, next 3.09
      {256, 65536, 2, 128, 1, Access::strided, Eviction::first},       // 10.09 us at 2048 x 2048, next 10.11
      {256, kAnySize, 2, 128, 1, Access::strided, Eviction::last},     // 127.64 us at 32768 x 2048, fastest 127.48
      {512, 362, 2, 256, 1, Access::contiguous, Eviction::last},       // 1.79 us at 4 x 4096, next 1.82
      {512, 2048, 2, 256, 1, Access::strided, Eviction::last},         // 2.31 us at 32 x 4096, next 2.36
      {512, 11585, 1, 512, 1, Access::contiguous, Eviction::last},     // 3.20 us at 128 x 4096, fastest 3.19
      {512, 65536, 2, 256, 1, Access::strided, Eviction::first},       // 10.11 us at 1024 x 4096, next 10.17
      {512, kAnySize, 2, 256, 1, Access::strided, Eviction::last},     // 128.01 us at 16384 x 4096, fastest 127.60
      {1024, 11585, 2, 256, 2, Access::strided, Eviction::last},       // 3.45 us at 64 x 8192, next 3.51
      {1024, 65536, 2, 512, 1, Access::strided, Eviction::first},      // 9.88 us at 512 x 8192, next 10.06
      {1024, kAnySize, 1, 1024, 1, Access::strided, Eviction::last},   // 128.86 us at 8192 x 8192, fastest 128.66
      {2048, 11585, 2, 256, 4, Access::strided, Eviction::last},       // 3.57 us at 32 x 16384, next 3.62
      {2048, 65536, 4, 256, 2, Access::strided, Eviction::first},      // 10.03 us at 256 x 16384, next 10.22
      {2048, kAnySize, 2, 256, 4, Access::strided, Eviction::last},    // 129.00 us at 4096 x 16384, next 129.26
      {2048, kAnySize, 8, 256, 1, Access::strided, Eviction::last},    // 131.97 us at 4096 x 16384, fastest 129.00
      {4096, 11585, 2, 256, 8, Access::strided, Eviction::last},       // 3.59 us at 16 x 32768, fastest 3.58
      {4096, 65536, 4, 512, 2, Access::strided, Eviction::first},      // 10.43 us at 128 x 32768, next 10.86
      {4096, kAnySize, 2, 256, 8, Access::strided, Eviction::last},    // 129.05 us at 2048 x 32768, next 129.58
      {4096, kAnySize, 8, 512, 1, Access::strided, Eviction::last},    // 137.62 us at 2048 x 32768, fastest 129.05
      {8192, 362, 4, 256, 8, Access::strided, Eviction::last},         // 2.80 us at 1 x 65536, next 2.80
      {8192, 2048, 2, 512, 8, Access::strided, Eviction::last},        // 2.99 us at 2 x 65536, next 3.16
      {8192, 65536, 2, 512, 8, Access::strided, Eviction::first},      // 11.14 us at 64 x 65536, next 11.30
      {8192, kAnySize, 2, 512, 8, Access::strided, Eviction::last},    // 129.88 us at 1024 x 65536, next 132.40
      {8192, kAnySize, 8, 1024, 1, Access::strided, Eviction::first},  // 157.62 us at 1024 x 65536, fastest 129.88
  };
  // Time of a dependent launch over that of a plain one: 0.725 at 64/128 KB, 0.763 at 512/1024 KB, 0.841 at 4096 KB,
  // 0.942 at 32768 KB, 0.982 at 131072 KB, 0.997 at 524288 KB.
  static constexpr int kDependentKilobytes = kAnySize;
};

}  // namespace rms_norm::policies
