// Which shape of kernel a product gets.
//
// A policy is a type with five members, measured on one GPU by `make tune S=q4_gemm`, which writes it to
// policies/<gpu>.cuh; choice.cuh explains their types:
//
//   kFew         the shapes for few columns: the first row that takes a product counts, and the last row takes all
//   kManyFrom    the number of columns, 17 at least, from which on kMany counts, if the GPU has wgmma and the call a
//                workspace
//   kMany        the shapes for many columns, of which the one counts that should take the least time
//   kClusters    how many clusters of 1 to 8 blocks run at the same time, if a multiprocessor has one block, or two
//   kScales      where the kernels of kMany multiply the scales in
//
// DefaultPolicy is the one of an H200, but for kFew on an H100, which has its own. A program for other GPUs includes
// their policies and chooses at run time: multiply<MyPolicy>(…).
#pragma once

#include <type_traits>

#include "choice.cuh"
#include "policies/h100.cuh"
#include "policies/h200.cuh"

namespace q4_gemm {

struct DefaultPolicy : policies::H200 {};

namespace detail {

// The policy of kFew where query_h100() says so.
template <class Policy>
using PolicyOfH100 = std::conditional_t<std::is_same_v<Policy, DefaultPolicy>, policies::H100, Policy>;

}  // namespace detail
}  // namespace q4_gemm
