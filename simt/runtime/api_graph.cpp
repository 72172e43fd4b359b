// Graphs: nodes are closures with dependencies; a launch runs them one after the other in an order that respects these.
#include <algorithm>

#include "simt/launch.h"
#include "streams.h"

namespace simt {

namespace {

// The graph's nodes as steps in order of creation, except that a node comes after those it depends on; false where
// dependencies run in a circle.
bool make_steps(const Graph& graph, std::vector<GraphExec::Step>& steps) {
  StreamState& state = stream_state();
  std::map<cudaGraphNode_t, size_t> place;
  Nodes waiting = graph.nodes;
  while (!waiting.empty()) {
    Nodes blocked;
    for (cudaGraphNode_t handle : waiting) {
      const Node& node = *state.nodes.find(handle);
      std::vector<size_t> dependencies;
      for (cudaGraphNode_t dependency : node.dependencies)
        if (const auto found = place.find(dependency); found != place.end()) dependencies.push_back(found->second);
      if (dependencies.size() < node.dependencies.size()) {
        blocked.push_back(handle);
        continue;
      }
      std::sort(dependencies.begin(), dependencies.end());
      place[handle] = steps.size();
      steps.push_back({handle, node.type, node.operation, std::move(dependencies), node.device});
    }
    if (blocked.size() == waiting.size()) return false;
    waiting = std::move(blocked);
  }
  return true;
}

// With several devices the steps are operations of their own, each on its node's device.
cudaError_t submit_steps(const std::vector<GraphExec::Step>& steps, uint64_t stream) {
  Tasks tasks;
  for (const GraphExec::Step& step : steps) {
    Submission s;
    s.operation = step.operation;
    s.type = step.type;
    s.device = step.device;
    s.stream = (stream + 1) << 24 | tasks.size();
    for (const size_t dependency : step.dependencies) s.before.push_back(tasks[dependency]);
    if (step.dependencies.size() == 1) s.launch_before = tasks[step.dependencies[0]];
    tasks.push_back(submit(std::move(s)));
  }
  const cudaError_t error = wait_until([&] { return std::all_of(tasks.begin(), tasks.end(), has_ended); },
                                       [] { return std::string("a graph"); });
  follow(tasks);
  return error;
}

cudaError_t run_steps(const std::vector<GraphExec::Step>& steps) {
  if (several_devices()) return submit_steps(steps, stream_of_operation());
  std::vector<uint64_t> launches;  // that the steps were
  for (const GraphExec::Step& step : steps) {
    const uint64_t before = step.dependencies.size() == 1 ? launches[step.dependencies[0]] : 0;
    const cudaError_t error = run_operation(step.operation, step.type, before, &launches.emplace_back());
    if (error != cudaSuccess) return error;
  }
  return cudaSuccess;
}

bool belong(cudaGraph_t graph, const cudaGraphNode_t* nodes, size_t count) {
  if (!nodes && count) return false;
  return std::all_of(nodes, nodes + count, [&](cudaGraphNode_t handle) {
    const Node* node = stream_state().nodes.find(handle);
    return node && node->graph == graph;
  });
}

// A node is what an asynchronous call leaves in the graph when a private stream is captured into it.
template <class Submit>
cudaError_t add_by_capture(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies, size_t count,
                           Submit submit) {
  StreamState& state = stream_state();
  if (!node || !state.graphs.find(graph) || !belong(graph, dependencies, count)) return cudaErrorInvalidValue;
  Stream recorder;
  recorder.capture.reset(new Capture{graph, nullptr, cudaStreamCaptureModeRelaxed, 0});
  recorder.frontier.assign(dependencies, dependencies + count);
  const cudaStream_t stream = state.streams.insert(std::move(recorder));
  const cudaError_t error = submit(stream);
  if (error == cudaSuccess) *node = state.streams.find(stream)->frontier.at(0);
  state.streams.erase(stream);
  return error;
}

cudaError_t submit_kernel(const cudaKernelNodeParams& p, cudaStream_t stream) {
  if (!p.func || p.extra) return cudaErrorInvalidValue;
  return launch_untyped({"(kernel node of a graph)", p.gridDim, p.blockDim, p.sharedMemBytes, stream}, p.func,
                        p.kernelParams);
}

// Hands out a list as CUDA does: only its length if there is no array; otherwise as much of it as the array takes,
// followed by nulls.
template <class Item>
void give_list(const std::vector<Item>& list, Item* array, size_t* count) {
  if (array)
    for (size_t i = 0; i < *count; ++i) array[i] = i < list.size() ? list[i] : nullptr;
  *count = array ? std::min(*count, list.size()) : list.size();
}

}  // namespace
}  // namespace simt

using namespace simt;

// --- Building ------------------------------------------------------------------------------------------------------

cudaError_t cudaGraphCreate(cudaGraph_t* graph, unsigned int flags) {
  return api([&] {
    if (!graph || flags) return cudaErrorInvalidValue;
    *graph = stream_state().graphs.insert({});
    return cudaSuccess;
  });
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  return api([&] {
    if (!stream_state().graphs.find(graph)) return cudaErrorInvalidValue;
    destroy_graph(graph);
    return cudaSuccess;
  });
}

