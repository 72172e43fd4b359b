// What the programs with a fault and those without share.
#pragma once
#include <cuda_runtime.h>

template <class T>
T* zeros(size_t count) {  // in device memory
  T* data;
  cudaMalloc(&data, count * sizeof(T));
  cudaMemset(data, 0, count * sizeof(T));
  return data;
}

// A launch of two blocks that may start before the launch before it has ended.
template <class... P, class... A>
void launch_dependent(cudaStream_t stream, void (*kernel)(P...), A... arguments) {
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(2), config.blockDim = dim3(128), config.stream = stream;
  config.attrs = &attribute, config.numAttrs = 1;
  cudaLaunchKernelEx(&config, kernel, arguments...);
}
