// The policies of one GPU, as make tune S=q4_gemm wrote them.
#pragma once

#include "../choice.cuh"

namespace q4_gemm::policies {

struct H200 {
  // Measured by make tune S=q4_gemm: NVIDIA H200, CUDA 13.0, 2026-11-23. All of it is in
  // profiling_results/h200/q4_gemm/tune.csv.
  static constexpr FewChoice kFew[] = {
      {1, 8388608, 2, 16, 4, 1, 1, 2},           // 4.2 million weights: 3.83 us, fastest 3.81
      {1, 54364393, 2, 16, 4, 1, 1, 1},          // 50.3 million weights: 10.53 us, fastest 10.53
      {1, 191163198, 4, 8, 6, 1, 1, 2},          // 58.7 million weights: 10.78 us, fastest 10.78
      {1, kAnySize, 4, 8, 6, 1, 1, 1},           // 622.3 million weights: 80.25 us, fastest 80.25
      {2, 8388608, 2, 8, 6, 8, 2, 2},            // 4.2 million weights: 4.58 us, fastest 4.58
      {2, 191163198, 2, 16, 3, 8, 1, 1},         // 58.7 million weights: 11.86 us, fastest 11.85
      {8, 8388608, 2, 16, 3, 8, 1, 2},           // 4.2 million weights: 5.25 us, fastest 5.24
      {8, 54364393, 2, 16, 3, 8, 1, 1},          // 50.3 million weights: 12.59 us, fastest 12.59
      {8, 191163198, 4, 8, 4, 8, 2, 2},          // 58.7 million weights: 13.01 us, fastest 13.01
      {8, kAnySize, 2, 8, 6, 8, 2, 1},           // 622.3 million weights: 87.81 us, fastest 87.45
      {16, 8388608, 2, 8, 6, 16, 2, 2},          // 4.2 million weights: 6.19 us, fastest 6.19
      {16, 29058990, 2, 8, 6, 16, 2, 1},         // 16.8 million weights: 8.78 us, fastest 8.78
      {16, 54364393, 4, 4, 6, 16, 2, 2},         // 50.3 million weights: 17.20 us, fastest 17.20
      {16, 191163198, 4, 8, 3, 16, 1, 2},        // 58.7 million weights: 17.85 us, fastest 17.85
      {16, kAnySize, 8, 4, 4, 16, 1, 1},         // 622.3 million weights: 115.71 us, fastest 115.71
      {kAnySize, 8388608, 2, 8, 6, 16, 2, 2},    // 4.2 million weights: 6.67 us, fastest 6.67
      {kAnySize, 29058990, 4, 8, 3, 16, 1, 1},   // 16.8 million weights: 11.23 us, fastest 11.23
      {kAnySize, 191163198, 8, 4, 4, 16, 1, 2},  // 58.7 million weights: 26.40 us, fastest 26.40
      {kAnySize, kAnySize, 16, 2, 4, 16, 1, 1},  // 622.3 million weights: 211.88 us, fastest 211.88
  };
  static constexpr int64_t kManyFrom = 17;  // columns
  // Of 1 to 8 blocks, if a multiprocessor has one block, or two.
  static constexpr int kClusters[2][8] = {{132, 66, 39, 30, 22, 17, 15, 15}, {264, 132, 79, 62, 47, 39, 32, 30}};
  static constexpr Scales kScales = Scales::exact;
  // The shape that plan_of() takes needs 1.01 times the time of the fastest, on average of 36 products; at worst 1.10
  // times, at 12288 x 64 x 4096.
  static constexpr ManyChoice kMany[] = {
      {16, 1, 4, 1, 0.0925f, 3.68f},  // for 3 of 36 products
      {32, 1, 2, 2, 0.231f, 4.55f},   // for 6
      {32, 1, 4, 1, 0.130f, 4.77f},   // for 7
      {64, 1, 2, 2, 0.399f, 6.28f},   // for 2
      {64, 1, 3, 1, 0.206f, 5.56f},   // for 5
      {128, 1, 2, 1, 0.363f, 7.21f},  // for 8
      {128, 2, 1, 1, 0.770f, 8.67f},  // for 5
  };
};

// Not exact, and faster: a weight and a number of x are rounded to float16. See Scales.
struct H200Rounded : H200 {
  static constexpr Scales kScales = Scales::rounded_to_half;
  // The shape that plan_of() takes needs 1.00 times the time of the fastest, on average of 36 products; at worst 1.02
  // times, at 4096 x 128 x 4096.
  static constexpr ManyChoice kMany[] = {
      {32, 1, 4, 1, 0.113f, 4.76f},   // for 10 of 36 products
      {32, 2, 2, 1, 0.232f, 5.21f},   // for 4
      {64, 1, 4, 1, 0.172f, 5.72f},   // for 4
      {64, 2, 2, 1, 0.265f, 6.89f},   // for 6
      {128, 2, 2, 1, 0.427f, 9.23f},  // for 4
      {128, 3, 1, 1, 0.628f, 8.87f},  // for 4
      {128, 4, 1, 1, 0.847f, 9.53f},  // for 4
  };
};

}  // namespace q4_gemm::policies
