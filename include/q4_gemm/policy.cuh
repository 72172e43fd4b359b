// Which shape of kernel a product gets.
//
// A policy is a type with a table kFew of FewChoice, measured on one GPU. The first row that takes a product counts,
// and the last row takes all. DefaultPolicy is the one of an H200. A program for several GPUs writes a policy for each
// and chooses at run time: multiply<MyPolicy>(…).
#pragma once

#include "choice.cuh"
#include "policies/h200.cuh"

namespace q4_gemm {

using DefaultPolicy = policies::H200;

}  // namespace q4_gemm
