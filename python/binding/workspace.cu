#include "stream.h"

#include <rms_norm/rms_norm.cuh>

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>
#include <utility>
#include <vector>

namespace rms_norm_binding {
namespace {

// What they are found by: the device; the number of the capture, or 0; and the stream. A stream's number, unlike its
// handle, is never used again. But asking for it ends a capture with an error, so there the handle stands in its place.
struct Key {
  int device = 0;
  unsigned long long stream = 0, capture = 0;
  bool operator<(const Key& other) const {
    return std::tie(device, stream, capture) < std::tie(other.device, other.stream, other.capture);
  }
};
struct State {
  std::mutex mutex;
  std::map<Key, void*> used;
  std::map<int, std::vector<void*>> unused;  // of each device, whose graphs are gone: calls leave a workspace prepared
};
State& state() {
  static State* const state = new State;  // never destroyed: graphs may outlive everything else
  return *state;
}

// For as long as it lives, this thread may allocate although a stream is being captured.
struct Relaxed {
  cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
  Relaxed() { cudaThreadExchangeStreamCaptureMode(&mode); }
  ~Relaxed() { cudaThreadExchangeStreamCaptureMode(&mode); }
};

// Prepared on the stream; or at once, on a stream of its own, if what the stream is given is only captured.
cudaError_t allocate(bool captured, cudaStream_t stream, void** workspace) {
  if (const cudaError_t error = cudaMalloc(workspace, rms_norm::kWorkspaceBytes)) return error;
  if (!captured) return rms_norm::init_workspace(*workspace, stream);
  cudaStream_t own;
  cudaError_t error = cudaStreamCreateWithFlags(&own, cudaStreamNonBlocking);
  if (error != cudaSuccess) return error;
  error = rms_norm::init_workspace(*workspace, own);
  if (error == cudaSuccess) error = cudaStreamSynchronize(own);
  cudaStreamDestroy(own);
  return error;
}

#ifndef __SIMT__
// Called when the graph is gone, where CUDA allows no call of its functions.
void give_back(void* data) {
  const std::unique_ptr<Key> key(static_cast<Key*>(data));
  const std::lock_guard lock(state().mutex);
  const auto entry = state().used.find(*key);
  state().unused[key->device].push_back(entry->second);
  state().used.erase(entry);
}
cudaError_t bind_to(cudaGraph_t graph, const Key& key) {
  auto copy = std::make_unique<Key>(key);
  cudaUserObject_t object;
  if (const cudaError_t error = cudaUserObjectCreate(&object, copy.get(), give_back, 1, cudaUserObjectNoDestructorSync))
    return error;
  copy.release();
  return cudaGraphRetainUserObject(graph, object, 1, cudaGraphUserObjectMove);
}
#else
cudaError_t bind_to(cudaGraph_t, const Key&) { return cudaSuccess; }
#endif

}  // namespace

cudaError_t find_workspace(cudaStream_t stream, void** workspace) {
  const Relaxed relaxed;
  Key key;
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  cudaGraph_t graph = nullptr;
  if (const cudaError_t error = cudaGetDevice(&key.device)) return error;
  if (const cudaError_t error = cudaStreamGetCaptureInfo(stream, &status, &key.capture, &graph)) return error;
  const bool captured = status == cudaStreamCaptureStatusActive;
  if (captured) {
    key.stream = reinterpret_cast<uintptr_t>(stream);
  } else {
    key.capture = 0;
    if (const cudaError_t error = cudaStreamGetId(stream, &key.stream)) return error;
  }

  std::unique_lock lock(state().mutex);
  if (const auto found = state().used.find(key); found != state().used.end()) {
    *workspace = found->second;
    return cudaSuccess;
  }
  if (auto& unused = state().unused[key.device]; captured && !unused.empty()) {
    *workspace = unused.back();
    unused.pop_back();
  } else if (const cudaError_t error = allocate(captured, stream, workspace)) {
    return error;
  }
  state().used[key] = *workspace;
  lock.unlock();  // give_back() may run now
  return captured ? bind_to(graph, key) : cudaSuccess;
}

}  // namespace rms_norm_binding
