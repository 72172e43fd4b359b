// The policy of one GPU. Chosen by hand: its rows have not been measured against others yet.
#pragma once

#include "../choice.cuh"

namespace q4_gemm::policies {

struct H200 {
  static constexpr FewChoice kFew[] = {
      {1, kAnySize, 1, 4, 6, 1, 1, 2},
      {8, kAnySize, 1, 4, 6, 8, 1, 2},
      {kAnySize, kAnySize, 4, 1, 6, 16, 1, 8},
  };
};

}  // namespace q4_gemm::policies
