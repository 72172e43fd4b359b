// L2 is asked to keep what is used again. 08 to 10 are the same work: a stream of n floats is added to a table that is
// an eighth as long, so that the table is read eight times.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <cuda/annotated_ptr>

#include "common/cuda_check.h"
#include "common/launch.h"
#include "common/operators/add.h"
#include "residency.h"

namespace ladder::hopper {

constexpr int kTableThreads = 256;

template <bool kHeld, class T>
__device__ T load_table(const T* from) {
  if (kHeld) return *cuda::associate_access_property(from, cuda::access_property::persisting());
  return *from;
}

// 08 (kHeld = false): L2 treats the stream and the table alike, and a table that does not fit beside what streams past
// is read from DRAM again. 09: loads of the table ask L2 to evict them last, loads and stores of the stream to evict
// them first (counter: bytes read from DRAM). A block takes 1024 elements, and so does a table's part.
template <bool kHeld>
__global__ void add_table_kernel(const float* a, const float* table, float* c, int64_t n, int64_t length,
                                 bool aligned) {
  constexpr int kPart = 4 * kTableThreads;
  const int64_t i = int64_t{blockIdx.x} * kPart + threadIdx.x * 4;
  const float* part = table + blockIdx.x % (length / kPart) * kPart + threadIdx.x * 4;
  if (aligned && i + 4 <= n) {
    const auto* source = reinterpret_cast<const float4*>(a + i);
    const float4 y = load_table<kHeld>(reinterpret_cast<const float4*>(part));
    const float4 x = kHeld ? __ldcs(source) : *source;
    const float4 sum = make_float4(x.x + y.x, x.y + y.y, x.z + y.z, x.w + y.w);
    if (kHeld)
      __stcs(reinterpret_cast<float4*>(c + i), sum);
    else
      *reinterpret_cast<float4*>(c + i) = sum;
  } else {
    for (int k = 0; k < 4; ++k)
      if (i + k < n) c[i + k] = a[i + k] + load_table<kHeld>(part + k);
  }
}

// 10: 08's kernel, with the table's addresses as the launch's access policy window: hitRatio of them persist, the
// others and all addresses outside of the window are normal. It has an effect only while a part of L2 is set aside
// (cudaLimitPersistingL2CacheSize), and that part is lost to everything else.
inline cudaLaunchAttribute window_over(const float* table, int64_t length) {
  static const int most = [] {
    int bytes = 0;
    CUDA_CHECK(cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxAccessPolicyWindowSize, 0));
    return bytes;
  }();
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeAccessPolicyWindow;
  cudaAccessPolicyWindow& window = attribute.val.accessPolicyWindow;
  window.base_ptr = const_cast<float*>(table);
  window.num_bytes = std::min(static_cast<size_t>(length) * sizeof(float), static_cast<size_t>(most));
  // The share of the window that is to persist: no more than there is room for, or its lines evict each other.
  const double share =
      static_cast<double>(set_aside_bytes) / static_cast<double>(std::max<size_t>(window.num_bytes, 1));
  window.hitRatio = static_cast<float>(std::min(share, 1.0));
  window.hitProp = cudaAccessPropertyPersisting;
  window.missProp = cudaAccessPropertyNormal;
  return attribute;
}

template <bool kHeld, bool kWindow>
void launch_add_table(const float* a, const float* table, float* c, int64_t n, cudaStream_t stream) {
  const auto blocks = static_cast<unsigned>(blocks_for(n, 4 * kTableThreads));
  if (blocks == 0) return;
  const int64_t length = AddTable::length(n);
  cudaLaunchAttribute attribute = window_over(table, length);
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(blocks);
  config.blockDim = dim3(kTableThreads);
  config.stream = stream;
  config.attrs = &attribute;
  config.numAttrs = kWindow ? 1 : 0;
  const bool aligned = aligned_for<float4>(a, table) && aligned_for<float4>(c, c);
  CUDA_CHECK(cudaLaunchKernelEx(&config, add_table_kernel<kHeld>, a, table, c, n, length, aligned));
}

}  // namespace ladder::hopper
