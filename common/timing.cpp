#include "common/timing.h"

#include <algorithm>
#include <cmath>
#include <memory>

namespace ladder {
namespace {

using Stream = std::unique_ptr<std::remove_pointer_t<cudaStream_t>, CudaDeleter<cudaStreamDestroy>>;
using Event = std::unique_ptr<std::remove_pointer_t<cudaEvent_t>, CudaDeleter<cudaEventDestroy>>;
using Graph = std::unique_ptr<std::remove_pointer_t<cudaGraph_t>, CudaDeleter<cudaGraphDestroy>>;
using GraphExec = std::unique_ptr<std::remove_pointer_t<cudaGraphExec_t>, CudaDeleter<cudaGraphExecDestroy>>;

Event make_event() {
  cudaEvent_t event;
  CUDA_CHECK(cudaEventCreate(&event));
  return Event(event);
}

int64_t pair_count(Shape shape, const Device& device) {
  const double matrix = 4.0 * static_cast<double>(shape.rows) * static_cast<double>(shape.cols);
  if (matrix <= 0.0 || matrix > 4.0 * device.l2_bytes) return 1;
  const double wanted = std::max(600e6, 8.0 * device.l2_bytes);
  return static_cast<int64_t>(std::clamp(std::ceil(wanted / (2.0 * matrix)), 1.0, 64.0));
}

GraphExec capture(const TimedLaunch& launch, Pool& pool, int64_t launches, cudaStream_t stream) {
  cudaGraph_t captured = nullptr;
  CUDA_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  try {
    for (int64_t i = 0; i < launches; ++i) launch(pool.input(i % pool.pairs()), pool.output(i % pool.pairs()), stream);
  } catch (...) {
    if (cudaStreamEndCapture(stream, &captured) == cudaSuccess) cudaGraphDestroy(captured);
    throw;
  }
  CUDA_CHECK(cudaStreamEndCapture(stream, &captured));
  const Graph graph(captured);
  size_t nodes = 0;
  CUDA_CHECK(cudaGraphGetNodes(graph.get(), nullptr, &nodes));
  if (nodes < static_cast<size_t>(launches))
    throw std::runtime_error("the launcher did not launch on the stream it was given, so its time is not known");
  cudaGraphExec_t executable;
  CUDA_CHECK(cudaGraphInstantiate(&executable, graph.get(), 0));
  return GraphExec(executable);
}

}  // namespace

double Pool::bytes(Shape shape, const Device& device) {
  return static_cast<double>(pair_count(shape, device)) * operator_bytes(shape.rows, shape.cols, false);
}

Pool::Pool(Problem& problem, const Device& device) : problem_(problem) {
  const Shape shape = problem.shape();
  const int64_t pairs = pair_count(shape, device), count = problem.input.size();
  larger_than_cache_ =
      static_cast<double>(pairs) * operator_bytes(shape.rows, shape.cols, false) > 4.0 * device.l2_bytes;
  for (int64_t i = 1; i < pairs; ++i) {
    extra_.push_back({DeviceBuffer(count), DeviceBuffer(count)});
    CUDA_CHECK(
        cudaMemcpy(extra_.back().input.data(), problem.input.data(), count * sizeof(float), cudaMemcpyDeviceToDevice));
  }
}

void Pool::poison() {
  problem_.output.poison();
  for (Pair& pair : extra_) pair.output.poison();
}

Outcome Pool::verify() {
  Outcome outcome = problem_.verify(problem_.output);
  for (size_t i = 0; i < extra_.size() && outcome.failure.empty(); ++i) outcome = problem_.verify(extra_[i].output);
  return outcome;
}

Timing measure(const TimedLaunch& launch, Pool& pool, int iterations) {
  cudaStream_t created;
  CUDA_CHECK(cudaStreamCreateWithFlags(&created, cudaStreamNonBlocking));
  const Stream stream(created);
  const Event begin = make_event(), end = make_event();
  const auto replay = [&](const GraphExec& graph) {
    float milliseconds = 0;
    CUDA_CHECK(cudaEventRecord(begin.get(), created));
    CUDA_CHECK(cudaGraphLaunch(graph.get(), created));
    CUDA_CHECK(cudaEventRecord(end.get(), created));
    CUDA_CHECK(cudaEventSynchronize(end.get()));
    CUDA_CHECK(cudaEventElapsedTime(&milliseconds, begin.get(), end.get()));
    return 1e3 * static_cast<double>(milliseconds);
  };

  // One round over the pool tells how many rounds make two milliseconds; that graph is timed after a warm-up.
  int64_t launches = pool.pairs();
  GraphExec graph = capture(launch, pool, launches, created);
  replay(graph);
  const double rounds = std::ceil(2000.0 / std::max(replay(graph), 1.0));
  launches *= static_cast<int64_t>(std::clamp(rounds, 1.0, std::ceil(4096.0 / static_cast<double>(launches))));
  graph = capture(launch, pool, launches, created);
  for (double warm = 0; warm < 20e3;) warm += std::max(replay(graph), 100.0);

  std::vector<double> samples;
  for (int i = 0; i < iterations; ++i) samples.push_back(replay(graph) / static_cast<double>(launches));
  std::sort(samples.begin(), samples.end());
  const auto percentile = [&](double p) { return samples[std::lround(p * static_cast<double>(samples.size() - 1))]; };
  const double median = percentile(0.5);
  return {median, 100.0 * (percentile(0.9) - percentile(0.1)) / median};
}

}  // namespace ladder
