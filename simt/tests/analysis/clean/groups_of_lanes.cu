// Lanes that happen to be together share an atomic; lanes with one label add up; groups of eight exchange values.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
#include "../program.h"

namespace cg = cooperative_groups;

__global__ void keep_odd(const int* in, int* out, int* count) {
  const int value = in[blockIdx.x * blockDim.x + threadIdx.x];
  if (value % 2 == 0) return;
  const auto together = cg::coalesced_threads();
  int base = 0;
  if (together.thread_rank() == 0) base = atomicAdd(count, int(together.size()));
  out[together.shfl(base, 0) + together.thread_rank()] = value;
}

__global__ void histogram(const int* in, int* bins) {
  const auto warp = cg::tiled_partition<32>(cg::this_thread_block());
  const int value = in[blockIdx.x * blockDim.x + threadIdx.x] % 5;
  const auto same = cg::labeled_partition(warp, value);
  const int count = cg::reduce(same, 1, cg::plus<int>());
  if (same.thread_rank() == 0) atomicAdd(&bins[value], count);
}

__global__ void scan_by_eight(const int* in, int* out) {
  __shared__ int row[128];
  const auto block = cg::this_thread_block();
  const auto eight = cg::tiled_partition<8>(block);
  const int t = threadIdx.x;
  row[t] = in[t];
  eight.sync();
  const int next = row[t - eight.thread_rank() + (eight.thread_rank() + 1) % 8];
  eight.sync();
  row[t] = cg::inclusive_scan(eight, next);
  eight.sync();
  if (eight.thread_rank() == 0) out[t / 8] = row[t + 7];
  block.sync();
  if (eight.meta_group_rank() == 0) out[16 + t] = row[127 - t];
}

int main() {
  int host[512];
  for (int i = 0; i < 512; ++i) host[i] = i * 7 % 31;
  auto* data = zeros<int>(2048);
  cudaMemcpy(data, host, sizeof host, cudaMemcpyHostToDevice);
  keep_odd<<<4, 128>>>(data, data + 512, data + 1024);
  histogram<<<4, 128>>>(data, data + 1032);
  scan_by_eight<<<1, 128>>>(data, data + 1040);
  return cudaDeviceSynchronize() != cudaSuccess;
}
