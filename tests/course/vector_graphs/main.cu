// Every stage of the vector ladder, recorded in a graph with two lengths of row in turn; the graph is replayed. Prints
// a line per stage, and returns 1 if a replay does not give the bits of a plain launch.
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "build/generated/assignment1/rms_norm/vector/stages.cuh"
#include "common/check.h"

namespace {

using ladder::AnyStage, ladder::RmsNormVector;

// A row of that length, and what a plain launch makes of it.
struct Row {
  Row(const AnyStage& stage, int64_t n, float* scratch)
      : launch(stage.launch<RmsNormVector>()),
        n(n),
        input(ladder::allocate<float>(n)),
        output(ladder::allocate<float>(n)) {
    std::vector<float> values(n);
    for (int64_t i = 0; i < n; ++i) values[i] = static_cast<float>(i % 97 + n % 89) * 0.125f - 3.0f;
    CUDA_CHECK(cudaMemcpy(input.get(), values.data(), n * sizeof(float), cudaMemcpyHostToDevice));
    start(scratch, nullptr);
    expected = result();
  }
  void start(float* scratch, cudaStream_t stream) const {
    launch(input.get(), nullptr, output.get(), scratch, n, 1e-6f, stream);
  }
  std::vector<float> result() const {
    std::vector<float> values(n);
    CUDA_CHECK(cudaDeviceSynchronize());
    CUDA_CHECK(cudaMemcpy(values.data(), output.get(), n * sizeof(float), cudaMemcpyDeviceToHost));
    return values;
  }
  bool is_right() const { return std::memcmp(result().data(), expected.data(), n * sizeof(float)) == 0; }

  RmsNormVector::Launch launch;
  int64_t n;
  ladder::DeviceMemory<float> input, output;
  std::vector<float> expected;
};

bool replays(const AnyStage& stage) {
  const auto scratch = ladder::allocate<float>(RmsNormVector::kScratch);
  const Row rows[] = {{stage, 70001, scratch.get()}, {stage, 1000, scratch.get()}};
  cudaStream_t stream;
  cudaGraph_t graph;
  cudaGraphExec_t executable;
  CUDA_CHECK(cudaStreamCreate(&stream));
  CUDA_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  for (int i = 0; i < 3; ++i)
    for (const Row& row : rows) row.start(scratch.get(), stream);
  CUDA_CHECK(cudaStreamEndCapture(stream, &graph));
  CUDA_CHECK(cudaGraphInstantiate(&executable, graph, 0));
  bool right = true;
  for (int i = 0; i < 3; ++i) {
    for (const Row& row : rows) CUDA_CHECK(cudaMemset(row.output.get(), 0xff, row.n * sizeof(float)));
    CUDA_CHECK(cudaGraphLaunch(executable, stream));
    for (const Row& row : rows) right &= row.is_right();
  }
  CUDA_CHECK(cudaGraphExecDestroy(executable));
  CUDA_CHECK(cudaGraphDestroy(graph));
  CUDA_CHECK(cudaStreamDestroy(stream));
  return right;
}

}  // namespace

int main() {
  int device = 0, major = 0, wrong = 0;
  CUDA_CHECK(cudaGetDevice(&device));
  CUDA_CHECK(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device));
  for (const AnyStage& stage : ladder::vector::stages) {
    const bool possible = stage.needs.compute_capability <= 10 * major, right = possible && replays(stage);
    std::printf("%s: %s\n", stage.name, !possible ? "skipped" : right ? "same bits" : "a replay differs");
    wrong += possible && !right;
  }
  return wrong > 0;
}
