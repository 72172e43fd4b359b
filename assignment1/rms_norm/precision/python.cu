// The stages as functions of C, for rms_norm.py. Pointers are device pointers; weight may be nullptr.
#include "01_f32/kernel.cuh"
#include "02_f32x4/kernel.cuh"
#include "03_f16_f16/kernel.cuh"
#include "04_f16x2_f16/kernel.cuh"
#include "05_f16x8_f16/kernel.cuh"
#include "06_f16x8_f32/kernel.cuh"
#include "07_f16x8_pack_f16/kernel.cuh"
#include "08_f16x8_pack_f32/kernel.cuh"
#include "09_f16_f32/kernel.cuh"
#include "10_bf16_bf16/kernel.cuh"
#include "11_bf16x8_pack_f32/kernel.cuh"
#include "common/python_call.h"

namespace {

using namespace ladder::precision;

// The launch's error, 0 if there is none.
template <class T>
int call(void (*launch)(const T*, const T*, T*, int64_t, int64_t, float, cudaStream_t), const void* x,
         const void* weight, void* y, int64_t rows, int64_t cols, float eps, void* stream) {
  const size_t bytes = static_cast<size_t>(rows * cols) * sizeof(T);
  const ladder::Lent lent_x(x, bytes), lent_y(y, bytes), lent_weight(weight, static_cast<size_t>(cols) * sizeof(T));
  launch(static_cast<const T*>(x), static_cast<const T*>(weight), static_cast<T*>(y), rows, cols, eps,
         static_cast<cudaStream_t>(stream));
  return cudaGetLastError();
}

}  // namespace

#define KERNEL(name)                                                                                     \
  extern "C" __attribute__((visibility("default"))) int rms_norm_##name(                                 \
      const void* x, const void* weight, void* y, int64_t rows, int64_t cols, float eps, void* stream) { \
    return call(name::launch, x, weight, y, rows, cols, eps, stream);                                    \
  }

KERNEL(f32)
KERNEL(f32x4)
KERNEL(f16_f16)
KERNEL(f16x2_f16)
KERNEL(f16x8_f16)
KERNEL(f16x8_f32)
KERNEL(f16x8_pack_f16)
KERNEL(f16x8_pack_f32)
KERNEL(f16_f32)
KERNEL(bf16_bf16)
KERNEL(bf16x8_pack_f32)
