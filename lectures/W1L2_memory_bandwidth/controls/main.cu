// Copies beside the stages, one choice changed at a time.
#include <algorithm>
#include <vector>

#include "lectures/W1L2_memory_bandwidth/kernel.cuh"

namespace ladder::memory_bandwidth::controls {

__global__ void persistent_kernel_1(const float* __restrict__ from, float* __restrict__ to, int64_t n, bool aligned,
                                    int64_t tiles) {
  for (int64_t tile = blockIdx.x; tile < tiles; tile += gridDim.x)
    copy_tile<float4, 1, false>(from, to, tile, n, aligned);
}

void launch_persistent_1(const float* from, float* to, int64_t n, cudaStream_t stream) {
  const int64_t tiles = blocks_for(n, 4 * kThreads);
  const auto blocks = static_cast<unsigned>(std::min(tiles, resident_blocks(persistent_kernel_1, kThreads)));
  const bool aligned = aligned_for<float4>(from, to);
  if (blocks > 0) persistent_kernel_1<<<blocks, kThreads, 0, stream>>>(from, to, n, aligned, tiles);
}

__global__ void backward_kernel(const float* __restrict__ from, float* __restrict__ to, int64_t n, bool aligned) {
  copy_tile<float4, 1, false>(from, to, gridDim.x - 1 - blockIdx.x, n, aligned);
}

void launch_backward(const float* from, float* to, int64_t n, cudaStream_t stream) {
  const auto blocks = static_cast<unsigned>(blocks_for(n, 4 * kThreads));
  if (blocks > 0) backward_kernel<<<blocks, kThreads, 0, stream>>>(from, to, n, aligned_for<float4>(from, to));
}

const std::vector<Stage<Copy>> all = {
    {"04_float4", "16 bytes each", launch_copy<float4>},
    {"04_backward", "04, from the last tile to the first", launch_backward},
    {"04_with_hints_in_blocks_of_128", "04, with the hints of 07 and the blocks of 08",
     launch_copy<float4, 1, 128, true>},
    {"06_persistent", "05 with as many blocks as run at once", launch_persistent},
    {"06_with_tile_of_04", "06, with one float4 per thread and step", launch_persistent_1},
    {"07_streaming", "04 with __ldcs and __stcs", launch_copy<float4, 1, kThreads, true>},
    {"08_block_128", "04 in blocks of 128", launch_copy<float4, 1, 128>},
};

}  // namespace ladder::memory_bandwidth::controls

int main(int argc, char** argv) {
  using ladder::memory_bandwidth::controls::all;
  return ladder::run_all({all.begin(), all.end()}, argc, argv);
}
