// The policy of one GPU, as make tune S=backward wrote it.
#pragma once

#include "../../few_rows.cuh"

namespace rms_norm::policies::backward {

struct H100 {
  // Measured by make tune S=backward: NVIDIA H100 80GB HBM3, CUDA 13.0, 2026-11-28. All of it is in
  // profiling_results/h100/header/tune_backward.csv. A time is the mean of a plain and a dependent launch.
  static constexpr FewRows kFewRows[] = {
      {2, 1, 1, 1, 1},           // 1 rows: 1.37 us, fastest 1.37
      {2, 2, 2, 2, 1},           // 2 rows: 1.62 us, fastest 1.62
      {2, 4, 4, 4, 1},           // 4 rows: 1.71 us, fastest 1.71
      {2, 8, 4, 8, 1},           // 8 rows: 1.89 us, fastest 1.89
      {2, 16, 4, 16, 1},         // 16 rows: 2.24 us, fastest 2.24
      {2, 90, 2, 1, 1},          // 64 rows: 3.00 us, fastest 2.98
      {2, 181, 1, 2, 1},         // 128 rows: 3.57 us, fastest 3.57
      {2, 256, 2, 4, 1},         // 256 rows: 3.90 us, fastest 3.90
      {2, INT64_MAX, 0, 1, 1},   // more rows than were measured
      {3, 1, 1, 1, 1},           // 1 rows: 1.42 us, fastest 1.42
      {3, 2, 3, 2, 1},           // 2 rows: 1.62 us, fastest 1.62
      {3, 4, 3, 4, 1},           // 4 rows: 1.79 us, fastest 1.79
      {3, 8, 3, 8, 1},           // 8 rows: 2.11 us, fastest 2.11
      {3, 22, 3, 1, 1},          // 16 rows: 2.80 us, fastest 2.80
      {3, 90, 2, 1, 1},          // 64 rows: 3.34 us, fastest 3.34
      {3, 256, 3, 4, 1},         // 256 rows: 4.37 us, fastest 4.33
      {3, INT64_MAX, 0, 1, 1},   // more rows than were measured
      {4, 1, 1, 1, 1},           // 1 rows: 1.45 us, fastest 1.45
      {4, 2, 4, 2, 1},           // 2 rows: 1.63 us, fastest 1.63
      {4, 4, 8, 4, 1},           // 4 rows: 1.75 us, fastest 1.75
      {4, 8, 8, 8, 1},           // 8 rows: 1.96 us, fastest 1.96
      {4, 16, 8, 16, 1},         // 16 rows: 2.38 us, fastest 2.38
      {4, 90, 4, 1, 1},          // 64 rows: 3.60 us, fastest 3.60
      {4, 181, 8, 4, 1},         // 128 rows: 3.92 us, fastest 3.92
      {4, 256, 2, 4, 1},         // 256 rows: 4.74 us, fastest 4.74
      {4, INT64_MAX, 0, 1, 1},   // more rows than were measured
      {5, 1, 4, 1, 1},           // 1 rows: 1.47 us, fastest 1.47
      {5, 2, 4, 2, 1},           // 2 rows: 1.74 us, fastest 1.74
      {5, 4, 4, 4, 1},           // 4 rows: 1.96 us, fastest 1.96
      {5, 8, 4, 8, 1},           // 8 rows: 2.49 us, fastest 2.49
      {5, 90, 4, 1, 1},          // 64 rows: 3.73 us, fastest 3.73
      {5, 181, 3, 4, 1},         // 128 rows: 4.27 us, fastest 4.27
      {5, 256, 2, 4, 1},         // 256 rows: 5.27 us, fastest 5.27
      {5, INT64_MAX, 0, 1, 1},   // more rows than were measured
      {6, 1, 4, 1, 1},           // 1 rows: 1.48 us, fastest 1.48
      {6, 2, 4, 2, 1},           // 2 rows: 1.75 us, fastest 1.75
      {6, 4, 4, 4, 1},           // 4 rows: 1.97 us, fastest 1.97
      {6, 8, 4, 8, 1},           // 8 rows: 2.49 us, fastest 2.49
      {6, 45, 4, 1, 1},          // 32 rows: 3.35 us, fastest 3.35
      {6, 90, 4, 2, 1},          // 64 rows: 3.80 us, fastest 3.80
      {6, 181, 3, 4, 1},         // 128 rows: 4.44 us, fastest 4.44
      {6, 256, 3, 8, 1},         // 256 rows: 5.62 us, fastest 5.62
      {6, INT64_MAX, 0, 1, 1},   // more rows than were measured
      {8, 1, 4, 1, 1},           // 1 rows: 1.50 us, fastest 1.50
      {8, 2, 8, 2, 1},           // 2 rows: 1.71 us, fastest 1.71
      {8, 4, 8, 4, 1},           // 4 rows: 1.94 us, fastest 1.94
      {8, 8, 8, 8, 1},           // 8 rows: 2.30 us, fastest 2.30
      {8, 45, 8, 1, 1},          // 32 rows: 3.63 us, fastest 3.63
      {8, 181, 8, 4, 1},         // 128 rows: 4.79 us, fastest 4.79
      {8, 256, 8, 4, 2},         // 256 rows: 6.47 us, fastest 6.47
      {8, INT64_MAX, 0, 1, 1},   // more rows than were measured
      {10, 1, 8, 1, 1},          // 1 rows: 1.54 us, fastest 1.54
      {10, 2, 8, 2, 1},          // 2 rows: 1.83 us, fastest 1.83
      {10, 4, 8, 4, 1},          // 4 rows: 2.09 us, fastest 2.09
      {10, 8, 8, 4, 2},          // 8 rows: 2.69 us, fastest 2.69
      {10, 45, 8, 1, 1},         // 32 rows: 3.80 us, fastest 3.76
      {10, 90, 4, 1, 2},         // 64 rows: 4.29 us, fastest 4.29
      {10, 256, 2, 1, 2},        // 256 rows: 7.54 us, fastest 7.50
      {10, INT64_MAX, 0, 1, 1},  // more rows than were measured
      {12, 1, 8, 1, 1},          // 1 rows: 1.55 us, fastest 1.55
      {12, 2, 8, 2, 1},          // 2 rows: 1.84 us, fastest 1.84
      {12, 4, 8, 4, 1},          // 4 rows: 2.13 us, fastest 2.13
      {12, 8, 8, 8, 1},          // 8 rows: 2.71 us, fastest 2.71
      {12, 22, 8, 1, 1},         // 16 rows: 3.41 us, fastest 3.41
      {12, 45, 8, 2, 1},         // 32 rows: 3.89 us, fastest 3.89
      {12, 90, 8, 1, 2},         // 64 rows: 4.53 us, fastest 4.53
      {12, 176, 8, 4, 1},        // 128 rows: 5.98 us, fastest 5.98
      {12, 256, 2, 1, 2},        // 256 rows: 8.32 us, fastest 8.32
      {12, INT64_MAX, 0, 1, 1},  // more rows than were measured
      {16, 1, 8, 1, 1},          // 1 rows: 1.58 us, fastest 1.58
      {16, 2, 8, 2, 1},          // 2 rows: 1.90 us, fastest 1.90
      {16, 4, 8, 4, 1},          // 4 rows: 2.31 us, fastest 2.31
      {16, 8, 8, 4, 2},          // 8 rows: 3.13 us, fastest 3.13
      {16, 22, 8, 1, 1},         // 16 rows: 3.76 us, fastest 3.76
      {16, 90, 8, 2, 1},         // 64 rows: 5.13 us, fastest 5.13
      {16, 181, 8, 2, 2},        // 128 rows: 6.77 us, fastest 6.77
      {16, 256, 2, 1, 2},        // 256 rows: 9.76 us, fastest 9.76
      {16, INT64_MAX, 0, 1, 1},  // more rows than were measured
  };
  static constexpr auto& kFewRowsWithRstd = kFewRows;  // not measured on its own
};

}  // namespace rms_norm::policies::backward
