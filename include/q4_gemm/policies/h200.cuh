// The policies of one GPU, as make tune S=q4_gemm wrote them.
#pragma once

#include "../choice.cuh"

namespace q4_gemm::policies {

struct H200 {
  // Measured by make tune S=q4_gemm: NVIDIA H200, CUDA 13.0, 2026-11-25. All of it is in
  // profiling_results/h200/q4_gemm/tune.csv.
  static constexpr FewChoice kFew[] = {
      {1, 2048, kAnySize, 2, 2, 8, 8, 1, 2, false, 2},               // 1024 x 4096: 2.52 us, fastest 2.52
      {1, 2048, kAnySize, 2, 2, 16, 6, 1, 1, false, 1},              // 1024 x 4096: 2.99 us, fastest 2.52
      {1, 7094, 7094, 4, 4, 8, 4, 1, 2, false, 2},                   // 4096 x 4096: 3.47 us, fastest 3.47
      {1, 7094, 7094, 2, 2, 8, 9, 1, 2, false, 1},                   // 4096 x 4096: 3.64 us, fastest 3.47
      {1, 7094, 13272, 4, 4, 16, 4, 1, 1, false, 2},                 // 4096 x 12288: 7.91 us, fastest 7.91
      {1, 7094, kAnySize, 4, 4, 16, 5, 1, 1, false, 2},              // 4096 x 14336: 8.79 us, fastest 8.79
      {1, 7094, kAnySize, 2, 2, 16, 6, 1, 1, false, 1},              // 4096 x 14336: 9.85 us, fastest 8.79
      {1, 43208, kAnySize, 4, 4, 16, 4, 1, 1, false, 1},             // 12288 x 4096: 7.48 us, fastest 7.48
      {1, kAnySize, kAnySize, 4, 4, 8, 4, 1, 2, false, 1},           // 151936 x 4096: 78.40 us, fastest 78.24
      {2, 2048, kAnySize, 4, 4, 8, 3, 8, 2, false, 4},               // 1024 x 4096: 2.95 us, fastest 2.95
      {2, 2048, kAnySize, 2, 2, 16, 4, 8, 1, false, 1},              // 1024 x 4096: 4.03 us, fastest 2.95
      {2, 7094, 7094, 2, 2, 16, 3, 8, 1, false, 1},                  // 4096 x 4096: 4.46 us, fastest 4.46
      {2, 7094, 13272, 4, 4, 12, 3, 8, 1, true, 2},                  // 4096 x 12288: 9.23 us, fastest 9.23
      {2, 43208, kAnySize, 4, 4, 8, 5, 8, 1, true, 2},               // 12288 x 4096: 8.81 us, fastest 8.75
      {2, 43208, kAnySize, 2, 2, 16, 4, 8, 1, false, 1},             // 12288 x 4096: 8.75 us, fastest 8.75
      {4, 2048, kAnySize, 4, 4, 8, 3, 8, 1, true, 4},                // 1024 x 4096: 3.29 us, fastest 3.29
      {4, 7094, 7094, 4, 4, 8, 3, 8, 1, true, 2},                    // 4096 x 4096: 4.78 us, fastest 4.78
      {4, 7094, 7094, 2, 2, 16, 4, 8, 1, false, 1},                  // 4096 x 4096: 4.89 us, fastest 4.78
      {8, 2048, kAnySize, 4, 4, 12, 3, 8, 1, true, 4},               // 1024 x 4096: 3.76 us, fastest 3.76
      {8, 2048, kAnySize, 2, 2, 8, 4, 8, 2, true, 1},                // 1024 x 4096: 4.53 us, fastest 3.76
      {8, 7094, 7094, 4, 4, 8, 3, 8, 1, true, 2},                    // 4096 x 4096: 5.51 us, fastest 5.51
      {8, 7094, 7094, 4, 4, 12, 3, 8, 1, true, 1},                   // 4096 x 4096: 5.65 us, fastest 5.51
      {8, 7094, 13272, 2, 2, 8, 4, 8, 2, true, 2},                   // 4096 x 12288: 9.89 us, fastest 9.89
      {8, 7094, 13272, 2, 2, 16, 4, 8, 1, false, 1},                 // 4096 x 12288: 11.41 us, fastest 9.89
      {8, 7094, kAnySize, 2, 2, 8, 4, 8, 2, true, 2},                // 4096 x 14336: 10.88 us, fastest 10.88
      {8, 7094, kAnySize, 2, 2, 16, 3, 8, 1, false, 1},              // 4096 x 14336: 13.07 us, fastest 10.88
      {8, kAnySize, kAnySize, 8, 4, 8, 3, 8, 1, true, 1},            // 151936 x 4096: 86.73 us, fastest 86.10
      {16, 2048, kAnySize, 4, 4, 12, 3, 16, 1, true, 4},             // 1024 x 4096: 4.72 us, fastest 4.72
      {16, 2048, kAnySize, 2, 2, 8, 3, 16, 2, true, 1},              // 1024 x 4096: 5.35 us, fastest 4.72
      {16, 7094, kAnySize, 4, 4, 8, 3, 16, 1, true, 2},              // 4096 x 14336: 12.53 us, fastest 12.53
      {16, 7094, kAnySize, 4, 4, 12, 3, 16, 1, true, 1},             // 4096 x 14336: 18.43 us, fastest 12.53
      {16, 43208, kAnySize, 4, 4, 4, 3, 16, 2, true, 1},             // 12288 x 4096: 12.52 us, fastest 12.52
      {16, kAnySize, kAnySize, 8, 2, 4, 4, 16, 1, false, 1},         // 151936 x 4096: 102.64 us, fastest 102.64
      {kAnySize, 2048, kAnySize, 4, 4, 12, 3, 16, 1, true, 2},       // 1024 x 4096: 5.63 us, fastest 5.63
      {kAnySize, 2048, kAnySize, 2, 2, 8, 6, 16, 2, false, 1},       // 1024 x 4096: 7.06 us, fastest 5.63
      {kAnySize, 7094, 7094, 4, 4, 8, 3, 16, 1, true, 1},            // 4096 x 4096: 8.35 us, fastest 8.35
      {kAnySize, 43208, kAnySize, 4, 4, 12, 3, 16, 1, true, 1},      // 12288 x 4096: 20.28 us, fastest 20.28
      {kAnySize, kAnySize, kAnySize, 16, 2, 2, 4, 16, 1, false, 1},  // 151936 x 4096: 186.14 us, fastest 186.14
  };
  static constexpr int64_t kManyFrom = 32;  // columns
  // Of 1 to 8 blocks, if a multiprocessor has one block, or two.
  static constexpr int kClusters[2][8] = {{132, 66, 39, 30, 22, 17, 15, 15}, {264, 132, 79, 62, 47, 39, 32, 30}};
  static constexpr Scales kScales = Scales::exact;
  // The shape that plan_of() takes needs 1.00 times the time of the fastest, on average of 36 products; at worst 1.08
  // times, at 12288 x 64 x 4096.
  static constexpr ManyChoice kMany[] = {
      {16, 1, 4, 1, 0.0763f, 2.48f, 0.950f},  // for 6 of 36 products
      {32, 1, 2, 2, 0.205f, 3.47f, 0.686f},   // for 4
      {32, 1, 4, 1, 0.115f, 2.79f, 1.50f},    // for 6
      {64, 1, 3, 1, 0.189f, 3.41f, 1.63f},    // for 5
      {64, 2, 1, 1, 0.398f, 3.52f, 1.38f},    // for 2
      {128, 1, 1, 2, 0.705f, 4.44f, 1.71f},   // for 7
      {128, 1, 2, 1, 0.348f, 4.29f, 1.97f},   // for 6
  };
};

// Not exact, and faster: a weight and a number of x are rounded to float16. See Scales.
struct H200Rounded : H200 {
  static constexpr int64_t kManyFrom = 17;  // columns
  static constexpr Scales kScales = Scales::rounded_to_half;
  // The shape that plan_of() takes needs 1.01 times the time of the fastest, on average of 36 products; at worst 1.06
  // times, at 1024 x 128 x 4096.
  static constexpr ManyChoice kMany[] = {
      {32, 1, 3, 1, 0.0961f, 2.62f, 1.33f},   // for 10 of 36 products
      {32, 1, 4, 1, 0.0933f, 2.61f, 1.72f},   // for 2
      {32, 2, 2, 1, 0.178f, 2.97f, 1.59f},    // for 4
      {64, 1, 3, 1, 0.137f, 2.32f, 2.36f},    // for 4
      {64, 2, 2, 1, 0.225f, 3.34f, 2.81f},    // for 3
      {128, 2, 1, 1, 0.374f, 3.81f, 2.13f},   // for 3
      {128, 3, 1, 1, 0.498f, 7.75f, 0.480f},  // for 6
      {128, 4, 1, 1, 0.668f, 6.39f, 3.11f},   // for 4
  };
};

}  // namespace q4_gemm::policies
