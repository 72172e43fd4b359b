// Streams, events, captures and graphs, behind the handles of the API. Guarded by api_mutex(). With one device, work
// runs when it is submitted, so a stream is always idle between two calls; it is only validated, and recorded where it
// is captured. With several, it goes into queues (queues.h).
#pragma once
#include <chrono>
#include <map>
#include <memory>
#include <thread>
#include <vector>

#include "queues.h"
#include "state.h"

namespace simt {

// Hands out a handle no more than once, so that a destroyed, foreign or uninitialised one is recognised. No handle is
// an address that memory can have.
template <class Handle, class Object>
class HandleTable {
 public:
  explicit HandleTable(uintptr_t first) : next_(first) {}
  Handle insert(Object object) {
    objects_.emplace(++next_, std::move(object));
    return reinterpret_cast<Handle>(next_);
  }
  Object* find(Handle handle) {
    const auto found = objects_.find(reinterpret_cast<uintptr_t>(handle));
    return found == objects_.end() ? nullptr : &found->second;
  }
  template <class Condition>
  void erase_if(Condition condition) {
    for (auto i = objects_.begin(); i != objects_.end();) i = condition(i->second) ? objects_.erase(i) : std::next(i);
  }
  bool erase(Handle handle) { return objects_.erase(reinterpret_cast<uintptr_t>(handle)) != 0; }
  void clear() { objects_.clear(); }

 private:
  uintptr_t next_;
  std::map<uintptr_t, Object> objects_;
};

using Nodes = std::vector<cudaGraphNode_t>;

struct Node {
  cudaGraph_t graph;
  cudaGraphNodeType type;
  Operation operation;
  Nodes dependencies;
  int device;
};

struct Graph {
  Nodes nodes;  // in order of creation
};

struct GraphExec {
  struct Step {
    cudaGraphNode_t node;
    cudaGraphNodeType type;
    Operation operation;
    std::vector<size_t> dependencies;  // as steps
    int device;
  };
  std::vector<Step> steps;  // in an order that respects the dependencies
};

// One stream capture: the stream it began in and those that joined it through events.
struct Capture {
  cudaGraph_t graph;
  cudaStream_t origin;
  cudaStreamCaptureMode mode;
  unsigned long long id;
  std::thread::id thread = std::this_thread::get_id();
  bool blocking = false;  // a stream of it is one that the legacy stream waits for
  bool invalidated = false;
  bool ended = false;
};

struct Stream {
  unsigned flags = 0;
  int priority = 0;
  unsigned long long id = 0;
  std::shared_ptr<Capture> capture;
  Nodes frontier;  // captured nodes that the stream's next one depends on
  // The launch that is its latest operation, or 0, and the era in which it ran.
  uint64_t launch = 0, era = 0;
  int device = current_device();
  uint64_t number = 0;  // with several devices
  TaskPtr last = nullptr;
};

struct Event {
  unsigned flags = 0;
  bool recorded = false;
  std::chrono::steady_clock::time_point time;
  std::shared_ptr<Capture> capture;  // that it was last recorded in
  Nodes frontier;
  int device = current_device();
  TaskPtr record = nullptr;  // with several devices
};

struct StreamState {
  HandleTable<cudaStream_t, Stream> streams{static_cast<uintptr_t>(0xC0DA01) << 40};
  HandleTable<cudaEvent_t, Event> events{static_cast<uintptr_t>(0xC0DA02) << 40};
  HandleTable<cudaGraph_t, Graph> graphs{static_cast<uintptr_t>(0xC0DA03) << 40};
  HandleTable<cudaGraphNode_t, Node> nodes{static_cast<uintptr_t>(0xC0DA04) << 40};
  HandleTable<cudaGraphExec_t, GraphExec> execs{static_cast<uintptr_t>(0xC0DA05) << 40};
  std::vector<std::shared_ptr<Capture>> captures;  // active
  uint64_t era = 0;  // counts what all streams wait for: the host's waits, and operations of the legacy stream
  unsigned long long last_id = 2;  // of streams and captures; 1 and 2 are the default streams
  uint64_t streams_made = 0;
};
StreamState& stream_state();

Stream* find_stream(cudaStream_t stream);  // null for a handle that is none
bool is_legacy(cudaStream_t stream);
Capture* capture_of(Stream& stream);  // null when it is not being captured
cudaGraphNode_t add_node(cudaGraph_t graph, cudaGraphNodeType type, Operation operation, Nodes dependencies,
                         int device);
void destroy_graph(cudaGraph_t graph);
void end_capture(Capture& capture);
cudaError_t spoil(Capture& capture, cudaError_t error);  // which it returns
extern thread_local cudaStreamCaptureMode thread_capture_mode;
// `before`: launch_before() of the operation. `launched`, if it is given, becomes the launch that the operation was, or
// 0 if it was none.
cudaError_t run_operation(const Operation& operation, cudaGraphNodeType type, uint64_t before,
                          uint64_t* launched = nullptr);
// With several devices. The operation that join() puts into the stream comes after these, and after what blocks the
// legacy streams of these devices.
void wait_for_stream(cudaStream_t stream);
bool stream_has_ended(cudaStream_t stream);
cudaError_t join(Stream& stream, const Tasks& tasks, DeviceSet devices = 0);
cudaError_t enqueue_fill(const cudaMemsetParams& parameters, cudaStream_t stream);

}  // namespace simt
