// Stream capture and graphs.
#include <thread>

#include "testing.h"

namespace {

__global__ void add(int* value, int n) { *value += n; }
__global__ void multiply(int* value, int n) { *value *= n; }

struct Captured {
  cudaStream_t a, b;
  cudaEvent_t fork, joined;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  Captured() {
    REQUIRE(cudaStreamCreate(&a) == cudaSuccess);
    REQUIRE(cudaStreamCreate(&b) == cudaSuccess);
    REQUIRE(cudaEventCreateWithFlags(&fork, cudaEventDisableTiming) == cudaSuccess);
    REQUIRE(cudaEventCreateWithFlags(&joined, cudaEventDisableTiming) == cudaSuccess);
  }
  ~Captured() {
    if (exec) CHECK(cudaGraphExecDestroy(exec) == cudaSuccess);
    if (graph) CHECK(cudaGraphDestroy(graph) == cudaSuccess);
    cudaEventDestroy(fork);
    cudaEventDestroy(joined);
    cudaStreamDestroy(a);
    cudaStreamDestroy(b);
    cudaGetLastError();
  }
  void begin(cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal) {
    REQUIRE(cudaStreamBeginCapture(a, mode) == cudaSuccess);
  }
  cudaError_t end() { return cudaStreamEndCapture(a, &graph); }
  size_t nodes() const {
    size_t count = 0;
    CHECK(cudaGraphGetNodes(graph, nullptr, &count) == cudaSuccess);
    return count;
  }
  size_t edges() const {
    size_t count = 0;
    CHECK(cudaGraphGetEdges(graph, nullptr, nullptr, &count) == cudaSuccess);
    return count;
  }
  void launch() {
    if (!exec) REQUIRE(cudaGraphInstantiate(&exec, graph, 0) == cudaSuccess);
    CHECK(cudaGraphLaunch(exec, a) == cudaSuccess);
  }
};

}  // namespace

TEST_CASE("captured work runs at each launch of the graph, and not before") {
  Captured c;
  Device<int> d(1);
  int source = 3, host = -1;
  c.begin();
  CHECK(cudaMemcpyAsync(d.data, &source, 4, cudaMemcpyHostToDevice, c.a) == cudaSuccess);
  add<<<1, 1, 0, c.a>>>(d.data, 4);
  multiply<<<1, 1, 0, c.a>>>(d.data, 10);
  CHECK(cudaMemcpyAsync(&host, d.data, 4, cudaMemcpyDeviceToHost, c.a) == cudaSuccess);
  REQUIRE(c.end() == cudaSuccess);
  CHECK(c.nodes() == 4);
  CHECK(c.edges() == 3);
  CHECK(host == -1);
  CHECK(d.host()[0] == 0);
  c.launch();
  CHECK(host == 70);
  source = 5;
  c.launch();
  CHECK(host == 90);

  cudaGraphNode_t nodes[4];
  size_t count = 4;
  const cudaGraphNodeType types[] = {cudaGraphNodeTypeMemcpy, cudaGraphNodeTypeKernel, cudaGraphNodeTypeKernel,
                                     cudaGraphNodeTypeMemcpy};
  REQUIRE(cudaGraphGetNodes(c.graph, nodes, &count) == cudaSuccess);
  for (int i = 0; i < 4; ++i) {
    cudaGraphNodeType type;
    CHECK(cudaGraphNodeGetType(nodes[i], &type) == cudaSuccess);
    CHECK(type == types[i]);
  }
}

TEST_CASE("kernel arguments are those of the capture") {
  Captured c;
  Device<int> d(1);
  c.begin();
  for (int i = 1; i <= 3; ++i) add<<<1, 1, 0, c.a>>>(d.data, i);
  REQUIRE(c.end() == cudaSuccess);
  c.launch();
  CHECK(d.host()[0] == 6);
}

