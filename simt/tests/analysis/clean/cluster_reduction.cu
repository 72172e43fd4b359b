// A sum over the blocks of a cluster through each other's shared memory; once with arrive and wait apart.
#include <cooperative_groups.h>
#include "../program.h"

namespace cg = cooperative_groups;

__global__ void __cluster_dims__(4, 1, 1) sum(const float* in, float* out, int rounds) {
  __shared__ float partial[64];
  __shared__ float total;
  cg::cluster_group cluster = cg::this_cluster();
  const int t = threadIdx.x;
  for (int round = 0; round < rounds; ++round) {
    partial[t] = in[blockIdx.x * 64 + t] + round;
    __syncthreads();
    for (int half = 32; half > 0; half /= 2) {
      if (t < half) partial[t] += partial[t + half];
      __syncthreads();
    }
    if (t == 0) total = partial[0];
    cluster.barrier_arrive();
    const float scale = 0.5f;
    cluster.barrier_wait();
    float all = 0;
    for (unsigned rank = 0; rank < cluster.num_blocks(); ++rank) all += *cluster.map_shared_rank(&total, rank);
    out[blockIdx.x * 64 + t] = scale * all;
    cluster.sync();
  }
}

__global__ void __cluster_dims__(2, 1, 1) histogram(const unsigned char* in, unsigned* out) {
  __shared__ unsigned bins[64];
  cg::cluster_group cluster = cg::this_cluster();
  bins[threadIdx.x] = 0;
  cluster.sync();
  const unsigned bin = in[blockIdx.x * 64 + threadIdx.x] % 128;
  atomicAdd(cluster.map_shared_rank(&bins[bin % 64], bin / 64), 1);
  cluster.sync();
  atomicAdd(&out[64 * cluster.block_rank() + threadIdx.x], bins[threadIdx.x]);
}

int main() {
  auto* data = zeros<float>(1024);
  auto* bins = zeros<unsigned>(128);
  sum<<<8, 64>>>(data, data + 512, 4);
  histogram<<<8, 64>>>(reinterpret_cast<unsigned char*>(data), bins);
  return cudaDeviceSynchronize() != cudaSuccess;
}
