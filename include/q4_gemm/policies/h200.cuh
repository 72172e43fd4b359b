// The policies of one GPU, as make tune S=q4_gemm wrote them.
#pragma once

#include "../choice.cuh"

namespace q4_gemm::policies {

struct H200 {
  // Measured by make tune S=q4_gemm: NVIDIA H200, CUDA 13.0, 2026-11-25. All of it is in
  // profiling_results/h200/q4_gemm/tune.csv.
  static constexpr FewChoice kFew[] = {
      {1, 2048, kAnySize, 4, 4, 8, 4, 1, 2, false, 4},               // 1024 x 4096: 3.03 us, fastest 2.98
      {1, 7094, 7094, 4, 4, 8, 4, 1, 2, false, 2},                   // 4096 x 4096: 3.90 us, fastest 3.90
      {1, 7094, kAnySize, 4, 4, 16, 5, 1, 1, false, 2},              // 4096 x 14336: 9.33 us, fastest 9.33
      {1, kAnySize, kAnySize, 4, 4, 16, 5, 1, 1, false, 1},          // 151936 x 4096: 79.38 us, fastest 78.81
      {2, 2048, kAnySize, 4, 4, 8, 3, 8, 2, false, 4},               // 1024 x 4096: 3.39 us, fastest 3.39
      {8, 2048, kAnySize, 4, 4, 8, 3, 8, 1, true, 4},                // 1024 x 4096: 4.21 us, fastest 4.21
      {8, 7094, kAnySize, 4, 4, 8, 3, 8, 1, true, 2},                // 4096 x 14336: 11.06 us, fastest 11.06
      {8, kAnySize, kAnySize, 8, 4, 8, 3, 8, 1, true, 1},            // 151936 x 4096: 86.70 us, fastest 86.70
      {16, 2048, kAnySize, 4, 4, 4, 3, 16, 2, true, 8},              // 1024 x 4096: 5.58 us, fastest 5.58
      {16, 7094, 7094, 2, 2, 8, 3, 16, 2, true, 2},                  // 4096 x 4096: 6.89 us, fastest 6.89
      {16, 7094, kAnySize, 4, 4, 8, 3, 16, 1, true, 2},              // 4096 x 14336: 13.35 us, fastest 13.35
      {16, kAnySize, kAnySize, 4, 4, 4, 3, 16, 2, true, 1},          // 151936 x 4096: 111.08 us, fastest 111.08
      {kAnySize, 2048, kAnySize, 4, 4, 8, 3, 16, 1, true, 2},        // 1024 x 4096: 6.44 us, fastest 6.44
      {kAnySize, 7094, 7094, 4, 4, 8, 3, 16, 1, true, 1},            // 4096 x 4096: 9.13 us, fastest 9.13
      {kAnySize, 43208, kAnySize, 4, 4, 12, 3, 16, 1, true, 1},      // 12288 x 4096: 22.44 us, fastest 22.44
      {kAnySize, kAnySize, kAnySize, 16, 2, 2, 4, 16, 1, false, 1},  // 151936 x 4096: 199.95 us, fastest 199.95
  };
  static constexpr int64_t kManyFrom = 17;  // columns
  // Of 1 to 8 blocks, if a multiprocessor has one block, or two.
  static constexpr int kClusters[2][8] = {{132, 66, 39, 30, 22, 17, 15, 15}, {264, 132, 79, 62, 47, 39, 32, 30}};
  static constexpr Scales kScales = Scales::exact;
  // The shape that plan_of() takes needs 1.00 times the time of the fastest, on average of 36 products; at worst 1.12
  // times, at 12288 x 64 x 4096.
  static constexpr ManyChoice kMany[] = {
      {16, 1, 4, 1, 0.0783f, 2.66f, 0.953f},  // for 6 of 36 products
      {32, 1, 2, 2, 0.209f, 4.16f, 0.285f},   // for 4
      {32, 1, 4, 1, 0.115f, 3.25f, 1.41f},    // for 7
      {64, 1, 3, 1, 0.192f, 4.46f, 1.07f},    // for 8
      {128, 1, 2, 1, 0.362f, 5.87f, 1.18f},   // for 5
      {128, 2, 1, 1, 0.749f, 6.58f, 1.67f},   // for 6
  };
};

// Not exact, and faster: a weight and a number of x are rounded to float16. See Scales.
struct H200Rounded : H200 {
  static constexpr Scales kScales = Scales::rounded_to_half;
  // The shape that plan_of() takes needs 1.00 times the time of the fastest, on average of 36 products; at worst 1.06
  // times, at 4096 x 256 x 4096.
  static constexpr ManyChoice kMany[] = {
      {32, 1, 3, 1, 0.0959f, 3.09f, 1.26f},   // for 12 of 36 products
      {32, 2, 2, 1, 0.180f, 3.88f, 1.23f},    // for 4
      {64, 1, 3, 1, 0.138f, 3.37f, 1.81f},    // for 4
      {64, 2, 2, 1, 0.231f, 4.91f, 1.81f},    // for 5
      {128, 2, 2, 1, 0.370f, 7.92f, 1.31f},   // for 5
      {128, 3, 1, 1, 0.538f, 9.04f, 0.00f},   // for 4
      {128, 4, 1, 1, 0.726f, 9.80f, 0.330f},  // for 2
  };
};

}  // namespace q4_gemm::policies
