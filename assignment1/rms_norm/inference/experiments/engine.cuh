// What engine.h declares. It includes the stages, so one file of a program includes it.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>

#include "assignment1/rms_norm/inference/01_before_f32/kernel.cuh"
#include "assignment1/rms_norm/inference/06_block_dim/kernel.cuh"
#include "assignment1/rms_norm/inference/07_before_fp16w/kernel.cuh"
#include "assignment1/rms_norm/inference/08_weight_64_bit/kernel.cuh"
#include "assignment1/rms_norm/inference/09_before_pure_fp16/kernel.cuh"
#include "assignment1/rms_norm/inference/10_loads_128_bit/kernel.cuh"
#include "assignment1/rms_norm/inference/experiments/engine.h"
#include "common/cuda_check.h"
#include "common/parallel.h"
#include "common/text.h"

namespace ladder::inference {

int64_t EngineTensor::rows() const {
  int64_t all = 1;
  for (size_t i = 0; i + 1 < dims.size(); ++i) all *= dims[i];
  return all;
}

namespace {

enum class Path { f32, f32_fp16w, pure_fp16 };
constexpr const char* kNames[] = {"row_rmsnorm_f32", "row_rmsnorm_f32_fp16w", "row_rmsnorm_pure_fp16"};

std::string dims_text(const EngineTensor& tensor) {
  std::string all;
  for (const int64_t length : tensor.dims)
    all += (all.empty() ? "" : " x ") + text("%lld", static_cast<long long>(length));
  return "[" + all + "]";
}

bool overlap(const EngineTensor& a, const EngineTensor& b) {
  const auto bytes = [](const EngineTensor& t) { return t.rows() * t.cols() * size_of(t.type); };
  const auto *first = static_cast<const char*>(a.data), *second = static_cast<const char*>(b.data);
  return first < second + bytes(b) && second < first + bytes(a);
}

void require(bool holds, const std::string& sentence) {
  if (!holds) throw NotServed(sentence);
}

// The types and ranks of the document's section 3.1, and what its kernels take for granted.
Path path_of(bool dim, DeviceType device, const EngineTensor& input, const EngineTensor& weight,
             const EngineTensor& output) {
  const EngineTensor* const tensors[] = {&input, &weight, &output};
  const char* const names[] = {"input", "weight", "output"};
  for (int i = 0; i < 3; ++i)
    require(tensors[i]->device == device,
            text("%s lies on another device than the kernel runs on; move it there", names[i]));
  require(dim || input.dims.size() == 1,
          text("input %s has rank %zu; rmsnorm_kernel_cu serves rank 1, call rmsnorm_kernel_cu_dim for more",
               dims_text(input).c_str(), input.dims.size()));
  require(!dim || input.dims.size() > 1,
          text("input %s has rank %zu; rmsnorm_kernel_cu_dim serves rank 2 and more, call rmsnorm_kernel_cu for 1",
               dims_text(input).c_str(), input.dims.size()));
  require(*std::min_element(input.dims.begin(), input.dims.end()) >= 0 && input.cols() > 0,
          text("input %s has no columns; give at least 1", dims_text(input).c_str()));
  require(output.dims == input.dims, text("output %s has other dimensions than input %s; give it the same",
                                          dims_text(output).c_str(), dims_text(input).c_str()));
  require(weight.dims.size() == 1 && weight.cols() == input.cols(),
          text("weight %s does not have one element for each of %lld columns; give it that many",
               dims_text(weight).c_str(), static_cast<long long>(input.cols())));
  if (const char* why = RmsNormAllF32::refuses({{input.rows(), input.cols()}})) throw NotServed(why);
  if (input.rows() > 0) {
    for (int i = 0; i < 3; ++i) require(tensors[i]->data != nullptr, text("%s is nullptr; give memory", names[i]));
    require(!overlap(output, input) && !overlap(output, weight),
            "output overlaps input or weight, and the kernels promise __restrict__; give it memory of its own");
  }
  const auto are = [&](Type x, Type w) { return input.type == x && weight.type == w && output.type == x; };
  if (are(Type::float32, Type::float32)) return Path::f32;
  if (are(Type::float32, Type::float16)) return Path::f32_fp16w;
  if (are(Type::float16, Type::float16)) return Path::pure_fp16;
  throw NotServed(
      text("no path serves %s input, %s weight and %s output; there are float32 or float16 for all three, and float32 "
           "with a float16 weight",
           name_of(input.type), name_of(weight.type), name_of(output.type)));
}

template <class X, class W>
struct Launches {
  void (*row)(const X* in, const W* wei, X* out, int64_t cols, float eps, cudaStream_t stream);
  void (*dim)(const X* in, const W* wei, X* out, int64_t rows, int64_t cols, float eps, cudaStream_t stream);

