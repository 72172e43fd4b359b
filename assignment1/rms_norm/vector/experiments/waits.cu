// Experiment 3: kernels that do nothing but begin, wait for each other and end.
#include <cooperative_groups.h>

#include <algorithm>
#include <cuda/atomic>

#include "common/launch.h"
#include "common/text.h"
#include "experiments.h"

namespace ladder::vector {
namespace {

constexpr int kBlockSize = 512, kMostBlocks = 128;
constexpr int kMany = 9;  // barriers; the difference to one barrier is the time of eight

__device__ inline void wait_for_previous_kernel() {
#if __CUDA_ARCH__ >= 900
  cudaTriggerProgrammaticLaunchCompletion();
  cudaGridDependencySynchronize();
#endif
}

__global__ void nothing_kernel() {}
__global__ void dependent_kernel() { wait_for_previous_kernel(); }

template <int kBarriers>
__global__ void grid_barriers_kernel() {
  for (int i = 0; i < kBarriers; ++i) cooperative_groups::this_grid().sync();
}

__device__ uint64_t words[kMostBlocks];

// The barrier of 12_one_word: every block sees a word of every block.
template <int kBarriers>
__global__ void words_kernel() {
  using Word = cuda::atomic_ref<uint64_t, cuda::thread_scope_device>;
  constexpr auto relaxed = cuda::memory_order_relaxed;
  const unsigned tid = threadIdx.x;
  uint64_t number = Word(words[blockIdx.x]).load(relaxed);
  __syncthreads();
  for (int i = 0; i < kBarriers; ++i) {
    ++number;
    if (tid == 0) Word(words[blockIdx.x]).store(number, relaxed);
    while (tid < gridDim.x && Word(words[tid]).load(relaxed) < number) {
    }
    __syncthreads();
  }
}

struct Kernel {
  const char* name;
  void (*kernel)();
  int blocks, barriers;
  bool together = false, dependent = false;

  void launch(cudaStream_t stream) const {
    cudaLaunchAttribute attribute = {};
    attribute.id = together ? cudaLaunchAttributeCooperative : cudaLaunchAttributeProgrammaticStreamSerialization;
    if (together)
      attribute.val.cooperative = 1;
    else
      attribute.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(static_cast<unsigned>(blocks));
    config.blockDim = dim3(kBlockSize);
    config.stream = stream;
    config.attrs = &attribute;
    config.numAttrs = together || dependent ? 1 : 0;
    CUDA_CHECK(cudaLaunchKernelEx(&config, kernel));
  }
};

}  // namespace

Table waits(const Report& report) {
  const int all = std::min(multiprocessors(), kMostBlocks);
  const Kernel kernels[] = {
      {"nothing, one block", nothing_kernel, 1, 0},
      {"nothing", nothing_kernel, all, 0},
      {"nothing, dependent launch", dependent_kernel, all, 0, false, true},
      {"nothing, cooperative launch", nothing_kernel, all, 0, true},
      {"one grid barrier of cooperative groups", grid_barriers_kernel<1>, all, 1, true},
      {"nine of them", grid_barriers_kernel<kMany>, all, kMany, true},
      {"one barrier of 64-bit words", words_kernel<1>, all, 1, true},
      {"nine of them, of words", words_kernel<kMany>, all, kMany, true},
  };
  Table table;
  table.title = text("Experiment 3: kernels of %d threads per block that compute nothing", kBlockSize);
  table.columns = {{"kernel", "kernel"},
                   {"blocks", "blocks"},
                   {"barriers", "barriers"},
                   {"microseconds", "us"},
                   {"spread_percent", "spread", "%"},
                   {"iterations", nullptr}};
  for (const Kernel& kernel : kernels) {
    if (kernel.dependent && report.device.compute_capability < 90) continue;
    const auto one = [&](int64_t, cudaStream_t stream) { kernel.launch(stream); };
    const Timing timing = measure(NumberedLaunch(one), 1, report.options.iterations);
    Cells& row =
        table.rows.emplace_back(Cells{kernel.name, std::to_string(kernel.blocks), std::to_string(kernel.barriers)});
    append(row, {time_cells(timing), {std::to_string(report.options.iterations)}});
  }
  return table;
}

}  // namespace ladder::vector
