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

// The workspace with which many blocks share one long row: a prepared one that nothing else uses while the next kernel
// of this stream of the current device does. Each stream has one, and those of streams that are gone are used again.
// What is captured into a graph gets one that belongs to the graph, since the graph may run on any stream. So two
// executables of one graph must not run at the same time: their kernels would wait for each other's words.
class Workspace {
 public:
  Workspace() = default;
  Workspace(const Workspace&) = delete;
  ~Workspace();  // after the launch
  cudaError_t find(cudaStream_t stream);
  void* memory = nullptr;
  struct Entry;

 private:
  Entry* lent = nullptr;  // while it may not be taken over
  cudaStream_t stream = nullptr;
};

}  // namespace rms_norm_binding
