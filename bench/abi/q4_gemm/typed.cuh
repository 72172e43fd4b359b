// Defines q4_abi.h's function: what float32.cu and its neighbours include.
#pragma once
#include <q4_gemm/q4_gemm.cuh>
#include <type_traits>

#include "q4_abi.h"

namespace q4_abi {

template <class X>
auto typed(const void* x) {
  if constexpr (std::is_same_v<X, q4_gemm::Quantized>)
    return q4_gemm::Quantized{x};
  else
    return static_cast<const X*>(x);
}

template <class X, class Y>
cudaError_t multiply(const Product& p) {
  const auto with = [&](auto policy, const auto& weights) {
    return q4_gemm::multiply<decltype(policy)>(weights, typed<X>(p.x), static_cast<Y*>(p.y), p.m, p.n, p.k, nullptr,
                                               p.options, p.stream);
  };
  if (!p.repacked) return with(q4_gemm::DefaultPolicy(), q4_gemm::Blocks{p.weights});
  if (p.rounded) return with(q4_gemm::policies::H200Rounded(), q4_gemm::Repacked{p.weights});
  return with(q4_gemm::DefaultPolicy(), q4_gemm::Repacked{p.weights});
}

}  // namespace q4_abi
