// The header's functions without their types: what the tests call, and which types there are.
#pragma once
#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace header_test {

enum class Type { none, float32, float16, bfloat16 };

inline size_t size_of(Type type) { return type == Type::float32 ? 4 : type == Type::none ? 0 : 2; }
inline const char* name_of(Type type) {
  constexpr const char* names[] = {"none", "float32", "float16", "bfloat16"};
  return names[static_cast<int>(type)];
}

// rms_norm::Layout and rms_norm::Options, with the same members.
struct Layout {
  int64_t stride;
  int64_t heads = 1;
  int64_t head_stride = 0;
};
struct Options {
  float eps = 1e-6f;
  float weight_offset = 0.0f;
  bool llama = false;
  bool dependent_launch = false;
  void* workspace = nullptr;
};

// The arguments of forward, and with a residual those of forward_add.
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
  Type x, r, w, y;  // r is none for forward
  cudaError_t (*run)(const Call&, cudaStream_t);
  bool adds() const { return r != Type::none; }
  Type kept() const { return adds() ? r : x; }  // what is normalized
  bool uniform() const { return x == w && x == y && (!adds() || x == r); }
  std::string name() const;  // "bfloat16 forward_add", "bfloat16 forward, float32 weight"
};

// Each .cu file adds its own.
std::vector<Combination>& combinations();
size_t workspace_bytes();  // kWorkspaceBytes of the header

}  // namespace header_test
