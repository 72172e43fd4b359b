// int4_load_of_weights: 16 bytes of weights at once. The 4-bit numbers of block b begin at byte 18 b + 2, so one block
// in eight is at a right address, and the others are not.
#pragma once

#include "parts.cuh"

namespace ladder::q4_gemm::mutants::int4_load_of_weights {

struct Term {
  __device__ static float of(const block_q4_0* w, const block_q8_1* x, int64_t b) {
    __shared__ int4 staged[parts::kBlockSize];
    staged[threadIdx.x] = *reinterpret_cast<const int4*>(w[b].qs);  // the fault
    const auto* words = reinterpret_cast<const uint32_t*>(&staged[threadIdx.x]);
    const uint32_t qs[4] = {words[0], words[1], words[2], words[3]};
    const int sum = dot_of_16(qs, reinterpret_cast<const int*>(x[b].qs));
    return parts::scale(w[b], x[b]) / 16.0f * static_cast<float>(sum);
  }
};

inline const Mutant<Q4GemmBlocks> mutant{"int4_load_of_weights",
                                         "16 bytes are loaded at an address that is aligned to 2", parts::launch<Term>,
                                         "misaligned address"};

}  // namespace ladder::q4_gemm::mutants::int4_load_of_weights
