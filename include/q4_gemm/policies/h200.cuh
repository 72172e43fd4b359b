// The policy of one GPU.
#pragma once

#include "../choice.cuh"

namespace q4_gemm::policies {

struct H200 {
  static constexpr FewChoice kFew[] = {
      {8, 8 << 20, 1, 4, 10, 1, 8},
      {8, kAnySize, 4, 1, 10, 1, 8},
      {kAnySize, kAnySize, 4, 1, 10, 2, 8},
  };
};

}  // namespace q4_gemm::policies
