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

// CUDA does not say when a stream is gone. A program may make a stream for each request, so from kMostStreams of them
// on each workspace has an event, which says whether its last kernel has ended: then a new stream takes it over.
constexpr size_t kMostStreams = 32;
struct Workspace::Entry {
  void* memory = nullptr;
  cudaEvent_t last = nullptr;  // recorded after its last kernel; nullptr while there are few streams
  int calls = 0;               // that have it, and have not launched their kernel yet
  uint64_t launches = 0;
};

namespace {

using Entry = Workspace::Entry;

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
  std::map<Key, Entry> used;
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

// Prepared when it returns. CUDA's functions may wait for a thread that calls give_back(), so nothing is locked here.
cudaError_t allocate(void** workspace) {
  if (const cudaError_t error = cudaMalloc(workspace, rms_norm::kWorkspaceBytes)) return error;
  cudaStream_t own = nullptr;
  cudaError_t error = cudaStreamCreateWithFlags(&own, cudaStreamNonBlocking);
  if (error == cudaSuccess) error = rms_norm::init_workspace(*workspace, own);
  if (error == cudaSuccess) error = cudaStreamSynchronize(own);
  if (own != nullptr) cudaStreamDestroy(own);
  if (error != cudaSuccess) cudaFree(*workspace);
  return error;
}

#ifndef __SIMT__
// Called when the graph is gone, where CUDA allows no call of its functions.
void give_back(void* data) {
  const std::unique_ptr<Key> key(static_cast<Key*>(data));
  const std::lock_guard lock(state().mutex);
  const auto entry = state().used.find(*key);
  state().unused[key->device].push_back(entry->second.memory);
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

// The workspace of a stream that may be gone: one whose last kernel has ended. None if there is none.
Entry take_over(int device) {
  std::vector<std::pair<Key, Entry>> candidates;
  {
    const std::lock_guard lock(state().mutex);
    for (const auto& candidate : state().used)
      if (candidate.first.device == device && candidate.second.last != nullptr && candidate.second.calls == 0)
        candidates.push_back(candidate);
  }
  for (const auto& [key, seen] : candidates) {
    if (cudaEventQuery(seen.last) != cudaSuccess) continue;
    const std::lock_guard lock(state().mutex);
    const auto found = state().used.find(key);
    if (found == state().used.end() || found->second.calls > 0 || found->second.launches != seen.launches) continue;
    state().used.erase(found);
    return {seen.memory, seen.last};
  }
  return {};
}

cudaError_t find_key(cudaStream_t stream, Key& key, cudaGraph_t& graph) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  if (const cudaError_t error = cudaGetDevice(&key.device)) return error;
  if (const cudaError_t error = cudaStreamGetCaptureInfo(stream, &status, &key.capture, &graph)) return error;
  if (status == cudaStreamCaptureStatusActive) {
    key.stream = reinterpret_cast<uintptr_t>(stream);
    return cudaSuccess;
  }
  key.capture = 0;
  return cudaStreamGetId(stream, &key.stream);
}

}  // namespace

cudaError_t Workspace::find(cudaStream_t of_stream) {
  const Relaxed relaxed;
  stream = of_stream;
  Key key;
  cudaGraph_t graph = nullptr;
  if (const cudaError_t error = find_key(stream, key, graph)) return error;
  const bool captured = key.capture != 0;
  const auto lend = [&](Entry& entry) {
    memory = entry.memory;
    if (entry.last == nullptr) return;
    ++entry.calls;
    lent = &entry;
  };

  Entry fresh;
  bool few = true;
  {
    const std::lock_guard lock(state().mutex);
    if (const auto found = state().used.find(key); found != state().used.end()) {
      lend(found->second);
      return cudaSuccess;
    }
    if (auto& unused = state().unused[key.device]; !unused.empty()) {
      fresh.memory = unused.back();
      unused.pop_back();
    }
    few = captured || state().used.size() < kMostStreams;
  }
  if (fresh.memory == nullptr && !few) fresh = take_over(key.device);
  if (fresh.memory == nullptr)
    if (const cudaError_t error = allocate(&fresh.memory)) return error;
  if (fresh.last == nullptr && !few)
    if (const cudaError_t error = cudaEventCreateWithFlags(&fresh.last, cudaEventDisableTiming)) return error;
  {
    const std::lock_guard lock(state().mutex);
    const auto [entry, is_new] = state().used.try_emplace(key, fresh);
    lend(entry->second);
    if (!is_new) {  // another thread was faster
      state().unused[key.device].push_back(fresh.memory);
      return cudaSuccess;
    }
  }
  return captured ? bind_to(graph, key) : cudaSuccess;
}

Workspace::~Workspace() {
  if (lent == nullptr || cudaEventRecord(lent->last, stream) != cudaSuccess) return;  // unsaid, its kernel has no end
  const std::lock_guard lock(state().mutex);
  ++lent->launches;
  --lent->calls;
}

}  // namespace rms_norm_binding
