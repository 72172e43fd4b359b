// The policies of one GPU, as make tune S=q4_gemm wrote them.
#pragma once

#include "../choice.cuh"

namespace q4_gemm::policies {

struct H200 {
  // Measured by make tune S=q4_gemm: NVIDIA H200, CUDA 13.0, 2026-11-23. All of it is in
  // profiling_results/h200/q4_gemm/tune.csv.
  static constexpr FewChoice kFew[] = {
      {1, 2048, kAnySize, 2, 2, 8, 8, 1, 2, false, 2},               // 1024 x 4096: 2.92 us, fastest 2.92
      {1, 7094, 7094, 4, 4, 8, 4, 1, 2, false, 2},                   // 4096 x 4096: 3.92 us, fastest 3.92
      {1, 7094, kAnySize, 4, 4, 16, 5, 1, 1, false, 2},              // 4096 x 14336: 9.46 us, fastest 9.46
      {1, kAnySize, kAnySize, 4, 4, 16, 5, 1, 1, false, 1},          // 151936 x 4096: 81.19 us, fastest 80.92
      {2, 2048, kAnySize, 4, 4, 4, 5, 8, 2, false, 8},               // 1024 x 4096: 3.38 us, fastest 3.38
      {2, 7094, 13272, 2, 2, 16, 3, 8, 1, false, 1},                 // 4096 x 12288: 10.29 us, fastest 10.21
      {2, 7094, kAnySize, 2, 2, 16, 4, 8, 1, false, 1},              // 4096 x 14336: 11.17 us, fastest 11.16
      {2, 43208, kAnySize, 2, 2, 16, 3, 8, 1, false, 1},             // 12288 x 4096: 9.83 us, fastest 9.83
      {2, kAnySize, kAnySize, 4, 2, 8, 6, 8, 1, false, 1},           // 151936 x 4096: 82.57 us, fastest 82.57
      {4, 2048, kAnySize, 4, 4, 4, 5, 8, 2, false, 4},               // 1024 x 4096: 4.32 us, fastest 4.32
      {4, 7094, 7094, 2, 2, 16, 4, 8, 1, false, 1},                  // 4096 x 4096: 5.46 us, fastest 5.46
      {8, 2048, kAnySize, 2, 2, 16, 4, 8, 1, false, 2},              // 1024 x 4096: 4.84 us, fastest 4.79
      {8, 7094, 7094, 2, 2, 16, 3, 8, 1, false, 1},                  // 4096 x 4096: 6.16 us, fastest 6.15
      {8, 7094, kAnySize, 4, 2, 8, 6, 8, 1, false, 2},               // 4096 x 14336: 12.09 us, fastest 12.09
      {8, kAnySize, kAnySize, 8, 4, 8, 3, 8, 1, false, 1},           // 151936 x 4096: 88.59 us, fastest 88.59
      {16, 2048, kAnySize, 2, 2, 8, 6, 16, 2, false, 2},             // 1024 x 4096: 5.85 us, fastest 5.85
      {16, 7094, kAnySize, 4, 2, 4, 5, 16, 2, false, 2},             // 4096 x 14336: 16.64 us, fastest 16.64
      {16, 43208, kAnySize, 16, 2, 2, 4, 16, 1, false, 2},           // 12288 x 4096: 14.54 us, fastest 14.54
      {16, kAnySize, kAnySize, 8, 2, 4, 4, 16, 1, false, 1},         // 151936 x 4096: 107.90 us, fastest 107.90
      {kAnySize, 2048, kAnySize, 2, 2, 8, 6, 16, 2, false, 2},       // 1024 x 4096: 6.99 us, fastest 6.99
      {kAnySize, 7094, kAnySize, 8, 2, 4, 4, 16, 1, false, 2},       // 4096 x 14336: 25.04 us, fastest 25.04
      {kAnySize, kAnySize, kAnySize, 16, 2, 2, 4, 16, 1, false, 1},  // 151936 x 4096: 201.37 us, fastest 201.37
  };
  static constexpr int64_t kManyFrom = 17;  // columns
  // Of 1 to 8 blocks, if a multiprocessor has one block, or two.
  static constexpr int kClusters[2][8] = {{132, 66, 39, 30, 22, 17, 15, 15}, {264, 132, 79, 62, 47, 39, 32, 30}};
  static constexpr Scales kScales = Scales::exact;
  // The shape that plan_of() takes needs 1.00 times the time of the fastest, on average of 36 products; at worst 1.09
  // times, at 12288 x 64 x 4096.
  static constexpr ManyChoice kMany[] = {
      {16, 1, 4, 1, 0.0779f, 2.63f, 0.945f},  // for 6 of 36 products
      {32, 1, 2, 2, 0.208f, 4.13f, 0.298f},   // for 4
      {32, 1, 4, 1, 0.114f, 3.24f, 1.40f},    // for 6
      {64, 1, 3, 1, 0.192f, 4.45f, 1.07f},    // for 7
      {64, 2, 1, 1, 0.412f, 4.70f, 1.06f},    // for 2
      {128, 1, 2, 1, 0.361f, 5.87f, 1.18f},   // for 5
      {128, 2, 1, 1, 0.747f, 6.69f, 1.53f},   // for 6
  };
};

// Not exact, and faster: a weight and a number of x are rounded to float16. See Scales.
struct H200Rounded : H200 {
  static constexpr Scales kScales = Scales::rounded_to_half;
  // The shape that plan_of() takes needs 1.00 times the time of the fastest, on average of 36 products; at worst 1.05
  // times, at 4096 x 256 x 4096.
  static constexpr ManyChoice kMany[] = {
      {32, 1, 3, 1, 0.0955f, 3.03f, 1.30f},   // for 12 of 36 products
      {32, 2, 2, 1, 0.180f, 3.89f, 1.21f},    // for 4
      {64, 1, 3, 1, 0.138f, 3.39f, 1.80f},    // for 4
      {64, 2, 2, 1, 0.232f, 4.88f, 1.81f},    // for 5
      {128, 2, 2, 1, 0.371f, 7.87f, 1.37f},   // for 5
      {128, 3, 1, 1, 0.535f, 9.12f, 0.00f},   // for 4
      {128, 4, 1, 1, 0.724f, 9.85f, 0.210f},  // for 2
  };
};

}  // namespace q4_gemm::policies
