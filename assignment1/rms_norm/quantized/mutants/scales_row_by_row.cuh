// scales_row_by_row: scales[row][block], where products with block scales read scales[block][row].
#pragma once

#include "parts.cuh"

namespace ladder::quantized::mutants::scales_row_by_row {

struct Body : parts::Right {
  static __device__ int64_t place(const QuantizedCall& c, int64_t block) {
    return blockIdx.x * ((c.cols + kBlockColumns - 1) / kBlockColumns) + block;  // the fault: block · rows + row
  }
};

inline const Mutant<RmsNormQuantized> mutant{"scales_row_by_row", "scales of blocks lie row by row",
                                             parts::launch<Body>, "scales: "};

}  // namespace ladder::quantized::mutants::scales_row_by_row
