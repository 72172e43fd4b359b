#include "common/timing.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <stdexcept>
#include <thread>

#include "common/copy_kernel.h"
#include "common/text.h"

namespace ladder {
namespace {

using Graph = std::unique_ptr<std::remove_pointer_t<cudaGraph_t>, CudaDeleter<cudaGraphDestroy>>;
using GraphExec = std::unique_ptr<std::remove_pointer_t<cudaGraphExec_t>, CudaDeleter<cudaGraphExecDestroy>>;

using GraphExecs = std::vector<GraphExec>;  // one for each device

GraphExec instantiate(const Graph& graph, int64_t launches) {
  size_t nodes = 0;
  CUDA_CHECK(cudaGraphGetNodes(graph.get(), nullptr, &nodes));
  if (nodes < static_cast<size_t>(launches))
    throw std::runtime_error("the launcher did not launch on the stream it was given, so its time is not known");
  cudaGraphExec_t executable;
  CUDA_CHECK(cudaGraphInstantiate(&executable, graph.get(), 0));
  return GraphExec(executable);
}

GraphExecs capture(const NumberedLaunch& launch, int64_t round, int64_t launches, const Stopwatch& stopwatch) {
  const cudaStream_t stream = stopwatch.stream();
  for (int device = 0; device < stopwatch.devices(); ++device) {
    const OnDevice here(device);
    CUDA_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  }
  try {
    for (int64_t i = 0; i < launches; ++i) launch(i % round, stream);
  } catch (...) {
    for (int device = 0; device < stopwatch.devices(); ++device) {
      const OnDevice here(device);
      cudaGraph_t captured = nullptr;
      if (cudaStreamEndCapture(stream, &captured) == cudaSuccess) cudaGraphDestroy(captured);
    }
    throw;
  }
  std::vector<Graph> graphs;
  for (int device = 0; device < stopwatch.devices(); ++device) {
    const OnDevice here(device);
    cudaGraph_t captured = nullptr;
    CUDA_CHECK(cudaStreamEndCapture(stream, &captured));
    graphs.emplace_back(captured);
  }
  GraphExecs executables;  // which no stream of the thread may be capturing for
  for (int device = 0; device < stopwatch.devices(); ++device) {
    const OnDevice here(device);
    executables.push_back(instantiate(graphs[device], launches));
  }
  return executables;
}

}  // namespace

int64_t copies_for(double bytes, const Device& device, double pool_bytes) {
  if (bytes <= 0.0 || bytes > 8.0 * device.l2_bytes) return 1;
  const double wanted = std::max(pool_bytes, 8.0 * device.l2_bytes);
  return static_cast<int64_t>(std::clamp(std::ceil(wanted / bytes), 1.0, 64.0));
}

namespace {

// What each launch of a round has of its own, on device 0.
double own_bytes(const std::vector<Tensor>& tensors, const Variant& variant) {
  double total = 0;
  for (size_t i = 0; i < tensors.size(); ++i)
    if (tensors[i].device == 0 && !tensors[i].shared && !variant.places[i].absent && variant.places[i].same_as < 0)
      total += tensors[i].bytes();
  return total;
}

}  // namespace

double Pool::bytes(const std::vector<Tensor>& tensors, const Variant& variant, const Device& device) {
  const double own = own_bytes(tensors, variant);
  return static_cast<double>(copies_for(own, device)) * own;
}

Pool::Pool(Problem& problem, const Device& device, double pool_bytes) : problem_(problem) {
  const Case& c = problem.given();
  const double own = own_bytes(c.tensors, problem.variant());
  const int64_t copies = copies_for(own, device, pool_bytes);
  larger_than_cache_ = static_cast<double>(copies) * own > 4.0 * device.l2_bytes;
  for (int64_t i = 1; i < copies; ++i) extra_.push_back(Buffers(c, problem.variant(), &problem.buffers));
}

void Pool::prepare() {
  for (int64_t i = 0; i < copies(); ++i) buffers(i).prepare(problem_.given());
  CUDA_CHECK(
      synchronize(problem_.devices()));  // the stopwatch's stream waits for no other: it would overtake the filling
}

Outcome Pool::verify(const Launcher& launch, int64_t sample) {
  const Case& c = problem_.given();
  for (size_t i = 0; i < c.tensors.size(); ++i)
    if (problem_.buffers.written_over(i)) return problem_.check(launch, {nullptr}, sample);
  Outcome outcome = problem_.buffers.verify(c, problem_.variant(), sample);
  for (int64_t i = 1; i < copies() && outcome.failure.empty(); ++i)  // most are the first one's bits
    if (sample != INT64_MAX || !buffers(i).same_as_verified(problem_.buffers))
      outcome = buffers(i).verify(c, problem_.variant(), sample);
  return outcome;
}

Timing summarize(std::vector<double> microseconds) {
  std::sort(microseconds.begin(), microseconds.end());
  const auto percentile = [&](double p) {
    return microseconds[std::lround(p * static_cast<double>(microseconds.size() - 1))];
  };
  const double median = percentile(0.5);
  return {median, 100.0 * (percentile(0.9) - percentile(0.1)) / median};
}

void require_possible(const std::string& what, double bytes, const Timing& timing, const Device& device) {
  if (device.peak_bytes_per_second <= 0) return;
  const double least = 1e6 * bytes / device.peak_bytes_per_second;
  if (!(timing.microseconds >= least))
    throw std::runtime_error(text("measurement error: %s took %.2f us, but the datasheet's bandwidth needs %.2f us",
                                  what.c_str(), timing.microseconds, least));
}

Stopwatch::Stopwatch(int devices) : events_(devices) {
  if (devices > 1) return;
  cudaStream_t stream;
  CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  stream_.reset(stream);
}

void Stopwatch::record(size_t event) {
  for (int device = 0; device < devices(); ++device) {
    const OnDevice here(device);
    if (event == events_[device].size()) {
      cudaEvent_t created;
      CUDA_CHECK(cudaEventCreate(&created));
      events_[device].emplace_back(created);
    }
    CUDA_CHECK(cudaEventRecord(events_[device][event].get(), stream()));
  }
}

std::vector<double> Stopwatch::laps(int count, const std::function<void()>& work) {
  record(0);
  for (int lap = 1; lap <= count; ++lap) work(), record(lap);
  std::vector<double> microseconds(count);
  for (const std::vector<Event>& events : events_) {
    CUDA_CHECK(cudaEventSynchronize(events[count].get()));
    for (int lap = 1; lap <= count; ++lap) {
      float milliseconds = 0;
      CUDA_CHECK(cudaEventElapsedTime(&milliseconds, events[lap - 1].get(), events[lap].get()));
      microseconds[lap - 1] = std::max(microseconds[lap - 1], 1e3 * static_cast<double>(milliseconds));
    }
  }
  return microseconds;
}

Timing measure(const NumberedLaunch& launch, int64_t round, int iterations, double warm_up_microseconds, int pause,
               int devices) {
  Stopwatch stopwatch(devices);
  const auto replays = [&](const GraphExecs& graphs, int count) {
    return stopwatch.laps(count, [&] {
      for (int device = 0; device < devices; ++device) {
        const OnDevice here(device);
        CUDA_CHECK(cudaGraphLaunch(graphs[device].get(), stopwatch.stream()));
      }
    });
  };
  const auto replay = [&](const GraphExecs& graphs) { return replays(graphs, 1).front(); };

  // One round tells how many rounds make two milliseconds; that graph is timed after a warm-up.
  int64_t launches = round;
  GraphExecs graph = capture(launch, round, launches, stopwatch);
  replay(graph);
  const double rounds = std::ceil(2000.0 / std::max(replay(graph), 1.0));
  // What waits for another device must not wait for the CPU, which may wait for room to submit a long graph.
  const double most = devices > 1 ? 1024.0 : 4096.0;
  launches *= static_cast<int64_t>(std::clamp(rounds, 1.0, std::ceil(most / static_cast<double>(launches))));
  graph = capture(launch, round, launches, stopwatch);
  for (double warm = 0; warm < warm_up_microseconds;) warm += std::max(replay(graph), 100.0);

  std::vector<double> samples;
  for (int i = 0; pause > 0 && i < iterations; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(pause));
    samples.push_back(replays(graph, 2).back());
  }
  if (pause == 0) {
    samples = replays(graph, iterations + 1);
    samples.erase(samples.begin());
  }
  for (double& sample : samples) sample /= static_cast<double>(launches);
  return summarize(std::move(samples));
}

Timing measure(const Launcher& launch, Problem& problem, Pool& pool, int iterations, double warm_up_microseconds,
               int pause) {
  const auto one = [&](int64_t number, cudaStream_t stream) { problem.launch(launch, pool.arguments(number), stream); };
  return measure(NumberedLaunch(one), pool.copies(), iterations, warm_up_microseconds, pause, problem.devices());
}

Timing measure_copy(double bytes, const Device& device, int iterations, int pause) {
  const int64_t count = static_cast<int64_t>(bytes / 8.0), step = (count + 63) / 64 * 64,
                copies = copies_for(bytes, device);
  const auto from = allocate<float>(copies * step), to = allocate<float>(copies * step);
  CUDA_CHECK(cudaMemset(from.get(), 0x5a, copies * step * sizeof(float)));
  const auto one = [&](int64_t number, cudaStream_t stream) {
    launch_copy(from.get() + number * step, to.get() + number * step, count, stream);
  };
  // The first work that a program times: a GPU that has been idle takes a while to raise its clock.
  return measure(NumberedLaunch(one), copies, iterations, 300e3, pause);
}

}  // namespace ladder