TEST_CASE("streams join a capture through events") {
  Captured c;
  Device<int> d(2);
  c.begin();
  add<<<1, 1, 0, c.a>>>(d.data, 1);
  CHECK(cudaEventRecord(c.fork, c.a) == cudaSuccess);
  CHECK(cudaStreamWaitEvent(c.b, c.fork) == cudaSuccess);
  cudaStreamCaptureStatus status;
  CHECK(cudaStreamIsCapturing(c.b, &status) == cudaSuccess);
  CHECK(status == cudaStreamCaptureStatusActive);
  add<<<1, 1, 0, c.b>>>(d.data + 1, 2);
  add<<<1, 1, 0, c.a>>>(d.data, 1);

  SUBCASE("and leave it at its end") {
    CHECK(cudaEventRecord(c.joined, c.b) == cudaSuccess);
    CHECK(cudaStreamWaitEvent(c.a, c.joined) == cudaSuccess);
    multiply<<<1, 1, 0, c.a>>>(d.data, 10);
    REQUIRE(c.end() == cudaSuccess);
    CHECK(c.nodes() == 4);
    CHECK(c.edges() == 4);
    c.launch();
    CHECK(d.host() == std::vector<int>{20, 2});
    CHECK(cudaStreamIsCapturing(c.b, &status) == cudaSuccess);
    CHECK(status == cudaStreamCaptureStatusNone);
    add<<<1, 1, 0, c.b>>>(d.data, 1);
    CHECK(d.host()[0] == 21);
    CHECK(cudaEventQuery(c.joined) == cudaErrorCapturedEvent);
  }
  SUBCASE("unless they were not joined") {
    CHECK(c.end() == cudaErrorStreamCaptureUnjoined);
    CHECK(c.graph == nullptr);
  }
  SUBCASE("and cannot end it") {
    CHECK(cudaStreamEndCapture(c.b, &c.graph) == cudaErrorStreamCaptureUnmatched);
    CHECK(c.end() == cudaErrorStreamCaptureInvalidated);
  }
}

TEST_CASE("what would wait for the device is refused and spoils the capture") {
  Captured c;
  Device<int> d(1);
  int host = 0;
  cudaError_t error = cudaSuccess, expected = cudaErrorStreamCaptureUnsupported;
  c.begin();
  SUBCASE("cudaStreamSynchronize") { error = cudaStreamSynchronize(c.a); }
  SUBCASE("cudaStreamQuery") { error = cudaStreamQuery(c.a); }
  SUBCASE("cudaDeviceSynchronize") { error = cudaDeviceSynchronize(); }
  SUBCASE("cudaMalloc") {
    int* p = nullptr;
    error = cudaMalloc(&p, 4);
  }
  SUBCASE("cudaFree") { error = cudaFree(d.data); }
  SUBCASE("the legacy stream") {
    expected = cudaErrorStreamCaptureImplicit;
    add<<<1, 1>>>(d.data, 1);
    error = cudaGetLastError();
  }
  SUBCASE("cudaMemcpy") {
    expected = cudaErrorStreamCaptureImplicit;
    error = cudaMemcpy(&host, d.data, 4, cudaMemcpyDeviceToHost);
  }
  SUBCASE("an event of uncaptured work") {
    expected = cudaErrorStreamCaptureIsolation;
    CHECK(cudaEventRecord(c.fork, c.b) == cudaSuccess);
    error = cudaStreamWaitEvent(c.a, c.fork);
  }
  SUBCASE("a captured event") {
    expected = cudaErrorCapturedEvent;
    CHECK(cudaEventRecord(c.fork, c.a) == cudaSuccess);
    error = cudaEventSynchronize(c.fork);
  }
  CHECK(cudaGetErrorName(error) == std::string(cudaGetErrorName(expected)));
  add<<<1, 1, 0, c.a>>>(d.data, 1);
  CHECK(cudaGetLastError() == cudaErrorStreamCaptureInvalidated);
  CHECK(c.end() == cudaErrorStreamCaptureInvalidated);
  CHECK(c.graph == nullptr);
  add<<<1, 1, 0, c.a>>>(d.data, 1);
  CHECK(cudaStreamSynchronize(c.a) == cudaSuccess);
  CHECK(d.host()[0] == 1);
}

TEST_CASE("a relaxed capture allows allocation") {
  Captured c;
  c.begin(cudaStreamCaptureModeRelaxed);
  int* p = nullptr;
  CHECK(cudaMalloc(&p, 4) == cudaSuccess);
  add<<<1, 1, 0, c.a>>>(p, 1);
  CHECK(cudaFree(p) == cudaSuccess);
  REQUIRE(c.end() == cudaSuccess);
  cudaGetLastError();
}