cudaError_t cudaGraphClone(cudaGraph_t* clone, cudaGraph_t original) {
  return api([&] {
    StreamState& state = stream_state();
    if (!clone || !state.graphs.find(original)) return cudaErrorInvalidValue;
    *clone = state.graphs.insert({});
    const Nodes originals = state.graphs.find(original)->nodes;
    std::map<cudaGraphNode_t, cudaGraphNode_t> copies;
    for (cudaGraphNode_t handle : originals) {
      const Node& node = *state.nodes.find(handle);
      copies[handle] = add_node(*clone, node.type, node.operation, node.dependencies, node.device);
    }
    for (const auto& [from, copy] : copies)
      for (cudaGraphNode_t& dependency : state.nodes.find(copy)->dependencies) dependency = copies.at(dependency);
    return cudaSuccess;
  });
}

cudaError_t cudaGraphAddEmptyNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                                  size_t dependencyCount) {
  return api([&] {
    return add_by_capture(node, graph, dependencies, dependencyCount, [](cudaStream_t stream) {
      return enqueue(
          stream, [] { return cudaSuccess; }, cudaGraphNodeTypeEmpty);
    });
  });
}

cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                                   size_t dependencyCount, const cudaKernelNodeParams* parameters) {
  return api([&] {
    if (!parameters) return cudaErrorInvalidValue;
    return add_by_capture(node, graph, dependencies, dependencyCount,
                          [&](cudaStream_t stream) { return submit_kernel(*parameters, stream); });
  });
}

cudaError_t cudaGraphAddMemcpyNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                                   size_t dependencyCount, const cudaMemcpy3DParms* parameters) {
  return api([&] {
    return add_by_capture(node, graph, dependencies, dependencyCount,
                          [&](cudaStream_t stream) { return cudaMemcpy3DAsync(parameters, stream); });
  });
}

cudaError_t cudaGraphAddMemcpyNode1D(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                                     size_t dependencyCount, void* dst, const void* src, size_t count,
                                     cudaMemcpyKind kind) {
  return api([&] {
    return add_by_capture(node, graph, dependencies, dependencyCount,
                          [&](cudaStream_t stream) { return cudaMemcpyAsync(dst, src, count, kind, stream); });
  });
}

cudaError_t cudaGraphAddMemsetNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                                   size_t dependencyCount, const cudaMemsetParams* parameters) {
  return api([&] {
    if (!parameters) return cudaErrorInvalidValue;
    return add_by_capture(node, graph, dependencies, dependencyCount,
                          [&](cudaStream_t stream) { return enqueue_fill(*parameters, stream); });
  });
}

cudaError_t cudaGraphAddHostNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                                 size_t dependencyCount, const cudaHostNodeParams* parameters) {
  return api([&] {
    if (!parameters) return cudaErrorInvalidValue;
    return add_by_capture(node, graph, dependencies, dependencyCount, [&](cudaStream_t stream) {
      return cudaLaunchHostFunc(stream, parameters->fn, parameters->userData);
    });
  });
}

cudaError_t cudaGraphAddChildGraphNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                                       size_t dependencyCount, cudaGraph_t child) {
  return api([&] {
    std::vector<GraphExec::Step> steps;
    const Graph* found = stream_state().graphs.find(child);
    if (!found || child == graph || !make_steps(*found, steps)) return cudaErrorInvalidValue;
    return add_by_capture(node, graph, dependencies, dependencyCount, [&](cudaStream_t stream) {
      return enqueue(
          stream, [steps] { return run_steps(steps); }, cudaGraphNodeTypeGraph);
    });
  });
}

cudaError_t cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t* from, const cudaGraphNode_t* to,
                                     const cudaGraphEdgeData*, size_t count) {
  return api([&] {
    if (!stream_state().graphs.find(graph) || !belong(graph, from, count) || !belong(graph, to, count))
      return cudaErrorInvalidValue;
    for (size_t i = 0; i < count; ++i) {
      Nodes& dependencies = stream_state().nodes.find(to[i])->dependencies;
      if (from[i] == to[i] || std::find(dependencies.begin(), dependencies.end(), from[i]) != dependencies.end())
        return cudaErrorInvalidValue;
      dependencies.push_back(from[i]);
    }
    return cudaSuccess;
  });
}

// --- Asking --------------------------------------------------------------------------------------------------------

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count) {
  return api([&] {
    const Graph* found = stream_state().graphs.find(graph);
    if (!found || !count) return cudaErrorInvalidValue;
    give_list(found->nodes, nodes, count);
    return cudaSuccess;
  });
}

cudaError_t cudaGraphGetRootNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count) {
  return api([&] {
    const Graph* found = stream_state().graphs.find(graph);
    if (!found || !count) return cudaErrorInvalidValue;
    Nodes roots;
    for (cudaGraphNode_t node : found->nodes)
      if (stream_state().nodes.find(node)->dependencies.empty()) roots.push_back(node);
    give_list(roots, nodes, count);
    return cudaSuccess;
  });
}

