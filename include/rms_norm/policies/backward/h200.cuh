// The policy of one GPU, as make tune S=backward wrote it.
#pragma once

#include "../../few_rows.cuh"

namespace rms_norm::policies::backward {

struct H200 {
  // Measured by make tune S=backward: NVIDIA H200, CUDA 13.0, 2026-11-29. All of it is in
  // profiling_results/h200/header/tune_backward.csv. A time is the mean of a plain and a dependent launch.
  static constexpr FewRows kFewRows[] = {
      {2, 1, 1, 1, 1},           // 1 rows: 1.20 us, fastest 1.20
      {2, 2, 1, 2, 1},           // 2 rows: 1.42 us, fastest 1.42
      {2, 4, 4, 4, 1},           // 4 rows: 1.60 us, fastest 1.60
      {2, 8, 4, 8, 1},           // 8 rows: 1.77 us, fastest 1.77
      {2, 16, 4, 16, 1},         // 16 rows: 2.16 us, fastest 2.16
      {2, 90, 1, 1, 1},          // 64 rows: 2.58 us, fastest 2.57
      {2, 181, 1, 2, 1},         // 128 rows: 3.22 us, fastest 3.22
      {2, 724, 1, 4, 1},         // 512 rows: 4.30 us, fastest 4.28
      {2, 1056, 2, 8, 1},        // 1024 rows: 5.63 us, fastest 5.63
      {2, INT64_MAX, 0, 1, 1},   // 16384 rows: 28.75 us, fastest 28.70
      {3, 1, 2, 1, 1},           // 1 rows: 1.35 us, fastest 1.35
      {3, 2, 3, 2, 1},           // 2 rows: 1.54 us, fastest 1.54
      {3, 4, 3, 4, 1},           // 4 rows: 1.72 us, fastest 1.72
      {3, 8, 3, 8, 1},           // 8 rows: 2.05 us, fastest 2.05
      {3, 90, 2, 1, 1},          // 64 rows: 3.01 us, fastest 3.01
      {3, 181, 3, 4, 1},         // 128 rows: 3.51 us, fastest 3.51
      {3, 362, 3, 8, 1},         // 256 rows: 3.97 us, fastest 3.97
      {3, 704, 2, 4, 1},         // 512 rows: 4.92 us, fastest 4.92
      {3, 1408, 2, 4, 2},        // 1024 rows: 6.67 us, fastest 6.67
      {3, INT64_MAX, 0, 1, 1},   // 16384 rows: 40.24 us, fastest 40.24
      {4, 1, 2, 1, 1},           // 1 rows: 1.35 us, fastest 1.35
      {4, 2, 4, 2, 1},           // 2 rows: 1.55 us, fastest 1.55
      {4, 4, 8, 4, 1},           // 4 rows: 1.66 us, fastest 1.66
      {4, 8, 8, 8, 1},           // 8 rows: 1.86 us, fastest 1.86
      {4, 16, 8, 16, 1},         // 16 rows: 2.29 us, fastest 2.29
      {4, 45, 8, 1, 1},          // 32 rows: 2.63 us, fastest 2.63
      {4, 90, 8, 2, 1},          // 64 rows: 3.29 us, fastest 3.29
      {4, 181, 8, 4, 1},         // 128 rows: 3.61 us, fastest 3.61
      {4, 528, 2, 4, 1},         // 512 rows: 5.69 us, fastest 5.64
      {4, INT64_MAX, 0, 1, 1},   // 16384 rows: 52.09 us, fastest 52.09
      {5, 1, 4, 1, 1},           // 1 rows: 1.37 us, fastest 1.37
      {5, 2, 4, 2, 1},           // 2 rows: 1.65 us, fastest 1.65
      {5, 4, 4, 4, 1},           // 4 rows: 1.88 us, fastest 1.88
      {5, 8, 4, 8, 1},           // 8 rows: 2.43 us, fastest 2.43
      {5, 90, 4, 1, 1},          // 64 rows: 3.43 us, fastest 3.43
      {5, 181, 3, 4, 1},         // 128 rows: 3.95 us, fastest 3.95
      {5, 362, 2, 4, 1},         // 256 rows: 4.80 us, fastest 4.80
      {5, 724, 2, 4, 2},         // 512 rows: 6.31 us, fastest 6.31
      {5, INT64_MAX, 0, 1, 1},   // 16384 rows: 63.68 us, fastest 63.68
      {6, 1, 4, 1, 1},           // 1 rows: 1.38 us, fastest 1.38
      {6, 2, 4, 2, 1},           // 2 rows: 1.65 us, fastest 1.65
      {6, 4, 4, 4, 1},           // 4 rows: 1.89 us, fastest 1.89
      {6, 8, 4, 8, 1},           // 8 rows: 2.44 us, fastest 2.44
      {6, 90, 4, 1, 1},          // 64 rows: 3.51 us, fastest 3.51
      {6, 181, 3, 4, 1},         // 128 rows: 4.04 us, fastest 4.04
      {6, 352, 3, 8, 1},         // 256 rows: 5.06 us, fastest 5.06
      {6, 704, 2, 2, 2},         // 512 rows: 6.94 us, fastest 6.94
      {6, INT64_MAX, 0, 1, 1},   // 16384 rows: 77.10 us, fastest 77.10
      {8, 1, 4, 1, 1},           // 1 rows: 1.39 us, fastest 1.39
      {8, 2, 8, 2, 1},           // 2 rows: 1.62 us, fastest 1.62
      {8, 4, 8, 4, 1},           // 4 rows: 1.85 us, fastest 1.85
      {8, 8, 8, 8, 1},           // 8 rows: 2.23 us, fastest 2.23
      {8, 45, 8, 1, 1},          // 32 rows: 3.31 us, fastest 3.31
      {8, 90, 8, 2, 1},          // 64 rows: 3.68 us, fastest 3.68
      {8, 181, 8, 4, 1},         // 128 rows: 4.42 us, fastest 4.42
      {8, INT64_MAX, 0, 1, 1},   // 16384 rows: 98.02 us, fastest 98.02
      {10, 1, 4, 1, 1},          // 1 rows: 1.44 us, fastest 1.44
      {10, 2, 8, 2, 1},          // 2 rows: 1.73 us, fastest 1.73
      {10, 4, 8, 4, 1},          // 4 rows: 2.03 us, fastest 2.03
      {10, 45, 8, 1, 1},         // 32 rows: 3.51 us, fastest 3.50
      {10, 90, 4, 4, 1},         // 64 rows: 4.02 us, fastest 4.02
      {10, 181, 3, 4, 1},        // 128 rows: 4.98 us, fastest 4.98
      {10, 362, 3, 4, 2},        // 256 rows: 6.73 us, fastest 6.73
      {10, INT64_MAX, 0, 1, 1},  // 4096 rows: 33.73 us, fastest 33.73
      {12, 1, 4, 1, 1},          // 1 rows: 1.47 us, fastest 1.47
      {12, 2, 8, 2, 1},          // 2 rows: 1.74 us, fastest 1.74
      {12, 4, 8, 4, 1},          // 4 rows: 2.05 us, fastest 2.05
      {12, 8, 8, 8, 1},          // 8 rows: 2.64 us, fastest 2.64
      {12, 22, 8, 1, 1},         // 16 rows: 3.02 us, fastest 3.02
      {12, 45, 8, 2, 1},         // 32 rows: 3.61 us, fastest 3.61
      {12, 176, 8, 4, 1},        // 128 rows: 5.42 us, fastest 5.42
      {12, INT64_MAX, 0, 1, 1},  // 4096 rows: 40.38 us, fastest 40.38
      {16, 1, 8, 1, 1},          // 1 rows: 1.50 us, fastest 1.50
      {16, 2, 8, 2, 1},          // 2 rows: 1.83 us, fastest 1.83
      {16, 4, 8, 4, 1},          // 4 rows: 2.27 us, fastest 2.27
      {16, 22, 8, 1, 1},         // 16 rows: 3.46 us, fastest 3.46
      {16, 45, 8, 2, 1},         // 32 rows: 3.83 us, fastest 3.83
      {16, 181, 0, 1, 1},        // 128 rows: 6.30 us, fastest 6.30
      {16, 264, 2, 1, 2},        // 256 rows: 8.96 us, fastest 8.96
      {16, INT64_MAX, 0, 1, 1},  // 4096 rows: 52.13 us, fastest 52.03
  };
};

}  // namespace rms_norm::policies::backward