TEST_CASE("captures are begun and ended as CUDA asks") {
  Captured c;
  CHECK(cudaStreamBeginCapture(nullptr, cudaStreamCaptureModeGlobal) == cudaErrorStreamCaptureUnsupported);
  CHECK(c.end() == cudaErrorIllegalState);
  c.begin();
  CHECK(cudaStreamBeginCapture(c.a, cudaStreamCaptureModeGlobal) == cudaErrorIllegalState);
  cudaError_t elsewhere = cudaSuccess;
  std::thread([&] { elsewhere = cudaStreamEndCapture(c.a, &c.graph); }).join();
  CHECK(elsewhere == cudaErrorStreamCaptureWrongThread);
  CHECK(c.end() == cudaErrorStreamCaptureInvalidated);

  Captured other;
  c.begin();
  other.begin();
  CHECK(cudaEventRecord(c.fork, c.a) == cudaSuccess);
  CHECK(cudaStreamWaitEvent(other.a, c.fork) == cudaErrorStreamCaptureMerge);
  CHECK(other.end() == cudaErrorStreamCaptureInvalidated);
  CHECK(c.end() == cudaErrorStreamCaptureInvalidated);
}

TEST_CASE("wrong arguments are refused while capturing") {
  Captured c;
  Device<int> d(1);
  int host = 0;
  c.begin();
  CHECK(cudaMemcpyAsync(&host, d.data, 8, cudaMemcpyDeviceToHost, c.a) == cudaErrorInvalidValue);
  add<<<1, 5000, 0, c.a>>>(d.data, 1);
  CHECK(cudaGetLastError() == cudaErrorInvalidValue);
  REQUIRE(c.end() == cudaSuccess);
  CHECK(c.nodes() == 0);
  c.launch();
}

TEST_CASE("graphs built by hand") {
  Captured c;
  Device<int> d(1);
  REQUIRE(cudaGraphCreate(&c.graph, 0) == cudaSuccess);
  CHECK(c.nodes() == 0);

  cudaGraphNode_t set, increment, copy, call, empty;
  cudaMemsetParams zero = {};
  zero.dst = d.data;
  zero.value = 7;
  zero.elementSize = 4;
  zero.width = 1;
  zero.height = 1;
  REQUIRE(cudaGraphAddMemsetNode(&set, c.graph, nullptr, 0, &zero) == cudaSuccess);

  int* pointer = d.data;
  int amount = 2;
  void* arguments[] = {&pointer, &amount};
  cudaKernelNodeParams kernel = {};
  kernel.func = (void*)add;
  kernel.gridDim = kernel.blockDim = dim3(1);
  kernel.kernelParams = arguments;
  REQUIRE(cudaGraphAddKernelNode(&increment, c.graph, &set, 1, &kernel) == cudaSuccess);
  amount = 100;  // the node has its own copy

  int host = 0, calls = 0;
  REQUIRE(cudaGraphAddMemcpyNode1D(&copy, c.graph, &increment, 1, &host, d.data, 4, cudaMemcpyDeviceToHost) ==
          cudaSuccess);
  cudaHostNodeParams function = {[](void* p) { ++*static_cast<int*>(p); }, &calls};
  REQUIRE(cudaGraphAddHostNode(&call, c.graph, &copy, 1, &function) == cudaSuccess);
  REQUIRE(cudaGraphAddEmptyNode(&empty, c.graph, nullptr, 0) == cudaSuccess);
  CHECK(cudaGraphAddDependencies(c.graph, &empty, &set, 1) == cudaSuccess);  // the last made comes first
  CHECK(c.nodes() == 5);
  CHECK(c.edges() == 4);
  c.launch();
  CHECK(host == 9);
  CHECK(calls == 1);

  amount = 5;
  CHECK(cudaGraphExecKernelNodeSetParams(c.exec, increment, &kernel) == cudaSuccess);
  c.launch();
  CHECK(host == 12);

  SUBCASE("as part of another") {
    Captured parent;
    cudaGraphNode_t child;
    REQUIRE(cudaGraphCreate(&parent.graph, 0) == cudaSuccess);
    REQUIRE(cudaGraphAddChildGraphNode(&child, parent.graph, nullptr, 0, c.graph) == cudaSuccess);
    parent.launch();
    CHECK(host == 9);
    CHECK(calls == 3);
  }
  SUBCASE("as a clone") {
    Captured clone;
    REQUIRE(cudaGraphClone(&clone.graph, c.graph) == cudaSuccess);
    CHECK(clone.edges() == 4);
    clone.launch();
    CHECK(host == 9);
  }
  SUBCASE("with a circle") {
    CHECK(cudaGraphAddDependencies(c.graph, &call, &empty, 1) == cudaSuccess);
    cudaGraphExec_t exec;
    CHECK(cudaGraphInstantiate(&exec, c.graph, 0) == cudaErrorInvalidValue);
  }
  SUBCASE("with nodes of another graph") {
    Captured other;
    REQUIRE(cudaGraphCreate(&other.graph, 0) == cudaSuccess);
    CHECK(cudaGraphAddEmptyNode(&empty, other.graph, &set, 1) == cudaErrorInvalidValue);
  }
}