cudaError_t cudaGraphGetEdges(cudaGraph_t graph, cudaGraphNode_t* from, cudaGraphNode_t* to, cudaGraphEdgeData* edges,
                              size_t* count) {
  return api([&] {
    const Graph* found = stream_state().graphs.find(graph);
    if (!found || !count || !from != !to) return cudaErrorInvalidValue;
    Nodes sources, targets;
    for (cudaGraphNode_t node : found->nodes)
      for (cudaGraphNode_t dependency : stream_state().nodes.find(node)->dependencies) {
        sources.push_back(dependency);
        targets.push_back(node);
      }
    if (edges) std::fill(edges, edges + *count, cudaGraphEdgeData{});
    size_t same = *count;
    give_list(sources, from, &same);
    give_list(targets, to, count);
    return cudaSuccess;
  });
}

cudaError_t cudaGraphNodeGetType(cudaGraphNode_t node, cudaGraphNodeType* type) {
  return api([&] {
    const Node* found = stream_state().nodes.find(node);
    if (!found || !type) return cudaErrorInvalidValue;
    *type = found->type;
    return cudaSuccess;
  });
}

// --- Running -------------------------------------------------------------------------------------------------------

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long flags) {
  return api([&] {
    const Graph* found = stream_state().graphs.find(graph);
    if (!exec || !found || flags > 15) return cudaErrorInvalidValue;
    if (flags & cudaGraphInstantiateFlagDeviceLaunch)
      return not_supported("cudaGraphInstantiateFlagDeviceLaunch: the CPU device does not launch from kernels");
    GraphExec created;
    if (!make_steps(*found, created.steps)) return cudaErrorInvalidValue;
    *exec = stream_state().execs.insert(std::move(created));
    return cudaSuccess;
  });
}
cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long flags) {
  return cudaGraphInstantiate(exec, graph, flags);
}

cudaError_t cudaGraphUpload(cudaGraphExec_t exec, cudaStream_t stream) {
  return api([&] {
    if (!stream_state().execs.find(exec)) return cudaErrorInvalidValue;
    return find_stream(stream) ? cudaSuccess : cudaErrorInvalidResourceHandle;
  });
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
  return api([&] {
    const GraphExec* found = stream_state().execs.find(exec);
    if (!found) return cudaErrorInvalidValue;
    if (is_capturing(stream) || several_devices())  // a copy: what runs later may outlive this one
      return enqueue(
          stream, [steps = found->steps] { return run_steps(steps); }, cudaGraphNodeTypeGraph);
    return enqueue(
        stream, [found] { return run_steps(found->steps); }, cudaGraphNodeTypeGraph);
  });
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
  return api([&] { return stream_state().execs.erase(exec) ? cudaSuccess : cudaErrorInvalidValue; });
}

cudaError_t cudaGraphExecUpdate(cudaGraphExec_t exec, cudaGraph_t graph, cudaGraphExecUpdateResultInfo* result) {
  return api([&] {
    GraphExec* old = stream_state().execs.find(exec);
    const Graph* found = stream_state().graphs.find(graph);
    std::vector<GraphExec::Step> steps;
    if (!old || !found || !result || !make_steps(*found, steps)) return cudaErrorInvalidValue;
    *result = {cudaGraphExecUpdateSuccess, nullptr, nullptr};
    if (steps.size() != old->steps.size()) result->result = cudaGraphExecUpdateErrorTopologyChanged;
    for (size_t i = 0; i < steps.size() && result->result == cudaGraphExecUpdateSuccess; ++i) {
      if (steps[i].dependencies != old->steps[i].dependencies)
        result->result = cudaGraphExecUpdateErrorTopologyChanged;
      else if (steps[i].type != old->steps[i].type)
        result->result = cudaGraphExecUpdateErrorNodeTypeChanged;
      else
        continue;
      result->errorNode = steps[i].node;
    }
    if (result->result != cudaGraphExecUpdateSuccess) return cudaErrorGraphExecUpdateFailure;
    for (size_t i = 0; i < steps.size(); ++i) old->steps[i].operation = std::move(steps[i].operation);
    return cudaSuccess;
  });
}

cudaError_t cudaGraphExecKernelNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                             const cudaKernelNodeParams* parameters) {
  return api([&] {
    GraphExec* found = stream_state().execs.find(exec);
    if (!found || !parameters) return cudaErrorInvalidValue;
    const auto step = std::find_if(found->steps.begin(), found->steps.end(),
                                   [&](const GraphExec::Step& s) { return s.node == node; });
    if (step == found->steps.end() || step->type != cudaGraphNodeTypeKernel) return cudaErrorInvalidValue;
    StreamState& state = stream_state();
    const cudaGraph_t scratch = state.graphs.insert({});
    cudaGraphNode_t changed = nullptr;
    const cudaError_t error = add_by_capture(&changed, scratch, nullptr, 0,
                                             [&](cudaStream_t stream) { return submit_kernel(*parameters, stream); });
    if (error == cudaSuccess) step->operation = state.nodes.find(changed)->operation;
    destroy_graph(scratch);
    return error;
  });
}