  void start(bool is_dim, const EngineTensor& input, const EngineTensor& weight, const EngineTensor& output, float eps,
             cudaStream_t stream) const {
    const auto* in = static_cast<const X*>(input.data);
    const auto* wei = static_cast<const W*>(weight.data);
    auto* out = static_cast<X*>(output.data);
    if (is_dim)
      dim(in, wei, out, input.rows(), input.cols(), eps, stream);
    else
      row(in, wei, out, input.cols(), eps, stream);
  }
};

// The six kernels of a version.
struct Kernels {
  Launches<float, float> f32;
  Launches<float, __half> f32_fp16w;
  Launches<__half, __half> pure_fp16;

  void start(bool is_dim, const EngineTensor& input, const EngineTensor& weight, const EngineTensor& output, float eps,
             cudaStream_t stream) const {
    const Path path = path_of(is_dim, DeviceType::kDeviceCUDA, input, weight, output);
    if (path == Path::f32) f32.start(is_dim, input, weight, output, eps, stream);
    if (path == Path::f32_fp16w) f32_fp16w.start(is_dim, input, weight, output, eps, stream);
    if (path == Path::pure_fp16) pure_fp16.start(is_dim, input, weight, output, eps, stream);
    CUDA_CHECK(cudaGetLastError());
  }
};
constexpr Kernels kBefore = {{before_f32::launch_row, before_f32::launch_dim},
                             {before_fp16w::launch_row, before_fp16w::launch_dim},
                             {before_pure_fp16::launch_row, before_pure_fp16::launch_dim}};
constexpr Kernels kAfter = {{block_dim::launch_row, block_dim::launch_dim},
                            {weight_64_bit::launch_row, weight_64_bit::launch_dim},
                            {loads_128_bit::launch_row, loads_128_bit::launch_dim}};

void require_pure_fp16(const EngineTensor& input, const EngineTensor& weight, const EngineTensor& output) {
  const bool pure = input.type == Type::float16 && weight.type == Type::float16 && output.type == Type::float16;
  require(pure, text("the pure float16 entry got %s input, %s weight and %s output; give float16 for all three",
                     name_of(input.type), name_of(weight.type), name_of(output.type)));
}

void compute(bool is_dim, const EngineTensor& input, const EngineTensor& weight, const EngineTensor& output,
             float eps) {
  path_of(is_dim, DeviceType::kDeviceCPU, input, weight, output);
  const int64_t cols = input.cols();
  parallel_for(input.rows(), std::max<int64_t>(1, (1 << 14) / cols), [&](int, int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      double sum = 0.0;
      for (int64_t col = 0; col < cols; ++col) {
        const double x = element(input.type, input.data, row * cols + col);
        sum += x * x;
      }
      const double scale = 1.0 / std::sqrt(sum / static_cast<double>(cols) + static_cast<double>(eps));
      for (int64_t col = 0; col < cols; ++col) {
        const double y =
            scale * element(input.type, input.data, row * cols + col) * element(weight.type, weight.data, col);
        set_element(output.type, output.data, row * cols + col, static_cast<float>(y));
      }
    }
  });
}

}  // namespace

void rmsnorm_kernel_cpu(const EngineTensor& input, const EngineTensor& weight, const EngineTensor& output, float eps,
                        cudaStream_t) {
  compute(false, input, weight, output, eps);
}
void rmsnorm_kernel_cpu_dim(const EngineTensor& input, const EngineTensor& weight, const EngineTensor& output,
                            float eps, cudaStream_t) {
  compute(true, input, weight, output, eps);
}

#define LADDER_VERSION(version, kernels)                                                                               \
  namespace version {                                                                                                  \
  void rmsnorm_kernel_cu(const EngineTensor& input, const EngineTensor& weight, const EngineTensor& output, float eps, \
                         cudaStream_t stream) {                                                                        \
    kernels.start(false, input, weight, output, eps, stream);                                                          \
  }                                                                                                                    \
  void rmsnorm_kernel_cu_dim(const EngineTensor& input, const EngineTensor& weight, const EngineTensor& output,        \
                             float eps, cudaStream_t stream) {                                                         \
    kernels.start(true, input, weight, output, eps, stream);                                                           \
  }                                                                                                                    \
  void rmsnorm_kernel_cu_pure_fp16(const EngineTensor& input, const EngineTensor& weight, const EngineTensor& output,  \
                                   float eps, cudaStream_t stream) {                                                   \
    require_pure_fp16(input, weight, output);                                                                          \
    kernels.start(false, input, weight, output, eps, stream);                                                          \
  }                                                                                                                    \
  void rmsnorm_kernel_cu_pure_fp16_dim(const EngineTensor& input, const EngineTensor& weight,                          \
                                       const EngineTensor& output, float eps, cudaStream_t stream) {                   \
    require_pure_fp16(input, weight, output);                                                                          \
    kernels.start(true, input, weight, output, eps, stream);                                                           \
  }                                                                                                                    \
  }
