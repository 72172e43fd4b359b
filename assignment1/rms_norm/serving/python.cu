// The document's functions before and after its changes as functions of C, for layernorm.py. Pointers are device
// pointers; rows of input begin input_stride elements apart, those of out and residual have no gaps.
#include "03_vectorized/kernel.cuh"
#include "06_unrolled/kernel.cuh"
#include "07_generic/kernel.cuh"
#include "common/python_call.h"
#include "controls/form.cuh"

namespace {

using namespace ladder;
using serving::controls::Second;
using serving::controls::Sum;

// The launch's error, 0 if there is none. A residual chooses fused_add_rms_norm, for which out is input.
int call(const ServingCall& call, bool before, cudaStream_t stream) {
  const size_t size = call.dtype == Dtype::float32 ? 4 : 2;
  const size_t dense = static_cast<size_t>(call.num_tokens * call.hidden_size) * size;
  const int64_t strided = call.num_tokens == 0 ? 0 : (call.num_tokens - 1) * call.input_stride + call.hidden_size;
  const Lent out(call.out == call.input ? nullptr : call.out, dense), residual(call.residual, dense);
  const Lent input(call.input, static_cast<size_t>(strided) * size);
  const Lent weight(call.weight, static_cast<size_t>(call.hidden_size) * size);
  if (call.residual == nullptr) {
    before ? serving::controls::launch<Sum::cub, Second::scalar>(call, stream)
           : serving::vectorized::launch(call, stream);
  } else if (before) {
    serving::controls::launch_fused<Sum::cub>(call, stream);
  } else {
    (call.dtype == Dtype::float32 ? serving::generic::launch : serving::unrolled::launch)(call, stream);
  }
  return cudaGetLastError();
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int serving_norm(void* out, void* input, int64_t input_stride,
                                                                   void* residual, const void* weight, float epsilon,
                                                                   int64_t num_tokens, int64_t hidden_size, int dtype,
                                                                   int before, void* stream) {
  return call({out, input, input_stride, residual, weight, epsilon, num_tokens, hidden_size, static_cast<Dtype>(dtype)},
              before != 0, static_cast<cudaStream_t>(stream));
}
