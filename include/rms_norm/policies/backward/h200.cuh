// The policy of one GPU, as make tune S=backward wrote it.
#pragma once

#include "../../few_rows.cuh"

namespace rms_norm::policies::backward {

struct H200 {
  // Measured by make tune S=backward: NVIDIA H200, CUDA 13.0, 2026-11-29. All of it is in
  // profiling_results/h200/header/tune_backward.csv. A time is the mean of a plain and a dependent launch.
  static constexpr FewRows kFewRows[] = {
      {2, 1, 1, 1, 1},           // 1 rows: 1.20 us, fastest 1.20
      {2, 2, 1, 2, 1},           // 2 rows: 1.43 us, fastest 1.43
      {2, 4, 4, 4, 1},           // 4 rows: 1.61 us, fastest 1.61
      {2, 8, 4, 8, 1},           // 8 rows: 1.78 us, fastest 1.78
      {2, 16, 4, 16, 1},         // 16 rows: 2.16 us, fastest 2.16
      {2, 90, 1, 1, 1},          // 64 rows: 2.58 us, fastest 2.58
      {2, 181, 1, 2, 1},         // 128 rows: 3.23 us, fastest 3.23
      {2, 724, 1, 4, 1},         // 512 rows: 4.29 us, fastest 4.29
      {2, 1056, 2, 8, 1},        // 1024 rows: 5.61 us, fastest 5.61
      {2, INT64_MAX, 0, 1, 1},   // 16384 rows: 28.71 us, fastest 28.69
      {3, 1, 1, 1, 1},           // 1 rows: 1.35 us, fastest 1.35
      {3, 2, 3, 2, 1},           // 2 rows: 1.57 us, fastest 1.57
      {3, 4, 3, 4, 1},           // 4 rows: 1.73 us, fastest 1.73
      {3, 8, 3, 8, 1},           // 8 rows: 2.08 us, fastest 2.08
      {3, 90, 1, 1, 1},          // 64 rows: 2.97 us, fastest 2.97
      {3, 362, 3, 4, 1},         // 256 rows: 3.99 us, fastest 3.97
      {3, 704, 2, 4, 1},         // 512 rows: 4.86 us, fastest 4.86
      {3, 1408, 2, 4, 2},        // 1024 rows: 6.58 us, fastest 6.58
      {3, INT64_MAX, 0, 1, 1},   // 16384 rows: 40.25 us, fastest 40.25
      {4, 1, 2, 1, 1},           // 1 rows: 1.39 us, fastest 1.39
      {4, 2, 4, 2, 1},           // 2 rows: 1.57 us, fastest 1.57
      {4, 4, 8, 4, 1},           // 4 rows: 1.68 us, fastest 1.68
      {4, 8, 8, 8, 1},           // 8 rows: 1.87 us, fastest 1.87
      {4, 16, 8, 16, 1},         // 16 rows: 2.34 us, fastest 2.34
      {4, 90, 3, 1, 1},          // 64 rows: 3.33 us, fastest 3.31
      {4, 181, 8, 4, 1},         // 128 rows: 3.60 us, fastest 3.60
      {4, 528, 2, 4, 1},         // 512 rows: 5.62 us, fastest 5.62
      {4, INT64_MAX, 0, 1, 1},   // 16384 rows: 52.04 us, fastest 52.04
      {5, 1, 4, 1, 1},           // 1 rows: 1.40 us, fastest 1.40
      {5, 2, 4, 2, 1},           // 2 rows: 1.67 us, fastest 1.67
      {5, 4, 4, 4, 1},           // 4 rows: 1.90 us, fastest 1.90
      {5, 8, 4, 8, 1},           // 8 rows: 2.48 us, fastest 2.48
      {5, 90, 4, 1, 1},          // 64 rows: 3.37 us, fastest 3.37
      {5, 181, 3, 4, 1},         // 128 rows: 3.94 us, fastest 3.94
      {5, 362, 2, 4, 1},         // 256 rows: 4.79 us, fastest 4.79
      {5, 724, 2, 2, 2},         // 512 rows: 6.34 us, fastest 6.34
      {5, INT64_MAX, 0, 1, 1},   // 16384 rows: 63.71 us, fastest 63.71
      {6, 1, 4, 1, 1},           // 1 rows: 1.41 us, fastest 1.41
      {6, 2, 4, 2, 1},           // 2 rows: 1.67 us, fastest 1.67
      {6, 4, 4, 4, 1},           // 4 rows: 1.92 us, fastest 1.92
      {6, 8, 4, 8, 1},           // 8 rows: 2.50 us, fastest 2.50
      {6, 90, 4, 1, 1},          // 64 rows: 3.43 us, fastest 3.43
      {6, 181, 3, 4, 1},         // 128 rows: 4.04 us, fastest 4.04
      {6, 352, 3, 8, 1},         // 256 rows: 5.02 us, fastest 5.02
      {6, 704, 2, 2, 2},         // 512 rows: 6.87 us, fastest 6.87
      {6, INT64_MAX, 0, 1, 1},   // 16384 rows: 76.89 us, fastest 76.89
      {8, 1, 4, 1, 1},           // 1 rows: 1.43 us, fastest 1.43
      {8, 2, 8, 2, 1},           // 2 rows: 1.65 us, fastest 1.65
      {8, 4, 8, 4, 1},           // 4 rows: 1.86 us, fastest 1.86
      {8, 8, 8, 8, 1},           // 8 rows: 2.27 us, fastest 2.27
      {8, 22, 3, 1, 1},          // 16 rows: 2.68 us, fastest 2.68
      {8, 45, 8, 1, 1},          // 32 rows: 3.29 us, fastest 3.29
      {8, 90, 8, 2, 1},          // 64 rows: 3.68 us, fastest 3.68
      {8, 181, 8, 4, 1},         // 128 rows: 4.39 us, fastest 4.39
      {8, 362, 8, 4, 2},         // 256 rows: 5.89 us, fastest 5.89
      {8, INT64_MAX, 0, 1, 1},   // 16384 rows: 97.96 us, fastest 97.96
      {10, 1, 4, 1, 1},          // 1 rows: 1.48 us, fastest 1.48
      {10, 2, 8, 2, 1},          // 2 rows: 1.74 us, fastest 1.74
      {10, 4, 8, 4, 1},          // 4 rows: 2.05 us, fastest 2.05
      {10, 45, 4, 1, 1},         // 32 rows: 3.43 us, fastest 3.43
      {10, 90, 4, 4, 1},         // 64 rows: 4.03 us, fastest 4.03
      {10, 181, 3, 4, 1},        // 128 rows: 4.97 us, fastest 4.97
      {10, 362, 2, 1, 2},        // 256 rows: 6.76 us, fastest 6.76
      {10, INT64_MAX, 0, 1, 1},  // 4096 rows: 33.73 us, fastest 33.73
      {12, 1, 4, 1, 1},          // 1 rows: 1.50 us, fastest 1.50
      {12, 2, 8, 2, 1},          // 2 rows: 1.75 us, fastest 1.75
      {12, 4, 8, 4, 1},          // 4 rows: 2.08 us, fastest 2.08
      {12, 22, 4, 1, 1},         // 16 rows: 3.03 us, fastest 3.03
      {12, 45, 8, 1, 1},         // 32 rows: 3.56 us, fastest 3.56
      {12, 176, 8, 4, 1},        // 128 rows: 5.35 us, fastest 5.35
      {12, INT64_MAX, 0, 1, 1},  // 4096 rows: 40.43 us, fastest 40.43
      {16, 1, 8, 1, 1},          // 1 rows: 1.54 us, fastest 1.54
      {16, 2, 8, 2, 1},          // 2 rows: 1.84 us, fastest 1.84
      {16, 4, 8, 4, 1},          // 4 rows: 2.29 us, fastest 2.29
      {16, 22, 8, 1, 1},         // 16 rows: 3.38 us, fastest 3.38
      {16, 45, 8, 2, 1},         // 32 rows: 3.83 us, fastest 3.83
      {16, 90, 0, 1, 1},         // 64 rows: 4.68 us, fastest 4.68
      {16, 181, 8, 2, 2},        // 128 rows: 6.24 us, fastest 6.24
      {16, 264, 2, 1, 2},        // 256 rows: 8.85 us, fastest 8.85
      {16, INT64_MAX, 0, 1, 1},  // 4096 rows: 52.06 us, fastest 52.06
  };
};

}  // namespace rms_norm::policies::backward
