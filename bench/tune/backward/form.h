// The candidates of make tune S=backward: forms of the gradients, in bfloat16.
#pragma once
#include <cuda_bf16.h>
#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace tune {

using bf16 = __nv_bfloat16;

// As in rms_norm::FewRows. parts = 0: blocks have whole rows, and a multiprocessor has `rows` times eight warps.
struct Form {
  int parts, rows, rows_of_thread;
};

// Rows without gaps, one after the other, on the device. rstd: as the forward pass has stored it, or nullptr.
struct Tensors {
  const bf16 *dy, *x, *weight;
  const float* rstd;
  bf16 *dx, *dweight;
  void* workspace;
  int64_t rows, cols;
};

size_t workspace_bytes(int64_t rows, int64_t cols);
cudaError_t launch(const Form& form, const Tensors& tensors, bool dependent, cudaStream_t stream);

}  // namespace tune
