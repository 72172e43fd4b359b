// Streams, events and captures, as programs call for them.
#include <algorithm>
#include <set>
#include <string>

#include "in_flight.h"
#include "streams.h"

using namespace simt;

namespace {

constexpr int kLeastPriority = 0, kGreatestPriority = -5;

void join(Nodes& frontier, const Nodes& more) {
  for (cudaGraphNode_t node : more)
    if (std::find(frontier.begin(), frontier.end(), node) == frontier.end()) frontier.push_back(node);
}

}  // namespace

// --- Streams -------------------------------------------------------------------------------------------------------

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned int flags, int priority) {
  return api([&] {
    if (!stream || flags > cudaStreamNonBlocking) return cudaErrorInvalidValue;
    Stream created;
    created.flags = flags;
    created.priority = std::clamp(priority, kGreatestPriority, kLeastPriority);
    created.id = ++stream_state().last_id;
    created.number = ++stream_state().streams_made;
    *stream = stream_state().streams.insert(std::move(created));
    return cudaSuccess;
  });
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned int flags) {
  return cudaStreamCreateWithPriority(stream, flags, kLeastPriority);
}
cudaError_t cudaStreamCreate(cudaStream_t* stream) { return cudaStreamCreateWithFlags(stream, cudaStreamDefault); }

cudaError_t cudaStreamDestroy(cudaStream_t handle) {
  return api([&] {
    Stream* stream = stream_state().streams.find(handle);
    if (!stream) return cudaErrorInvalidResourceHandle;
    if (Capture* capture = capture_of(*stream)) {
      capture->invalidated = true;
      if (capture->origin == handle) {
        destroy_graph(capture->graph);
        end_capture(*capture);
      }
    }
    stream_state().streams.erase(handle);
    return cudaSuccess;
  });
}

// Calls `use` with the stream, or refuses the handle.
template <class Use>
static cudaError_t with_stream(cudaStream_t handle, Use use) {
  return api([&] {
    Stream* stream = find_stream(handle);
    return stream ? use(*stream) : cudaErrorInvalidResourceHandle;
  });
}

template <class Value, class Source>
static cudaError_t give(Value* value, Source source) {
  if (!value) return cudaErrorInvalidValue;
  *value = source;
  return cudaSuccess;
}

cudaError_t cudaStreamGetFlags(cudaStream_t stream, unsigned int* flags) {
  return with_stream(stream, [&](Stream& s) { return give(flags, s.flags); });
}
cudaError_t cudaStreamGetPriority(cudaStream_t stream, int* priority) {
  return with_stream(stream, [&](Stream& s) { return give(priority, s.priority); });
}
cudaError_t cudaStreamGetId(cudaStream_t stream, unsigned long long* id) {
  return with_stream(stream, [&](Stream& s) { return give(id, s.id); });
}
cudaError_t cudaStreamGetDevice(cudaStream_t stream, int* device) {
  return with_stream(stream, [&](Stream& s) { return give(device, s.device); });
}

cudaError_t cudaStreamSetAttribute(cudaStream_t stream, cudaStreamAttrID attribute, const cudaStreamAttrValue* value) {
  return with_stream(stream, [&](Stream&) {
    if (!value) return cudaErrorInvalidValue;
    switch (attribute) {
      case cudaStreamAttributeAccessPolicyWindow:
      case cudaStreamAttributeSynchronizationPolicy:
      case cudaStreamAttributePriority:
        return cudaSuccess;  // hints
      default:
        return cudaErrorInvalidValue;
    }
  });
}

static bool is_captured(cudaStream_t handle) {
  std::lock_guard<std::recursive_mutex> lock(api_mutex());
  return is_capturing(handle);
}

cudaError_t cudaStreamSynchronize(cudaStream_t handle) {
  refuse_in_kernel();
  if (several_devices() && !in_host_function && !is_captured(handle)) wait_for_stream(handle);
  return with_stream(handle, [&](Stream& stream) {
    if (Capture* capture = capture_of(stream)) return spoil(*capture, cudaErrorStreamCaptureUnsupported);
    stream.launch = 0;
    was_waited_for();
    if (!is_legacy(handle)) return cudaSuccess;
    note_host_wait();
    return check_legacy_stream();
  });
}
cudaError_t cudaStreamQuery(cudaStream_t stream) {
  if (several_devices() && !in_host_function && !is_captured(stream)) {
    if (!stream_has_ended(stream)) return record(cudaErrorNotReady);
  }
  return cudaStreamSynchronize(stream);
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  return api([&] {
    if (least) *least = kLeastPriority;
    if (greatest) *greatest = kGreatestPriority;
    return cudaSuccess;
  });
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* userData) {
  return api([&] {
    if (!function) return cudaErrorInvalidValue;
    const auto call = [=] {
      function(userData);
      return cudaSuccess;
    };
    return enqueue(stream, call, cudaGraphNodeTypeHost);
  });
}

cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t callback, void* userData,
                                  unsigned int flags) {
  return with_stream(stream, [&](Stream& s) {
    if (!callback || flags) return cudaErrorInvalidValue;
    if (Capture* capture = capture_of(s)) return spoil(*capture, cudaErrorStreamCaptureUnsupported);
    const auto call = [=] {
      callback(stream, cudaSuccess, userData);
      return cudaSuccess;
    };
    return enqueue(stream, call, cudaGraphNodeTypeHost);
  });
}

// --- Events --------------------------------------------------------------------------------------------------------

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned int flags) {
  return api([&] {
    constexpr unsigned kKnown = cudaEventBlockingSync | cudaEventDisableTiming | cudaEventInterprocess;
    if (!event || (flags & ~kKnown)) return cudaErrorInvalidValue;
    if (flags & cudaEventInterprocess) return not_supported("cudaEventInterprocess: the CPU device has no IPC");
    Event created;
    created.flags = flags;
    *event = stream_state().events.insert(std::move(created));
    return cudaSuccess;
  });
}
cudaError_t cudaEventCreate(cudaEvent_t* event) { return cudaEventCreateWithFlags(event, cudaEventDefault); }

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  return api([&] { return stream_state().events.erase(event) ? cudaSuccess : cudaErrorInvalidResourceHandle; });
}

static cudaError_t stamp(cudaEvent_t handle) {
  std::lock_guard<std::recursive_mutex> lock(api_mutex());
  Event* event = stream_state().events.find(handle);
  if (!event) return cudaErrorInvalidResourceHandle;
  event->recorded = true;
  event->time = std::chrono::steady_clock::now();
  event->capture.reset();
  event->frontier.clear();
  return cudaSuccess;
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t handle, cudaStream_t stream_handle, unsigned int flags) {
  return with_stream(stream_handle, [&](Stream& stream) {
    Event* event = stream_state().events.find(handle);
    if (!event) return cudaErrorInvalidResourceHandle;
    if (flags > cudaEventRecordExternal) return cudaErrorInvalidValue;
    if (event->device != stream.device) {
      explain("its event belongs to device " + std::to_string(event->device) + ", and its stream to device " +
              std::to_string(stream.device));
      return cudaErrorInvalidResourceHandle;
    }
    Capture* capture = capture_of(stream);
    if (!capture || flags == cudaEventRecordExternal) {
      const cudaError_t error = enqueue(
          stream_handle, [=] { return stamp(handle); }, cudaGraphNodeTypeEventRecord);
      if (!several_devices() || capture || error != cudaSuccess) return error;
      event->record = stream.last;
      event->capture.reset();
      return error;
    }
    if (capture->invalidated) return cudaErrorStreamCaptureInvalidated;
    event->recorded = true;
    event->capture = stream.capture;
    event->frontier = stream.frontier;
    return cudaSuccess;
  });
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return cudaEventRecordWithFlags(event, stream, 0);
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream_handle, cudaEvent_t event_handle, unsigned int flags) {
  return with_stream(stream_handle, [&](Stream& stream) {
    Event* event = stream_state().events.find(event_handle);
    if (!event) return cudaErrorInvalidResourceHandle;
    if (flags > cudaEventWaitExternal) return cudaErrorInvalidValue;
    Capture* capture = capture_of(stream);
    if (capture && capture->invalidated) return cudaErrorStreamCaptureInvalidated;
    if (flags == cudaEventWaitExternal)
      return enqueue(
          stream_handle, [] { return cudaSuccess; }, cudaGraphNodeTypeWaitEvent);
    if (!event->capture) {
      if (capture && (event->recorded || event->record)) return spoil(*capture, cudaErrorStreamCaptureIsolation);
      return several_devices() && event->record ? join(stream, {event->record}) : cudaSuccess;
    }
    if (event->capture->ended) return cudaErrorCapturedEvent;
    if (is_legacy(stream_handle)) return spoil(*event->capture, cudaErrorStreamCaptureImplicit);
    if (capture && capture != event->capture.get()) {
      event->capture->invalidated = true;
      return spoil(*capture, cudaErrorStreamCaptureMerge);
    }
    stream.capture = event->capture;
    stream.capture->blocking |= !(stream.flags & cudaStreamNonBlocking);
    join(stream.frontier, event->frontier);
    return cudaSuccess;
  });
}

// The operation that records it, if that has not ended. Of a captured event there is none.
static TaskPtr record_of(cudaEvent_t handle) {
  std::lock_guard<std::recursive_mutex> lock(api_mutex());
  const Event* event = stream_state().events.find(handle);
  return event && !event->capture ? event->record : nullptr;
}

