// 16 bytes of a row, loaded and stored in one piece, and the four or eight numbers in them.
#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime.h>

namespace ladder::vector {

// How many elements of type T a pack has.
template <class T>
constexpr int kPack = 16 / sizeof(T);

__device__ inline void unpack(uint4 pack, float (&to)[4]) {
  to[0] = __uint_as_float(pack.x), to[1] = __uint_as_float(pack.y);
  to[2] = __uint_as_float(pack.z), to[3] = __uint_as_float(pack.w);
}
__device__ inline uint4 packed(const float (&from)[4]) {
  return make_uint4(__float_as_uint(from[0]), __float_as_uint(from[1]), __float_as_uint(from[2]),
                    __float_as_uint(from[3]));
}

// A bfloat16 is the upper half of a float.
__device__ inline void unpack(uint4 pack, float (&to)[8]) {
  const unsigned pairs[] = {pack.x, pack.y, pack.z, pack.w};
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    to[2 * i] = __uint_as_float(pairs[i] << 16);
    to[2 * i + 1] = __uint_as_float(pairs[i] & 0xffff0000u);
  }
}
__device__ inline uint4 packed(const float (&from)[8]) {
  unsigned pairs[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const __nv_bfloat162 pair = __floats2bfloat162_rn(from[2 * i], from[2 * i + 1]);
    pairs[i] = *reinterpret_cast<const unsigned*>(&pair);
  }
  return make_uint4(pairs[0], pairs[1], pairs[2], pairs[3]);
}

// The sum of the squares of a pack's elements of type T.
template <class T>
__device__ float sum_of_squares(uint4 pack) {
  float x[kPack<T>], sum = 0.0f;
  unpack(pack, x);
#pragma unroll
  for (const float value : x) sum += value * value;
  return sum;
}
template <class T>
__device__ uint4 scaled(uint4 pack, float rstd, uint4 weight) {
  float x[kPack<T>], w[kPack<T>];
  unpack(pack, x);
  unpack(weight, w);
#pragma unroll
  for (int k = 0; k < kPack<T>; ++k) x[k] = x[k] * rstd * w[k];
  return packed(x);
}
// A weight of ones.
template <class T>
__device__ uint4 ones() {
  float one[kPack<T>];
#pragma unroll
  for (float& value : one) value = 1.0f;
  return packed(one);
}

__device__ inline float element(const float* at) { return *at; }
__device__ inline float element(const __nv_bfloat16* at) { return __bfloat162float(*at); }
__device__ inline void set_element(float* at, float value) { *at = value; }
__device__ inline void set_element(__nv_bfloat16* at, float value) { *at = __float2bfloat16_rn(value); }

}  // namespace ladder::vector
