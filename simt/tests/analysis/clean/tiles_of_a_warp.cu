// Cooperative groups: tiles of a warp that exchange values through shared memory, and groups of the lanes that are
// here.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include "../program.h"

namespace cg = cooperative_groups;

__global__ void sums(const int* in, int* out, int* total) {
  __shared__ int row[64];
  cg::thread_block block = cg::this_thread_block();
  cg::thread_block_tile<8> tile = cg::tiled_partition<8>(block);
  const int t = block.thread_rank();
  row[t] = in[t];
  tile.sync();
  int sum = 0;
  for (unsigned i = 0; i < tile.size(); ++i) sum += row[t / 8 * 8 + i];
  tile.sync();
  row[t] = cg::reduce(tile, sum, cg::plus<int>());
  block.sync();
  out[t] = row[63 - t];
  if (in[t] % 3 == 0) {
    cg::coalesced_group together = cg::coalesced_threads();
    const int of_all = cg::reduce(together, 1, cg::plus<int>());
    if (together.thread_rank() == 0) atomicAdd(total, of_all);
  }
}

int main() {
  int numbers[64];
  for (int i = 0; i < 64; ++i) numbers[i] = i;
  auto* data = zeros<int>(129);
  cudaMemcpy(data, numbers, sizeof numbers, cudaMemcpyHostToDevice);
  sums<<<1, 64>>>(data, data + 64, data + 128);
  return cudaDeviceSynchronize() != cudaSuccess;
}
