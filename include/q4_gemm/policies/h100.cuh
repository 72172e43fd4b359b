// The policies of one GPU, as make tune S=q4_gemm wrote them.
#pragma once

#include "../choice.cuh"

namespace q4_gemm::policies {

struct H100 {
  // Measured by make tune S=q4_gemm: NVIDIA H100 80GB HBM3, CUDA 13.0, 2026-11-27. All of it is in
  // profiling_results/h100/q4_gemm/tune.csv.
  static constexpr FewChoice kFew[] = {
      {1, 2048, kAnySize, 4, 4, 8, 4, 1, 2, false, 4},               // 1024 x 4096: 2.48 us, fastest 2.46
      {1, 2048, kAnySize, 2, 2, 16, 6, 1, 1, false, 1},              // 1024 x 4096: 3.05 us, fastest 2.46
      {1, 7094, 7094, 4, 4, 8, 4, 1, 2, false, 2},                   // 4096 x 4096: 3.96 us, fastest 3.94
      {1, 7094, 7094, 2, 2, 8, 9, 1, 2, false, 1},                   // 4096 x 4096: 3.98 us, fastest 3.94
      {1, 7094, kAnySize, 4, 4, 16, 5, 1, 1, false, 2},              // 4096 x 14336: 11.75 us, fastest 11.69
      {1, 7094, kAnySize, 2, 2, 16, 6, 1, 1, false, 1},              // 4096 x 14336: 12.69 us, fastest 11.69
      {1, 43208, kAnySize, 4, 4, 16, 5, 1, 1, false, 1},             // 12288 x 4096: 9.32 us, fastest 9.32
      {1, kAnySize, kAnySize, 4, 4, 8, 4, 1, 2, false, 1},           // 151936 x 4096: 112.81 us, fastest 112.62
      {2, 2048, kAnySize, 4, 4, 8, 3, 8, 2, false, 4},               // 1024 x 4096: 2.87 us, fastest 2.87
      {2, 7094, 7094, 4, 2, 8, 4, 8, 1, false, 2},                   // 4096 x 4096: 4.65 us, fastest 4.65
      {2, 7094, kAnySize, 4, 4, 8, 3, 8, 1, true, 2},                // 4096 x 14336: 13.71 us, fastest 13.66
      {2, 43208, kAnySize, 4, 4, 8, 5, 8, 1, true, 2},               // 12288 x 4096: 10.40 us, fastest 10.40
      {2, 43208, kAnySize, 2, 2, 16, 4, 8, 1, false, 1},             // 12288 x 4096: 10.65 us, fastest 10.40
      {2, kAnySize, kAnySize, 8, 4, 8, 3, 8, 1, true, 1},            // 151936 x 4096: 115.28 us, fastest 115.09
      {4, 2048, kAnySize, 4, 4, 8, 3, 8, 1, true, 4},                // 1024 x 4096: 3.72 us, fastest 3.72
      {4, 2048, kAnySize, 2, 2, 8, 4, 8, 2, true, 1},                // 1024 x 4096: 4.63 us, fastest 3.72
      {4, 7094, 7094, 2, 2, 16, 3, 8, 1, false, 1},                  // 4096 x 4096: 5.62 us, fastest 5.62
      {4, 7094, kAnySize, 4, 4, 8, 3, 8, 1, true, 2},                // 4096 x 14336: 13.75 us, fastest 13.75
      {4, 7094, kAnySize, 4, 4, 12, 3, 8, 1, true, 1},               // 4096 x 14336: 14.03 us, fastest 13.75
      {4, kAnySize, kAnySize, 4, 4, 8, 3, 8, 2, false, 1},           // 151936 x 4096: 118.40 us, fastest 118.31
      {8, 2048, kAnySize, 2, 2, 8, 4, 8, 2, true, 2},                // 1024 x 4096: 3.91 us, fastest 3.91
      {8, 2048, kAnySize, 2, 2, 8, 4, 8, 2, true, 1},                // 1024 x 4096: 4.71 us, fastest 3.91
      {8, 7094, 7094, 2, 2, 8, 4, 8, 2, true, 2},                    // 4096 x 4096: 5.93 us, fastest 5.93
      {8, 7094, kAnySize, 4, 4, 8, 3, 8, 1, true, 2},                // 4096 x 14336: 14.22 us, fastest 14.22
      {8, 7094, kAnySize, 4, 4, 12, 3, 8, 1, true, 1},               // 4096 x 14336: 14.36 us, fastest 14.22
      {8, 43208, kAnySize, 2, 2, 16, 3, 8, 1, false, 1},             // 12288 x 4096: 12.53 us, fastest 12.52
      {8, kAnySize, kAnySize, 8, 4, 8, 3, 8, 1, true, 1},            // 151936 x 4096: 121.19 us, fastest 120.86
      {16, 2048, kAnySize, 2, 2, 8, 3, 16, 2, true, 4},              // 1024 x 4096: 4.93 us, fastest 4.93
      {16, 2048, kAnySize, 2, 2, 8, 3, 16, 2, true, 1},              // 1024 x 4096: 5.50 us, fastest 4.93
      {16, 7094, 7094, 2, 2, 8, 3, 16, 2, true, 2},                  // 4096 x 4096: 6.74 us, fastest 6.74
      {16, 7094, kAnySize, 4, 4, 8, 3, 16, 1, true, 2},              // 4096 x 14336: 15.41 us, fastest 15.41
      {16, 7094, kAnySize, 4, 4, 12, 3, 16, 1, true, 1},             // 4096 x 14336: 18.09 us, fastest 15.41
      {16, kAnySize, kAnySize, 8, 2, 4, 4, 16, 1, false, 1},         // 151936 x 4096: 126.38 us, fastest 126.38
      {kAnySize, 2048, kAnySize, 4, 4, 12, 3, 16, 1, true, 2},       // 1024 x 4096: 5.95 us, fastest 5.95
      {kAnySize, 2048, kAnySize, 2, 2, 8, 6, 16, 2, false, 1},       // 1024 x 4096: 7.08 us, fastest 5.95
      {kAnySize, 43208, kAnySize, 4, 4, 8, 3, 16, 1, true, 1},       // 12288 x 4096: 21.94 us, fastest 21.94
      {kAnySize, kAnySize, kAnySize, 16, 2, 2, 4, 32, 1, false, 1},  // 151936 x 4096: 230.97 us, fastest 230.97
  };
  static constexpr int64_t kManyFrom = 32;  // columns
  // Of 1 to 8 blocks, if a multiprocessor has one block, or two.
  static constexpr int kClusters[2][8] = {{132, 66, 39, 30, 22, 17, 15, 15}, {264, 132, 79, 62, 47, 39, 32, 30}};
  static constexpr Scales kScales = Scales::exact;
  // The shape that plan_of() takes needs 1.00 times the time of the fastest, on average of 36 products; at worst 1.09
  // times, at 12288 x 64 x 4096.
  static constexpr ManyChoice kMany[] = {
      {16, 1, 4, 1, 0.0778f, 2.33f, 1.18f},  // for 6 of 36 products
      {32, 1, 2, 2, 0.204f, 3.29f, 1.08f},   // for 4
      {32, 1, 4, 1, 0.115f, 2.51f, 1.95f},   // for 6
      {64, 1, 3, 1, 0.187f, 3.00f, 2.08f},   // for 7
      {64, 2, 1, 1, 0.392f, 2.97f, 2.13f},   // for 2
      {128, 1, 2, 1, 0.350f, 3.42f, 2.75f},  // for 4
      {128, 2, 1, 1, 0.698f, 4.02f, 3.19f},  // for 7
  };
};

// Not exact, and faster: a weight and a number of x are rounded to float16. See Scales.
struct H100Rounded : H100 {
  static constexpr int64_t kManyFrom = 17;  // columns
  static constexpr Scales kScales = Scales::rounded_to_half;
  // The shape that plan_of() takes needs 1.01 times the time of the fastest, on average of 36 products; at worst 1.07
  // times, at 1024 x 128 x 4096.
  static constexpr ManyChoice kMany[] = {
      {32, 1, 3, 1, 0.103f, 2.04f, 2.06f},   // for 12 of 36 products
      {32, 2, 2, 1, 0.177f, 2.97f, 2.00f},   // for 4
      {64, 1, 3, 1, 0.153f, 1.52f, 3.41f},   // for 4
      {64, 2, 2, 1, 0.232f, 2.92f, 3.48f},   // for 3
      {128, 2, 1, 1, 0.383f, 2.90f, 3.24f},  // for 5
      {128, 3, 1, 1, 0.509f, 5.91f, 2.58f},  // for 8
  };
};

}  // namespace q4_gemm::policies
