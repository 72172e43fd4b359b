// The policy of one GPU. kFew is chosen by hand: its rows have not been measured against others yet. The times of kMany
// are of single runs.
#pragma once

#include "../choice.cuh"

namespace q4_gemm::policies {

struct H200 {
  static constexpr FewChoice kFew[] = {
      {1, kAnySize, 2, 16, 6, 1, 1, 1},
      {8, kAnySize, 4, 8, 4, 8, 1, 2},
      {kAnySize, kAnySize, 16, 2, 6, 16, 1, 8},
  };

  static constexpr Scales kScales = Scales::exact;
  static constexpr int64_t kManyFrom = 17;  // columns
  // Of 1 to 8 blocks, if a multiprocessor has one block, or two.
  static constexpr int kClusters[2][8] = {{132, 66, 39, 30, 22, 17, 15, 15}, {264, 132, 79, 62, 47, 39, 32, 30}};
  static constexpr ManyChoice kMany[] = {{16, 1, 4, 1, 0.14f}, {64, 1, 4, 1, 0.26f}, {64, 2, 1, 2, 0.5f}};
};

// Not exact, and faster: a weight and a number of x are rounded to float16. See Scales.
struct H200Rounded : H200 {
  static constexpr Scales kScales = Scales::rounded_to_half;
  static constexpr ManyChoice kMany[] = {
      {32, 1, 4, 1, 0.14f}, {64, 2, 2, 1, 0.3f}, {128, 4, 1, 1, 0.855f}, {128, 2, 2, 1, 0.45f}};
};

}  // namespace q4_gemm::policies
