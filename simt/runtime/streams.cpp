#include "streams.h"

#include <algorithm>

#include "environment.h"
#include "in_flight.h"
#include "memory.h"

namespace simt {

thread_local cudaStreamCaptureMode thread_capture_mode = cudaStreamCaptureModeGlobal;

StreamState& stream_state() {
  static auto* state = new StreamState;  // outlives the objects that destroy streams at exit
  return *state;
}

bool is_legacy(cudaStream_t stream) { return !stream || stream == cudaStreamLegacy; }

static Stream& prepared(Stream& stream, unsigned long long id, int device) {
  if (stream.id) return stream;
  stream.id = id;
  stream.device = device;
  stream.number = ++stream_state().streams_made;
  return stream;
}

Stream* find_stream(cudaStream_t stream) {
  static Stream legacy[kMostDevices];
  static thread_local std::vector<Stream> per_thread(kMostDevices);  // not in the thread-local block, which is small
  const int device = current_device();
  if (is_legacy(stream)) return &prepared(legacy[device], 1, device);
  if (stream == cudaStreamPerThread) return &prepared(per_thread[device], 2, device);
  return stream_state().streams.find(stream);
}

Capture* capture_of(Stream& stream) {
  if (stream.capture && stream.capture->ended) {
    stream.capture.reset();
    stream.frontier.clear();
  }
  return stream.capture.get();
}

cudaError_t spoil(Capture& capture, cudaError_t error) {
  capture.invalidated = true;
  return error;
}

bool is_capturing(cudaStream_t handle) {
  Stream* stream = find_stream(handle);
  return stream && capture_of(*stream);
}

cudaError_t check_unsafe_call() {
  for (const auto& capture : stream_state().captures) {
    const bool own = capture->thread == std::this_thread::get_id();
    const bool forbidden =
        thread_capture_mode == cudaStreamCaptureModeRelaxed ? false
        : own                                               ? capture->mode != cudaStreamCaptureModeRelaxed
              : thread_capture_mode == cudaStreamCaptureModeGlobal && capture->mode == cudaStreamCaptureModeGlobal;
    if (forbidden) return spoil(*capture, cudaErrorStreamCaptureUnsupported);
  }
  return cudaSuccess;
}

cudaError_t check_legacy_stream() {
  for (const auto& capture : stream_state().captures)
    if (capture->blocking) return spoil(*capture, cudaErrorStreamCaptureImplicit);
  return cudaSuccess;
}

cudaError_t check_device_wait() {
  cudaError_t error = cudaSuccess;
  for (const auto& capture : stream_state().captures) error = spoil(*capture, cudaErrorStreamCaptureUnsupported);
  return error;
}

namespace {
thread_local uint64_t before_this = 0, newest_launch = 0;
}
uint64_t launch_before() { return before_this; }
void note_launch(uint64_t id) { newest_launch = id; }
void note_host_wait() {
  ++stream_state().era;
  was_waited_for();
}

cudaError_t run_operation(const Operation& operation, cudaGraphNodeType type, uint64_t before, uint64_t* launched) {
  struct Open {
    Open() { open_device_memory(); }
    ~Open() { close_device_memory(); }
  };
  struct HostFunction {
    HostFunction() { in_host_function = true; }
    ~HostFunction() { in_host_function = false; }
  };
  if (launched) *launched = 0;
  if (type == cudaGraphNodeTypeKernel) {
    const Open open;
    before_this = before;
    newest_launch = 0;
    const cudaError_t error = operation();
    if (launched) *launched = newest_launch;
    return error;
  }
  if (type == cudaGraphNodeTypeHost) {
    const HostFunction host_function;
    return operation();
  }
  return operation();
}

// --- Several devices -----------------------------------------------------------------------------------------------

namespace {

bool is_blocking(const Stream& stream) { return !(stream.flags & cudaStreamNonBlocking); }

Stream& legacy_stream(int device) {
  struct Restore {
    int device = current_device();
    ~Restore() { set_current_device(device); }
  } restore;
  set_current_device(device);
  return *find_stream(nullptr);
}

cudaError_t submit_to(Stream& stream, Operation operation, cudaGraphNodeType type, Tasks before, DeviceSet others = 0) {
  const Stream& legacy = legacy_stream(stream.device);
  uint64_t& era = stream_state().era;
  Submission s;
  s.operation = std::move(operation);
  s.type = type;
  s.device = stream.device;
  s.stream = stream.number;
  s.blocking = &stream != &legacy && is_blocking(stream);
  s.before = std::move(before);
  s.before.push_back(stream.last);
  if (s.blocking) s.before.push_back(legacy.last);
  if (&stream == &legacy) others |= 1u << stream.device;
  s.comes_after_blocking = others;
  if (stream.era == era) s.launch_before = stream.last;
  stream.era = era;
  stream.last = submit(std::move(s));
  return cudaSuccess;
}

}  // namespace

void wait_for_stream(cudaStream_t handle) {
  TaskPtr last;
  int device = 0;
  {
    std::lock_guard<std::recursive_mutex> lock(api_mutex());
    const Stream* stream = find_stream(handle);
    if (!stream) return;
    last = stream->last;
    device = stream->device;
  }
  wait_for({last});
  if (is_legacy(handle)) wait_for_devices(1u << device, true);
}

bool stream_has_ended(cudaStream_t handle) {
  start_submitted();
  std::lock_guard<std::recursive_mutex> lock(api_mutex());
  const Stream* stream = find_stream(handle);
  return !stream || (has_ended(stream->last) && (!is_legacy(handle) || have_ended(1u << stream->device)));
}

cudaError_t join(Stream& stream, const Tasks& tasks, DeviceSet devices) {
  return submit_to(
      stream, [] { return cudaSuccess; }, cudaGraphNodeTypeWaitEvent, tasks, devices);
}

cudaError_t enqueue(cudaStream_t handle, Operation operation, cudaGraphNodeType type) {
  std::lock_guard<std::recursive_mutex> lock(api_mutex());
  read_settings();
  if (is_stopped()) return record(sticky());
  Stream* stream = find_stream(handle);
  if (!stream) return record(cudaErrorInvalidResourceHandle);
  if (Capture* capture = capture_of(*stream)) {
    if (capture->invalidated) return record(cudaErrorStreamCaptureInvalidated);
    stream->frontier = {add_node(capture->graph, type, std::move(operation), stream->frontier, stream->device)};
    return cudaSuccess;
  }
  const bool legacy = is_legacy(handle);
  if (const cudaError_t error = legacy ? check_legacy_stream() : cudaSuccess) return record(error);
  if (several_devices()) return record(submit_to(*stream, std::move(operation), type, {}));
  uint64_t& era = stream_state().era;
  const uint64_t before = stream->era == era ? stream->launch : 0;
  if (legacy) ++era;
  if (!legacy && !(stream->flags & cudaStreamNonBlocking)) find_stream(nullptr)->launch = 0;
  stream->era = era;
  return record(run_operation(operation, type, before, &stream->launch));
}

void end_capture(Capture& capture) {
  capture.ended = true;
  auto& active = stream_state().captures;
  active.erase(std::remove_if(active.begin(), active.end(), [](const auto& c) { return c->ended; }), active.end());
}

void reset_streams(int device) {
  StreamState& state = stream_state();
  while (!state.captures.empty()) end_capture(*state.captures.back());
  if (several_devices()) {
    state.streams.erase_if([&](const Stream& stream) { return stream.device == device; });
    state.events.erase_if([&](const Event& event) { return event.device == device; });
    return;
  }
  state.streams.clear();
  state.events.clear();
  state.execs.clear();
  state.graphs.clear();
  state.nodes.clear();
}

cudaGraphNode_t add_node(cudaGraph_t graph, cudaGraphNodeType type, Operation operation, Nodes dependencies,
                         int device) {
  StreamState& state = stream_state();
  const auto node = state.nodes.insert({graph, type, std::move(operation), std::move(dependencies), device});
  state.graphs.find(graph)->nodes.push_back(node);
  return node;
}

void destroy_graph(cudaGraph_t handle) {
  StreamState& state = stream_state();
  if (const Graph* graph = state.graphs.find(handle))
    for (cudaGraphNode_t node : graph->nodes) state.nodes.erase(node);
  state.graphs.erase(handle);
}

}  // namespace simt
