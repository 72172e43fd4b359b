// How an inference engine reaches the kernels, in the document's names: a layer, which asks the factory function of its
// input's rank, which returns the function of a device, which chooses the kernel by the types of its tensors.
#pragma once
#include <cuda_runtime_api.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "common/types.h"

namespace ladder::inference {

enum class DeviceType { kDeviceUnknown, kDeviceCPU, kDeviceCUDA };
enum class Version { before, after };

// Contiguous; the last of the dimensions is that of a row.
struct EngineTensor {
  void* data;
  Type type;
  DeviceType device;
  std::vector<int64_t> dims;

  int64_t cols() const { return dims.empty() ? 0 : dims.back(); }
  int64_t rows() const;
};

// Tensors that no path serves: the sentence says why.
struct NotServed : std::invalid_argument {
  using std::invalid_argument::invalid_argument;
};

// output = input / sqrt(mean(input²) + eps) · weight for each row. Launches on the stream and returns without waiting;
// on the CPU it computes. Throws NotServed.
using Entry = void(const EngineTensor& input, const EngineTensor& weight, const EngineTensor& output, float eps,
                   cudaStream_t stream);
using RMSNormKernel = Entry*;
using RMSNormKernelDim = Entry*;

RMSNormKernel get_rmsnorm_kernel(DeviceType device, Version version = Version::after);         // tensors of rank 1
RMSNormKernelDim get_rmsnorm_dim_kernel(DeviceType device, Version version = Version::after);  // of a higher rank

// The layers. forward() calls what the factory returns: that of the input's rank, or always the one for higher ranks.
struct RmsNormLayer {
  DeviceType device = DeviceType::kDeviceUnknown;
  EngineTensor weight;
  float eps = 1e-6f;
  Version version = Version::after;
  void forward(const EngineTensor& input, const EngineTensor& output, cudaStream_t stream) const;
};
struct RMSNormDimLayer : RmsNormLayer {
  void forward(const EngineTensor& input, const EngineTensor& output, cudaStream_t stream) const;
};

// What the factories return, and the entries for float16 alone.
Entry rmsnorm_kernel_cpu, rmsnorm_kernel_cpu_dim;
namespace before {
Entry rmsnorm_kernel_cu, rmsnorm_kernel_cu_dim, rmsnorm_kernel_cu_pure_fp16, rmsnorm_kernel_cu_pure_fp16_dim;
}
namespace after {
Entry rmsnorm_kernel_cu, rmsnorm_kernel_cu_dim, rmsnorm_kernel_cu_pure_fp16, rmsnorm_kernel_cu_pure_fp16_dim;
}

// The name of the kernel that serves these tensors. Throws NotServed.
std::string kernel_for(bool dim, const EngineTensor& input, const EngineTensor& weight, const EngineTensor& output);

// What a kernel takes of a multiprocessor.
struct KernelFacts {
  std::string kernel;
  Version version;
  int block, registers, blocks_per_sm;
  size_t shared_bytes;
};
std::vector<KernelFacts> kernel_facts();

}  // namespace ladder::inference
