// head_taken_for_tail: 06_vectorized in which all elements outside the float4 are looked for after them. Where the row
// begins before a multiple of 16 bytes, its head is not written, and the tail goes past the end.
#pragma once

#include "parts.cuh"

namespace ladder::vector::mutants::head_taken_for_tail {

__global__ void rms_norm_kernel(const float* input, const float* weight, float* output, const float* partial_sums,
                                int64_t head, int64_t n, float eps) {
  const float rstd = parts::rstd(parts::sum_of(partial_sums, gridDim.x), n, eps);
  const int64_t inside = (n - head) / 4 * 4;
  for (int64_t i = int64_t{blockIdx.x} * parts::kBlockSize + threadIdx.x; i < n;
       i += int64_t{gridDim.x} * parts::kBlockSize) {
    const int64_t place =
        i < inside ? head + i : i;  // the fault: of the last n - inside, `head` stand at the beginning
    if (place < n) output[place] = weight == nullptr ? input[place] * rstd : input[place] * rstd * weight[place];
  }
}

inline void launch(const float* input, const float* weight, float* output, float* scratch, int64_t n, float eps,
                   cudaStream_t stream) {
  const int64_t head = std::min<int64_t>((16 - reinterpret_cast<uintptr_t>(input) % 16) % 16 / 4, n);
  const unsigned blocks = parts::blocks_of(n);
  parts::partial_sums_kernel<<<blocks, parts::kBlockSize, 0, stream>>>(input, scratch, n);
  rms_norm_kernel<<<blocks, parts::kBlockSize, 0, stream>>>(input, weight, output, scratch, head, n, eps);
}

inline const Mutant<RmsNormVector> mutant{"head_taken_for_tail", "head elements are taken for tail elements", launch,
                                          "never written), first at"};

}  // namespace ladder::vector::mutants::head_taken_for_tail
