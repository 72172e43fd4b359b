// The policy of one GPU, as make tune S=backward wrote it.
#pragma once

#include "../../few_rows.cuh"

namespace rms_norm::policies::backward {

struct H200 {
  // Measured by make tune S=backward: NVIDIA H200, CUDA 13.0, 2026-11-29. All of it is in
  // profiling_results/h200/header/tune_backward.csv. A time is the mean of a plain and a dependent launch.
  static constexpr FewRows kFewRows[] = {
      {2, 1, 1, 1, 1},           // 1 rows: 1.28 us, fastest 1.28
      {2, 2, 4, 2, 1},           // 2 rows: 1.55 us, fastest 1.55
      {2, 4, 4, 4, 1},           // 4 rows: 1.63 us, fastest 1.63
      {2, 8, 4, 8, 1},           // 8 rows: 1.81 us, fastest 1.81
      {2, 16, 4, 16, 1},         // 16 rows: 2.20 us, fastest 2.20
      {2, 90, 2, 1, 1},          // 64 rows: 2.73 us, fastest 2.71
      {2, 181, 1, 2, 1},         // 128 rows: 3.42 us, fastest 3.42
      {2, 512, 2, 4, 1},         // 256 rows: 3.70 us, fastest 3.70
      {2, INT64_MAX, 0, 1, 1},   // 16384 rows: 29.55 us, fastest 29.55
      {3, 1, 1, 1, 1},           // 1 rows: 1.39 us, fastest 1.39
      {3, 2, 3, 2, 1},           // 2 rows: 1.61 us, fastest 1.61
      {3, 4, 3, 4, 1},           // 4 rows: 1.79 us, fastest 1.79
      {3, 8, 3, 8, 1},           // 8 rows: 2.13 us, fastest 2.13
      {3, 90, 2, 1, 1},          // 64 rows: 3.11 us, fastest 3.11
      {3, 512, 3, 4, 1},         // 256 rows: 4.14 us, fastest 4.11
      {3, INT64_MAX, 0, 1, 1},   // 16384 rows: 41.13 us, fastest 41.13
      {4, 1, 2, 1, 1},           // 1 rows: 1.41 us, fastest 1.41
      {4, 2, 4, 2, 1},           // 2 rows: 1.61 us, fastest 1.61
      {4, 4, 8, 4, 1},           // 4 rows: 1.71 us, fastest 1.71
      {4, 8, 8, 8, 1},           // 8 rows: 1.94 us, fastest 1.94
      {4, 16, 8, 16, 1},         // 16 rows: 2.36 us, fastest 2.36
      {4, 45, 8, 1, 1},          // 32 rows: 2.70 us, fastest 2.70
      {4, 90, 8, 2, 1},          // 64 rows: 3.37 us, fastest 3.37
      {4, 181, 8, 4, 1},         // 128 rows: 3.71 us, fastest 3.71
      {4, 512, 2, 4, 1},         // 256 rows: 4.43 us, fastest 4.43
      {4, INT64_MAX, 0, 1, 1},   // 16384 rows: 52.82 us, fastest 52.82
      {5, 1, 4, 1, 1},           // 1 rows: 1.42 us, fastest 1.42
      {5, 2, 4, 2, 1},           // 2 rows: 1.73 us, fastest 1.73
      {5, 4, 4, 4, 1},           // 4 rows: 1.97 us, fastest 1.97
      {5, 8, 4, 8, 1},           // 8 rows: 2.49 us, fastest 2.49
      {5, 90, 4, 1, 1},          // 64 rows: 3.54 us, fastest 3.54
      {5, 181, 4, 1, 2},         // 128 rows: 4.03 us, fastest 4.03
      {5, 512, 2, 4, 1},         // 256 rows: 4.92 us, fastest 4.92
      {5, INT64_MAX, 0, 1, 1},   // 16384 rows: 64.43 us, fastest 64.43
      {6, 1, 4, 1, 1},           // 1 rows: 1.43 us, fastest 1.43
      {6, 2, 4, 2, 1},           // 2 rows: 1.73 us, fastest 1.73
      {6, 4, 4, 4, 1},           // 4 rows: 1.97 us, fastest 1.97
      {6, 8, 4, 8, 1},           // 8 rows: 2.51 us, fastest 2.51
      {6, 90, 4, 1, 1},          // 64 rows: 3.63 us, fastest 3.63
      {6, 181, 4, 1, 2},         // 128 rows: 4.14 us, fastest 4.14
      {6, 512, 3, 8, 1},         // 256 rows: 5.15 us, fastest 5.15
      {6, INT64_MAX, 0, 1, 1},   // 16384 rows: 84.20 us, fastest 84.20
      {8, 1, 4, 1, 1},           // 1 rows: 1.45 us, fastest 1.45
      {8, 2, 8, 2, 1},           // 2 rows: 1.68 us, fastest 1.68
      {8, 4, 8, 4, 1},           // 4 rows: 1.91 us, fastest 1.91
      {8, 8, 8, 8, 1},           // 8 rows: 2.30 us, fastest 2.30
      {8, 45, 8, 1, 1},          // 32 rows: 3.39 us, fastest 3.39
      {8, 90, 8, 2, 1},          // 64 rows: 3.80 us, fastest 3.80
      {8, 181, 8, 4, 1},         // 128 rows: 4.50 us, fastest 4.50
      {8, 512, 8, 4, 2},         // 256 rows: 5.92 us, fastest 5.92
      {8, INT64_MAX, 0, 1, 1},   // 16384 rows: 101.97 us, fastest 101.97
      {10, 1, 8, 1, 1},          // 1 rows: 1.49 us, fastest 1.49
      {10, 2, 8, 2, 1},          // 2 rows: 1.80 us, fastest 1.80
      {10, 4, 8, 4, 1},          // 4 rows: 2.10 us, fastest 2.10
      {10, 8, 8, 4, 2},          // 8 rows: 2.64 us, fastest 2.64
      {10, 45, 8, 1, 1},         // 32 rows: 3.60 us, fastest 3.60
      {10, 90, 8, 1, 2},         // 64 rows: 4.09 us, fastest 4.09
      {10, 181, 2, 1, 2},        // 128 rows: 5.07 us, fastest 5.07
      {10, 512, 3, 4, 2},        // 256 rows: 6.72 us, fastest 6.72
      {10, INT64_MAX, 0, 1, 1},  // 4096 rows: 34.91 us, fastest 34.91
      {12, 1, 8, 1, 1},          // 1 rows: 1.49 us, fastest 1.49
      {12, 2, 8, 2, 1},          // 2 rows: 1.81 us, fastest 1.81
      {12, 4, 8, 4, 1},          // 4 rows: 2.12 us, fastest 2.12
      {12, 8, 8, 4, 2},          // 8 rows: 2.67 us, fastest 2.67
      {12, 45, 8, 1, 1},         // 32 rows: 3.72 us, fastest 3.72
      {12, 90, 8, 1, 2},         // 64 rows: 4.20 us, fastest 4.20
      {12, 181, 8, 2, 2},        // 128 rows: 5.49 us, fastest 5.49
      {12, 512, 2, 1, 2},        // 256 rows: 7.45 us, fastest 7.45
      {12, INT64_MAX, 0, 1, 1},  // 4096 rows: 41.79 us, fastest 41.79
      {16, 1, 8, 1, 1},          // 1 rows: 1.51 us, fastest 1.51
      {16, 2, 8, 2, 1},          // 2 rows: 1.88 us, fastest 1.88
      {16, 4, 8, 4, 1},          // 4 rows: 2.30 us, fastest 2.30
      {16, 22, 8, 1, 1},         // 16 rows: 3.55 us, fastest 3.55
      {16, 90, 8, 2, 1},         // 64 rows: 4.79 us, fastest 4.79
      {16, 181, 8, 2, 2},        // 128 rows: 6.29 us, fastest 6.29
      {16, 512, 2, 1, 2},        // 256 rows: 8.65 us, fastest 8.65
      {16, INT64_MAX, 0, 1, 1},  // 4096 rows: 53.80 us, fastest 53.80
  };
};

}  // namespace rms_norm::policies::backward
