// The header's functions without their types: what binding.cpp calls, and each instance defines.
#pragma once
#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace rms_norm_binding {

enum Type { kFloat32, kFloat16, kBFloat16, kNone };  // kNone: there is no residual
constexpr int kTypes = 3;

// A tensor of the call, and the layout of its rows as the header has it.
struct Rows {
  void* data = nullptr;
  int64_t stride = 0, heads = 1, head_stride = 0;
};

struct Call {
  Rows x, residual, residual_out, y;
  const void* weight = nullptr;
  int64_t rows = 0, cols = 0;
  float eps = 0, weight_offset = 0;
  bool llama = false, dependent_launch = false;
  int cache = 0;
  void* workspace = nullptr;
};

struct Instance {
  const char* (*explain)(const Call&) = nullptr;
  cudaError_t (*run)(const Call&, cudaStream_t) = nullptr;
};

// Where an instance of these types stands; its functions are nullptr if it is not compiled.
Instance& instance(Type x, Type residual, Type weight, Type y);

// The gradients, which are compiled for all types; without a weight, `weight` is any of them.
struct BackwardCall {
  Rows dy, dsum, x, dx;  // dsum.data may be nullptr
  const void* weight = nullptr;
  void *dweight = nullptr, *workspace = nullptr;
  int64_t rows = 0, cols = 0;
  float eps = 0, weight_offset = 0;
};
struct BackwardInstance {
  const char* (*explain)(const BackwardCall&);
  cudaError_t (*run)(const BackwardCall&, cudaStream_t);
};
const BackwardInstance& backward_instance(Type x, Type weight, Type y);
size_t backward_workspace_bytes(int64_t rows, int64_t cols);

// Bytes of a row of x from which on a workspace may be of use, the size of one, and what prepares it.
extern const int64_t kLongRowBytes;
extern const size_t kWorkspaceBytes;

}  // namespace rms_norm_binding
