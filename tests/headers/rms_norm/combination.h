// The header's functions without their types: what the tests call, and which types there are.
#pragma once
#include <cuda_runtime_api.h>

#include <string>
#include <vector>

#include "common/operators/typed_rms_norm.h"
#include "common/tensor.h"

namespace header_test {

using ladder::Layout;
using ladder::Type;

// rms_norm::Options, with the same members.
struct Options {
  float eps = 1e-6f;
  float weight_offset = 0.0f;
  bool llama = false;
  bool dependent_launch = false;
  void* workspace = nullptr;
  int cache = 0;  // rms_norm::Cache
  bool batch_invariant = false;
};

// The arguments of forward, or with a residual those of fused_add_rms_norm.
struct Call {
  const void* x = nullptr;
  const void* residual = nullptr;
  void* residual_out = nullptr;
  const void* weight = nullptr;
  void* y = nullptr;
  Layout x_layout{1}, residual_layout{1}, residual_out_layout{1}, y_layout{1};
  int64_t rows = 0, cols = 0;
  Options options;
};

// One instance of the header's templates.
struct Combination {
  ladder::TypedRmsNorm::Types types;
  cudaError_t (*run)(const Call&, cudaStream_t);
  const char* (*explain)(const Call&);

  bool adds() const { return types.residual.has_value(); }
  Type residual() const { return types.residual.value_or(types.x); }
  bool uniform() const { return types.x == types.weight && types.x == types.y && types.x == residual(); }
  std::string name() const;  // "bfloat16 fused_add", "bfloat16 forward, float32 weight"
};

// Each .cu file adds its own.
std::vector<Combination>& combinations();
size_t workspace_bytes();  // kWorkspaceBytes of the header

}  // namespace header_test
