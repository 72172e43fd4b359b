// int4_load_of_activations: the line that the document has in its plans, int4 u_vec = *reinterpret_cast<const
// int4*>(&bq8->qs[0]). A block of 36 bytes is aligned to 4, and its numbers begin at byte 4: one block in four is at a
// right address.
#pragma once

#include "parts.cuh"

namespace ladder::q4_gemm::mutants::int4_load_of_activations {

struct Term {
  __device__ static float of(const block_q4_0* w, const block_q8_1* x, int64_t b) {
    __shared__ int4 staged[parts::kBlockSize][2];
    for (int part = 0; part < 2; ++part) {
      const int4 u_vec = *reinterpret_cast<const int4*>(&x[b].qs[16 * part]);  // the fault
      staged[threadIdx.x][part] = u_vec;
    }
    const auto* numbers = reinterpret_cast<const int8_t*>(staged[threadIdx.x]);
    int sum = 0;
    for (int i = 0; i < kBlock; ++i) sum += (parts::bits_of(w[b], i) - 8) * numbers[i];
    return parts::scale(w[b], x[b]) * static_cast<float>(sum);
  }
};

inline const Mutant<Q4GemmBlocks> mutant{"int4_load_of_activations",
                                         "16 activations are loaded at an address that is aligned to 4",
                                         parts::launch<Term>, "misaligned address"};

}  // namespace ladder::q4_gemm::mutants::int4_load_of_activations
