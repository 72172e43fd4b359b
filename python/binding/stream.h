// Where a kernel is launched: on the device of an array, on the stream that the caller uses there.
#pragma once
#include <cuda_runtime_api.h>
#include <tvm/ffi/error.h>
#include <tvm/ffi/extra/c_env_api.h>

namespace rms_norm_binding {

// Makes a device the current one, for as long as it lives.
struct CurrentDevice {
  int device, before = 0;
  explicit CurrentDevice(int device) : device(device) {
    cudaGetDevice(&before);
    if (before != device) cudaSetDevice(device);
  }
  ~CurrentDevice() {
    if (before != device) cudaSetDevice(before);
  }
};
inline cudaStream_t stream_of(const DLDevice& device) {
  return static_cast<cudaStream_t>(TVMFFIEnvGetStream(device.device_type, device.device_id));
}
inline void check(cudaError_t error) {
  if (error != cudaSuccess) TVM_FFI_THROW(RuntimeError) << "the launch failed: " << cudaGetErrorString(error);
}

}  // namespace rms_norm_binding
