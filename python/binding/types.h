// The types of elements by the names that Python has for them, and their numbers; kNone: there is no such array.
#pragma once
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <type_traits>

namespace rms_norm_binding {

using float32 = float;
using float16 = __half;
using bfloat16 = __nv_bfloat16;
enum Type { kFloat32, kFloat16, kBFloat16, kNone };
constexpr int kTypes = 3;
template <class T>
constexpr Type number_of = std::is_void_v<T>            ? kNone
                           : std::is_same_v<T, float32> ? kFloat32
                           : std::is_same_v<T, float16> ? kFloat16
                                                        : kBFloat16;

// function(0 of this type)
template <class Function>
auto with_type(Type type, const Function& function) {
  return type == kFloat32 ? function(float32{}) : type == kFloat16 ? function(float16{}) : function(bfloat16{});
}

}  // namespace rms_norm_binding
