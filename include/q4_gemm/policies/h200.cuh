// The policies of one GPU, as make tune S=q4_gemm wrote them.
#pragma once

#include "../choice.cuh"

namespace q4_gemm::policies {

struct H200 {
  // Measured by make tune S=q4_gemm: NVIDIA H200, CUDA 13.0, 2026-11-25. All of it is in
  // profiling_results/h200/q4_gemm/tune.csv.
  static constexpr FewChoice kFew[] = {
      {1, 2048, kAnySize, 2, 2, 8, 8, 1, 2, false, 2},               // 1024 x 4096: 2.52 us, fastest 2.52
      {1, 7094, 7094, 4, 4, 8, 4, 1, 2, false, 2},                   // 4096 x 4096: 3.50 us, fastest 3.50
      {1, 7094, kAnySize, 4, 4, 16, 4, 1, 1, false, 2},              // 4096 x 14336: 9.05 us, fastest 8.99
      {1, 43208, kAnySize, 4, 4, 16, 4, 1, 1, false, 1},             // 12288 x 4096: 7.53 us, fastest 7.53
      {1, kAnySize, kAnySize, 4, 4, 8, 4, 1, 2, false, 1},           // 151936 x 4096: 80.26 us, fastest 80.19
      {2, 2048, kAnySize, 4, 4, 8, 3, 8, 2, false, 4},               // 1024 x 4096: 2.95 us, fastest 2.95
      {2, 7094, 7094, 2, 2, 16, 3, 8, 1, false, 1},                  // 4096 x 4096: 4.47 us, fastest 4.47
      {2, 7094, kAnySize, 4, 4, 12, 3, 8, 1, true, 2},               // 4096 x 14336: 10.50 us, fastest 10.50
      {2, 43208, kAnySize, 2, 2, 16, 4, 8, 1, false, 1},             // 12288 x 4096: 8.77 us, fastest 8.77
      {4, 2048, kAnySize, 4, 4, 12, 3, 8, 1, true, 4},               // 1024 x 4096: 3.34 us, fastest 3.34
      {4, 7094, 7094, 4, 4, 8, 3, 8, 1, true, 2},                    // 4096 x 4096: 5.04 us, fastest 5.04
      {4, 7094, 13272, 2, 2, 8, 4, 8, 2, true, 2},                   // 4096 x 12288: 9.83 us, fastest 9.83
      {4, 7094, kAnySize, 4, 4, 8, 3, 8, 1, true, 2},                // 4096 x 14336: 10.79 us, fastest 10.79
      {4, 43208, kAnySize, 4, 4, 4, 4, 8, 2, true, 1},               // 12288 x 4096: 9.53 us, fastest 9.53
      {8, 2048, kAnySize, 4, 4, 12, 3, 8, 1, true, 4},               // 1024 x 4096: 3.75 us, fastest 3.75
      {8, 7094, 7094, 4, 4, 8, 3, 8, 1, true, 2},                    // 4096 x 4096: 5.56 us, fastest 5.56
      {8, 7094, kAnySize, 2, 2, 8, 4, 8, 2, true, 2},                // 4096 x 14336: 10.90 us, fastest 10.90
      {8, kAnySize, kAnySize, 8, 4, 8, 3, 8, 1, true, 1},            // 151936 x 4096: 87.66 us, fastest 87.56
      {16, 2048, kAnySize, 4, 4, 12, 3, 16, 1, true, 4},             // 1024 x 4096: 4.71 us, fastest 4.71
      {16, 7094, 7094, 2, 2, 8, 3, 16, 2, true, 2},                  // 4096 x 4096: 6.43 us, fastest 6.43
      {16, 7094, 13272, 4, 4, 8, 3, 16, 1, true, 2},                 // 4096 x 12288: 11.58 us, fastest 11.58
      {16, 7094, kAnySize, 4, 4, 12, 3, 16, 1, true, 2},             // 4096 x 14336: 12.75 us, fastest 12.75
      {16, 43208, kAnySize, 8, 4, 4, 3, 16, 1, true, 1},             // 12288 x 4096: 12.49 us, fastest 12.49
      {16, kAnySize, kAnySize, 8, 2, 4, 4, 16, 1, false, 1},         // 151936 x 4096: 102.97 us, fastest 102.97
      {kAnySize, 2048, kAnySize, 4, 4, 12, 3, 16, 1, true, 2},       // 1024 x 4096: 5.64 us, fastest 5.64
      {kAnySize, 7094, 7094, 4, 4, 8, 3, 16, 1, true, 1},            // 4096 x 4096: 8.39 us, fastest 8.39
      {kAnySize, 43208, kAnySize, 4, 4, 12, 3, 16, 1, true, 1},      // 12288 x 4096: 20.73 us, fastest 20.73
      {kAnySize, kAnySize, kAnySize, 16, 2, 2, 4, 16, 1, false, 1},  // 151936 x 4096: 187.76 us, fastest 187.76
  };
  static constexpr int64_t kManyFrom = 32;  // columns
  // Of 1 to 8 blocks, if a multiprocessor has one block, or two.
  static constexpr int kClusters[2][8] = {{132, 66, 39, 30, 22, 17, 15, 15}, {264, 132, 79, 62, 47, 39, 32, 30}};
  static constexpr Scales kScales = Scales::exact;
  // The shape that plan_of() takes needs 1.01 times the time of the fastest, on average of 36 products; at worst 1.08
  // times, at 12288 x 64 x 4096.
  static constexpr ManyChoice kMany[] = {
      {16, 1, 4, 1, 0.0765f, 2.46f, 0.969f},  // for 6 of 36 products
      {32, 1, 2, 2, 0.206f, 3.43f, 0.703f},   // for 4
      {32, 1, 4, 1, 0.115f, 2.77f, 1.51f},    // for 6
      {64, 1, 3, 1, 0.189f, 3.39f, 1.64f},    // for 5
      {64, 2, 1, 1, 0.399f, 3.45f, 1.43f},    // for 2
      {128, 1, 2, 1, 0.348f, 4.20f, 2.05f},   // for 13
  };
};

// Not exact, and faster: a weight and a number of x are rounded to float16. See Scales.
struct H200Rounded : H200 {
  static constexpr int64_t kManyFrom = 17;  // columns
  static constexpr Scales kScales = Scales::rounded_to_half;
  // The shape that plan_of() takes needs 1.01 times the time of the fastest, on average of 36 products; at worst 1.07
  // times, at 1024 x 256 x 4096.
  static constexpr ManyChoice kMany[] = {
      {32, 1, 3, 1, 0.0963f, 2.61f, 1.34f},   // for 12 of 36 products
      {32, 2, 2, 1, 0.178f, 3.02f, 1.56f},    // for 4
      {64, 1, 3, 1, 0.137f, 2.29f, 2.39f},    // for 4
      {64, 2, 2, 1, 0.226f, 3.18f, 2.91f},    // for 3
      {128, 2, 1, 1, 0.375f, 3.72f, 2.19f},   // for 3
      {128, 3, 1, 1, 0.497f, 7.84f, 0.367f},  // for 6
      {128, 4, 1, 1, 0.656f, 6.83f, 2.70f},   // for 4
  };
};

}  // namespace q4_gemm::policies