LADDER_VERSION(before, kBefore)
LADDER_VERSION(after, kAfter)
#undef LADDER_VERSION

RMSNormKernel get_rmsnorm_kernel(DeviceType device, Version version) {
  if (device == DeviceType::kDeviceCPU) return rmsnorm_kernel_cpu;
  require(device == DeviceType::kDeviceCUDA, "get_rmsnorm_kernel: an unknown device; give kDeviceCPU or kDeviceCUDA");
  return version == Version::before ? before::rmsnorm_kernel_cu : after::rmsnorm_kernel_cu;
}
RMSNormKernelDim get_rmsnorm_dim_kernel(DeviceType device, Version version) {
  if (device == DeviceType::kDeviceCPU) return rmsnorm_kernel_cpu_dim;
  require(device == DeviceType::kDeviceCUDA,
          "get_rmsnorm_dim_kernel: an unknown device; give kDeviceCPU or kDeviceCUDA");
  return version == Version::before ? before::rmsnorm_kernel_cu_dim : after::rmsnorm_kernel_cu_dim;
}

void RmsNormLayer::forward(const EngineTensor& input, const EngineTensor& output, cudaStream_t stream) const {
  Entry* const entry =
      input.dims.size() == 1 ? get_rmsnorm_kernel(device, version) : get_rmsnorm_dim_kernel(device, version);
  entry(input, weight, output, eps, stream);
}
void RMSNormDimLayer::forward(const EngineTensor& input, const EngineTensor& output, cudaStream_t stream) const {
  get_rmsnorm_dim_kernel(device, version)(input, weight, output, eps, stream);
}

std::string kernel_for(bool dim, const EngineTensor& input, const EngineTensor& weight, const EngineTensor& output) {
  const Path path = path_of(dim, DeviceType::kDeviceCUDA, input, weight, output);
  return std::string(kNames[static_cast<int>(path)]) + (dim ? "_dim" : "");
}

namespace {

template <class Kernel>
void add_facts(std::vector<KernelFacts>& all, Version version, Path path, bool dim, Kernel kernel) {
  constexpr int kThreads = 128;
  cudaFuncAttributes attributes;
  int blocks = 0;
  CUDA_CHECK(cudaFuncGetAttributes(&attributes, kernel));
  CUDA_CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, kThreads, 0));
  all.push_back({std::string(kNames[static_cast<int>(path)]) + (dim ? "_dim" : ""), version, kThreads,
                 attributes.numRegs, blocks, attributes.sharedSizeBytes});
}

}  // namespace

std::vector<KernelFacts> kernel_facts() {
  std::vector<KernelFacts> all;
  add_facts(all, Version::before, Path::f32, false, before_f32::row_rmsnorm_f32);
  add_facts(all, Version::after, Path::f32, false, block_dim::row_rmsnorm_f32<128>);
  add_facts(all, Version::before, Path::f32, true, before_f32::row_rmsnorm_f32_dim);
  add_facts(all, Version::after, Path::f32, true, block_dim::row_rmsnorm_f32_dim<128>);
  add_facts(all, Version::before, Path::f32_fp16w, false, before_fp16w::row_rmsnorm_f32_fp16w);
  add_facts(all, Version::after, Path::f32_fp16w, false, weight_64_bit::row_rmsnorm_f32_fp16w<128>);
  add_facts(all, Version::before, Path::f32_fp16w, true, before_fp16w::row_rmsnorm_f32_fp16w_dim);
  add_facts(all, Version::after, Path::f32_fp16w, true, weight_64_bit::row_rmsnorm_f32_fp16w_dim<128>);
  add_facts(all, Version::before, Path::pure_fp16, false, before_pure_fp16::row_rmsnorm_pure_fp16);
  add_facts(all, Version::after, Path::pure_fp16, false, loads_128_bit::row_rmsnorm_pure_fp16<128>);
  add_facts(all, Version::before, Path::pure_fp16, true, before_pure_fp16::row_rmsnorm_pure_fp16_dim);
  add_facts(all, Version::after, Path::pure_fp16, true, loads_128_bit::row_rmsnorm_pure_fp16_dim<128>);
  return all;
}

}  // namespace ladder::inference