TEST_CASE("an instance is brought up to date by a graph of the same shape") {
  Captured c, other, longer;
  Device<int> d(1);
  c.begin();
  add<<<1, 1, 0, c.a>>>(d.data, 1);
  REQUIRE(c.end() == cudaSuccess);
  c.launch();
  other.begin();
  add<<<1, 1, 0, other.a>>>(d.data, 10);
  REQUIRE(other.end() == cudaSuccess);
  cudaGraphExecUpdateResultInfo info;
  CHECK(cudaGraphExecUpdate(c.exec, other.graph, &info) == cudaSuccess);
  c.launch();
  CHECK(d.host()[0] == 11);
  longer.begin();
  for (int i = 0; i < 2; ++i) add<<<1, 1, 0, longer.a>>>(d.data, 10);
  REQUIRE(longer.end() == cudaSuccess);
  CHECK(cudaGraphExecUpdate(c.exec, longer.graph, &info) == cudaErrorGraphExecUpdateFailure);
  CHECK(info.result == cudaGraphExecUpdateErrorTopologyChanged);
}

TEST_CASE("an instance outlives its graph, and a graph can be captured into another") {
  Captured c, outer;
  Device<int> d(1);
  c.begin();
  add<<<1, 1, 0, c.a>>>(d.data, 1);
  REQUIRE(c.end() == cudaSuccess);
  REQUIRE(cudaGraphInstantiate(&c.exec, c.graph, nullptr, nullptr, 0) == cudaSuccess);  // the form before CUDA 12
  CHECK(cudaGraphDestroy(c.graph) == cudaSuccess);
  CHECK(cudaGraphDestroy(c.graph) == cudaErrorInvalidValue);
  c.graph = nullptr;
  CHECK(cudaGraphUpload(c.exec, c.a) == cudaSuccess);
  c.launch();
  outer.begin();
  CHECK(cudaGraphLaunch(c.exec, outer.a) == cudaSuccess);
  CHECK(cudaGraphLaunch(c.exec, outer.a) == cudaSuccess);
  REQUIRE(outer.end() == cudaSuccess);
  outer.launch();
  CHECK(d.host()[0] == 3);
  cudaGraphExec_t wrong = c.exec;
  CHECK(cudaGraphExecDestroy(c.exec) == cudaSuccess);
  c.exec = nullptr;
  CHECK(cudaGraphLaunch(wrong, c.a) == cudaErrorInvalidValue);
  outer.launch();
  CHECK(d.host()[0] == 5);
}

TEST_CASE("memory that was freed since the capture is an error of the launch") {
  Captured c;
  int* p = nullptr;
  int host = 0;
  REQUIRE(cudaMalloc(&p, 4) == cudaSuccess);
  c.begin();
  CHECK(cudaMemcpyAsync(&host, p, 4, cudaMemcpyDeviceToHost, c.a) == cudaSuccess);
  REQUIRE(c.end() == cudaSuccess);
  REQUIRE(cudaGraphInstantiate(&c.exec, c.graph, 0) == cudaSuccess);
  CHECK(cudaFree(p) == cudaSuccess);
  CHECK(cudaGraphLaunch(c.exec, c.a) == cudaErrorInvalidValue);
}

TEST_CASE("allocations inside a graph are refused with a sentence") {
  cudaGraph_t graph;
  REQUIRE(cudaGraphCreate(&graph, 0) == cudaSuccess);
  cudaGraphNode_t node;
  cudaMemAllocNodeParams parameters = {};
  const std::string said = stderr_of([&] {
    CHECK(cudaGraphAddMemAllocNode(&node, graph, nullptr, 0, &parameters) == cudaErrorNotSupported);
    CHECK(cudaGraphAddMemFreeNode(&node, graph, nullptr, 0, nullptr) == cudaErrorNotSupported);
  });
  CHECK(contains(said, "cudaGraphAddMemAllocNode: the CPU device has no allocations inside graphs"));
  CHECK(cudaGetLastError() == cudaErrorNotSupported);
  cudaGraphDestroy(graph);
}
