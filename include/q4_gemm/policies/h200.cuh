// The policies of one GPU, as make tune S=q4_gemm wrote them.
#pragma once

#include "../choice.cuh"

namespace q4_gemm::policies {

struct H200 {
  // Measured by make tune S=q4_gemm: NVIDIA H200, CUDA 13.0, 2026-11-23. All of it is in
  // profiling_results/h200/q4_gemm/tune.csv.
  static constexpr FewChoice kFew[] = {
      {1, 2048, kAnySize, 2, 2, 8, 9, 1, 2, 2},               // 1024 x 4096: 2.99 us, fastest 2.93
      {1, 7094, 7094, 2, 2, 8, 9, 1, 2, 1},                   // 4096 x 4096: 4.04 us, fastest 3.92
      {1, 7094, kAnySize, 4, 4, 16, 5, 1, 1, 2},              // 4096 x 14336: 9.46 us, fastest 9.46
      {1, kAnySize, kAnySize, 4, 4, 16, 5, 1, 1, 1},          // 151936 x 4096: 81.20 us, fastest 80.78
      {2, 2048, kAnySize, 4, 4, 4, 5, 8, 2, 4},               // 1024 x 4096: 4.17 us, fastest 4.17
      {2, 7094, kAnySize, 2, 2, 16, 4, 8, 1, 1},              // 4096 x 14336: 11.14 us, fastest 11.14
      {4, 2048, kAnySize, 4, 4, 4, 5, 8, 2, 4},               // 1024 x 4096: 4.33 us, fastest 4.33
      {4, 7094, 7094, 2, 2, 16, 4, 8, 1, 1},                  // 4096 x 4096: 5.44 us, fastest 5.44
      {4, 7094, kAnySize, 4, 2, 8, 6, 8, 1, 2},               // 4096 x 14336: 11.58 us, fastest 11.58
      {4, 43208, kAnySize, 4, 2, 4, 6, 8, 2, 1},              // 12288 x 4096: 10.61 us, fastest 10.55
      {8, 2048, kAnySize, 2, 2, 16, 4, 8, 1, 2},              // 1024 x 4096: 4.85 us, fastest 4.79
      {8, 7094, 7094, 2, 2, 16, 4, 8, 1, 1},                  // 4096 x 4096: 6.40 us, fastest 6.21
      {8, 7094, kAnySize, 4, 2, 8, 6, 8, 1, 2},               // 4096 x 14336: 12.14 us, fastest 12.14
      {8, 43208, kAnySize, 8, 4, 8, 3, 8, 1, 1},              // 12288 x 4096: 10.86 us, fastest 10.86
      {8, kAnySize, kAnySize, 4, 2, 8, 6, 8, 1, 1},           // 151936 x 4096: 90.18 us, fastest 90.18
      {16, 2048, kAnySize, 2, 2, 8, 6, 16, 2, 2},             // 1024 x 4096: 5.86 us, fastest 5.86
      {16, 7094, kAnySize, 4, 2, 4, 5, 16, 2, 2},             // 4096 x 14336: 16.68 us, fastest 16.68
      {16, 43208, kAnySize, 16, 2, 2, 4, 16, 1, 2},           // 12288 x 4096: 14.48 us, fastest 14.48
      {16, kAnySize, kAnySize, 8, 2, 4, 4, 16, 1, 1},         // 151936 x 4096: 106.59 us, fastest 106.59
      {kAnySize, 2048, kAnySize, 2, 2, 8, 6, 16, 2, 2},       // 1024 x 4096: 7.00 us, fastest 7.00
      {kAnySize, 7094, kAnySize, 8, 2, 4, 4, 16, 1, 2},       // 4096 x 14336: 25.04 us, fastest 25.04
      {kAnySize, kAnySize, kAnySize, 16, 2, 2, 4, 16, 1, 1},  // 151936 x 4096: 199.42 us, fastest 199.42
  };
  static constexpr int64_t kManyFrom = 17;  // columns
  // Of 1 to 8 blocks, if a multiprocessor has one block, or two.
  static constexpr int kClusters[2][8] = {{132, 66, 39, 30, 22, 17, 15, 15}, {264, 132, 79, 62, 47, 39, 32, 30}};
  static constexpr Scales kScales = Scales::exact;
  // The shape that plan_of() takes needs 1.01 times the time of the fastest, on average of 36 products; at worst 1.10
  // times, at 12288 x 64 x 4096.
  static constexpr ManyChoice kMany[] = {
      {16, 1, 4, 1, 0.0928f, 3.68f},  // for 3 of 36 products
      {32, 1, 2, 2, 0.232f, 4.55f},   // for 6
      {32, 1, 4, 1, 0.130f, 4.76f},   // for 7
      {64, 1, 2, 2, 0.400f, 6.31f},   // for 2
      {64, 1, 3, 1, 0.206f, 5.57f},   // for 5
      {128, 1, 2, 1, 0.363f, 7.23f},  // for 8
      {128, 2, 1, 1, 0.772f, 8.66f},  // for 5
  };
};

// Not exact, and faster: a weight and a number of x are rounded to float16. See Scales.
struct H200Rounded : H200 {
  static constexpr Scales kScales = Scales::rounded_to_half;
  // The shape that plan_of() takes needs 1.01 times the time of the fastest, on average of 36 products; at worst 1.05
  // times, at 4096 x 512 x 4096.
  static constexpr ManyChoice kMany[] = {
      {32, 1, 4, 1, 0.113f, 4.93f},   // for 12 of 36 products
      {32, 2, 2, 1, 0.231f, 5.45f},   // for 4
      {64, 2, 2, 1, 0.261f, 7.26f},   // for 7
      {128, 2, 2, 1, 0.419f, 9.54f},  // for 3
      {128, 3, 1, 1, 0.612f, 8.75f},  // for 5
      {128, 4, 1, 1, 0.831f, 9.58f},  // for 5
  };
};

}  // namespace q4_gemm::policies
