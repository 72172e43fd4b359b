// Experiment 4: the document's "multi-stream execution". Eight tensors are normalized one after the other in one
// stream, at the same time in eight streams, and as one tensor of eight times as many tokens, by the kernel of 08.
#include <algorithm>
#include <array>
#include <memory>

#include "arena.h"
#include "common/memory.h"
#include "common/text.h"
#include "experiments.h"

namespace ladder::serving {
namespace {

constexpr int kTensors = 8;

using Stream = std::unique_ptr<std::remove_pointer_t<cudaStream_t>, CudaDeleter<cudaStreamDestroy>>;
using Event = std::unique_ptr<std::remove_pointer_t<cudaEvent_t>, CudaDeleter<cudaEventDestroy>>;

Stream new_stream() {
  cudaStream_t stream;
  CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  return Stream(stream);
}
Event new_event() {
  cudaEvent_t event;
  CUDA_CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  return Event(event);
}

// Streams that branch off another and join it again. In a capture they become branches of the graph.
class Fork {
 public:
  Fork() {
    for (int i = 0; i < kTensors; ++i) streams_[i] = new_stream(), joined_[i] = new_event();
    begun_ = new_event();
  }
  template <class Work>  // work(i, stream)
  void run(cudaStream_t stream, Work work) {
    CUDA_CHECK(cudaEventRecord(begun_.get(), stream));
    for (int i = 0; i < kTensors; ++i) {
      CUDA_CHECK(cudaStreamWaitEvent(streams_[i].get(), begun_.get(), 0));
      work(i, streams_[i].get());
      CUDA_CHECK(cudaEventRecord(joined_[i].get(), streams_[i].get()));
      CUDA_CHECK(cudaStreamWaitEvent(stream, joined_[i].get(), 0));
    }
  }

 private:
  std::array<Stream, kTensors> streams_;
  std::array<Event, kTensors> joined_;
  Event begun_;
};

}  // namespace

Table multi_stream(const Report& report) {
  constexpr Dtype kDtype = Dtype::half;
  constexpr int64_t kHiddenSize = 4096;
  const int iterations = std::min(report.options.iterations, 15);
  Table table;
  table.title = text(
      "Experiment 4: %d tensors of %lld columns, half, with a residual, each launch with cold memory, in one\n"
      "CUDA graph; microseconds for all of them, median of %d samples",
      kTensors, static_cast<long long>(kHiddenSize), iterations);
  table.columns = {{"num_tokens", "tokens of each"},
                   {"hidden_size", nullptr},
                   {"tensors", nullptr},
                   {"one_stream_microseconds", "one stream us"},
                   {"eight_streams_microseconds", "eight streams us"},
                   {"one_launch_microseconds", "one launch us"}};
  const Arena arena(report.device);
  const Launch launch = stage_of(report, "08_registers").launch<RmsNormServing>();
  Fork fork;
  for (const int64_t num_tokens : {1, 16, 64, 256, 1024}) {
    const int64_t sets = std::max<int64_t>(arena.copies(true, kTensors * num_tokens, kHiddenSize, kDtype), 1);
    const auto call = [&](int64_t set, int i) {
      return arena.call(true, num_tokens, kHiddenSize, kDtype, kTensors * set + i);
    };
    const auto timed = [&](const NumberedLaunch& launch) {
      return text("%.2f", measure(launch, sets, iterations, 4e3).microseconds);
    };
    const std::string one_stream = timed([&](int64_t set, cudaStream_t stream) {
      for (int i = 0; i < kTensors; ++i) launch(call(set, i), stream);
    });
    const std::string eight_streams = timed([&](int64_t set, cudaStream_t stream) {
      fork.run(stream, [&](int i, cudaStream_t own) { launch(call(set, i), own); });
    });
    const std::string one_launch = timed([&](int64_t set, cudaStream_t stream) {
      launch(arena.call(true, kTensors * num_tokens, kHiddenSize, kDtype, set), stream);
    });
    table.rows.push_back({std::to_string(num_tokens), std::to_string(kHiddenSize), std::to_string(kTensors), one_stream,
                          eight_streams, one_launch});
  }
  return table;
}

}  // namespace ladder::serving