cudaError_t cudaEventSynchronize(cudaEvent_t handle) {
  refuse_in_kernel();
  if (several_devices() && !in_host_function) wait_for({record_of(handle)});
  return api([&] {
    Event* event = stream_state().events.find(handle);
    if (!event) return cudaErrorInvalidResourceHandle;
    if (!event->capture) was_waited_for();
    return event->capture ? spoil(*event->capture, cudaErrorCapturedEvent) : cudaSuccess;
  });
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  if (several_devices() && !in_host_function) {
    start_submitted();
    if (!has_ended(record_of(event))) return record(cudaErrorNotReady);
  }
  return cudaEventSynchronize(event);
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start_handle, cudaEvent_t end_handle) {
  return api([&] {
    const Event *start = stream_state().events.find(start_handle), *end = stream_state().events.find(end_handle);
    if (!milliseconds) return cudaErrorInvalidValue;
    for (const Event* event : {start, end})
      if (!event || !(event->recorded || event->record) || (event->flags & cudaEventDisableTiming))
        return cudaErrorInvalidResourceHandle;
    if (start->capture || end->capture) return cudaErrorCapturedEvent;
    if (start->device != end->device) return cudaErrorInvalidResourceHandle;
    if (!has_ended(start->record) || !has_ended(end->record)) return cudaErrorNotReady;
    *milliseconds = std::chrono::duration<float, std::milli>(end->time - start->time).count();
    return cudaSuccess;
  });
}

// --- Capture -------------------------------------------------------------------------------------------------------

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  return api([&] {
    if (!mode || *mode < cudaStreamCaptureModeGlobal || *mode > cudaStreamCaptureModeRelaxed)
      return cudaErrorInvalidValue;
    std::swap(*mode, thread_capture_mode);
    return cudaSuccess;
  });
}

cudaError_t cudaStreamBeginCapture(cudaStream_t handle, cudaStreamCaptureMode mode) {
  return with_stream(handle, [&](Stream& stream) {
    if (mode < cudaStreamCaptureModeGlobal || mode > cudaStreamCaptureModeRelaxed) return cudaErrorInvalidValue;
    if (is_legacy(handle)) return cudaErrorStreamCaptureUnsupported;
    if (capture_of(stream)) return cudaErrorIllegalState;
    StreamState& state = stream_state();
    stream.capture.reset(new Capture{state.graphs.insert({}), handle, mode, ++state.last_id});
    stream.capture->blocking = !(stream.flags & cudaStreamNonBlocking);
    stream.frontier.clear();
    state.captures.push_back(stream.capture);
    return cudaSuccess;
  });
}

cudaError_t cudaStreamEndCapture(cudaStream_t handle, cudaGraph_t* graph) {
  return with_stream(handle, [&](Stream& stream) {
    if (!graph) return cudaErrorInvalidValue;
    *graph = nullptr;
    const std::shared_ptr<Capture> capture = capture_of(stream) ? stream.capture : nullptr;
    if (!capture) return cudaErrorIllegalState;
    if (capture->origin != handle) return spoil(*capture, cudaErrorStreamCaptureUnmatched);
    if (capture->mode != cudaStreamCaptureModeRelaxed && capture->thread != std::this_thread::get_id())
      return spoil(*capture, cudaErrorStreamCaptureWrongThread);
    end_capture(*capture);

    // Every node must lead to the origin's frontier: those that none depends on must be in it.
    StreamState& state = stream_state();
    std::set<cudaGraphNode_t> joined(stream.frontier.begin(), stream.frontier.end());
    const Nodes& nodes = state.graphs.find(capture->graph)->nodes;
    for (cudaGraphNode_t node : nodes) {
      const Nodes& dependencies = state.nodes.find(node)->dependencies;
      joined.insert(dependencies.begin(), dependencies.end());
    }
    const cudaError_t error = capture->invalidated            ? cudaErrorStreamCaptureInvalidated
                              : joined.size() != nodes.size() ? cudaErrorStreamCaptureUnjoined
                                                              : cudaSuccess;
    if (error == cudaSuccess)
      *graph = capture->graph;
    else
      destroy_graph(capture->graph);
    return error;
  });
}

static cudaStreamCaptureStatus status_of(const Capture* capture) {
  if (!capture) return cudaStreamCaptureStatusNone;
  return capture->invalidated ? cudaStreamCaptureStatusInvalidated : cudaStreamCaptureStatusActive;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t handle, cudaStreamCaptureStatus* status) {
  return with_stream(handle, [&](Stream& stream) {
    if (!status) return cudaErrorInvalidValue;
    *status = status_of(capture_of(stream));
    for (const auto& capture : stream_state().captures)
      if (is_legacy(handle) && capture->blocking) return cudaErrorStreamCaptureImplicit;
    return cudaSuccess;
  });
}

cudaError_t cudaStreamGetCaptureInfo(cudaStream_t handle, cudaStreamCaptureStatus* status, unsigned long long* id,
                                     cudaGraph_t* graph, const cudaGraphNode_t** dependencies,
                                     const cudaGraphEdgeData** edges, size_t* dependencyCount) {
  const cudaError_t error = cudaStreamIsCapturing(handle, status);
  if (error != cudaSuccess || *status != cudaStreamCaptureStatusActive) return error;
  return with_stream(handle, [&](Stream& stream) {
    if (id) *id = stream.capture->id;
    if (graph) *graph = stream.capture->graph;
    if (dependencies) *dependencies = stream.frontier.data();
    if (edges) *edges = nullptr;
    if (dependencyCount) *dependencyCount = stream.frontier.size();
    return cudaSuccess;
  });
}
