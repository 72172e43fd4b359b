// vector_at_odd_address: the second pass as the document prints it. It converts every address to that of eight
// elements, also where a stride or a pointer is no multiple of 16 bytes.
#pragma once

#include "parts.cuh"

namespace ladder::serving::mutants::vector_at_odd_address {

struct Body {
  template <class scalar_t>
  static __device__ void run(scalar_t* out, const scalar_t* input, int64_t input_stride, const scalar_t* weight,
                             float epsilon, int64_t hidden_size) {
    const scalar_t* row = input + blockIdx.x * input_stride;
    scalar_t* out_row = out + blockIdx.x * hidden_size;
    const float scale = parts::row_scale(sum_of_squares(row, hidden_size), hidden_size, epsilon);
    const int64_t end = hidden_size / kVecSize * kVecSize;
    for (int64_t idx = threadIdx.x * kVecSize; idx < end; idx += blockDim.x * kVecSize) {
      vec_n_t<scalar_t> vec = load_vec(row + idx);  // the fault
      for (int i = 0; i < kVecSize; ++i) vec.val[i] = times_weight(to_float(vec.val[i]) * scale, weight[idx + i]);
      store_vec(out_row + idx, vec);
    }
    parts::normalize(row + end, weight + end, out_row + end, hidden_size - end, scale);
  }
};

inline const Mutant<RmsNormServing> mutant{"vector_at_odd_address", "accesses of 16 bytes to unaligned addresses",
                                           parts::launch<Body>, "cudaErrorMisalignedAddress"};

}  // namespace ladder::serving::mutants::vector_at_odd_address
