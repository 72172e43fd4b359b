// The policy of one GPU. kFew is chosen by hand: its rows have not been measured against others yet. The times of kMany
// are of single runs.
#pragma once

#include "../choice.cuh"

namespace q4_gemm::policies {

struct H200 {
  static constexpr FewChoice kFew[] = {
      {1, kAnySize, 1, 4, 6, 1, 1, 2},
      {8, kAnySize, 1, 4, 6, 8, 1, 2},
      {kAnySize, kAnySize, 4, 1, 6, 16, 1, 8},
  };

  static constexpr Scales kScales = Scales::exact;
  static constexpr int64_t kManyFrom = 17;               // columns
  static constexpr int kClusters[] = {132, 66, 30, 15};  // of 1, 2, 4 and 8 blocks, one block a multiprocessor
  static constexpr ManyChoice kMany[] = {{32, 2, 2, 0.75f}, {64, 4, 1, 1.0f}, {64, 1, 2, 0.65f}};
};

// Not exact, and faster: a weight and a number of x are rounded to float16. See Scales.
struct H200Rounded : H200 {
  static constexpr Scales kScales = Scales::rounded_to_half;
  static constexpr ManyChoice kMany[] = {
      {32, 4, 1, 0.6f}, {64, 4, 1, 0.7f}, {64, 1, 2, 0.41f}, {128, 4, 1, 0.855f}, {128, 2, 1, 0.55f}};
};

}  // namespace q4_gemm::policies
