// A block of a cluster reads its neighbour's shared memory, and only its own block has waited.
// hazard: race shared
#include <cooperative_groups.h>
#include "../program.h"

namespace cg = cooperative_groups;

__global__ void __cluster_dims__(2, 1, 1) swap(const float* in, float* out) {
  __shared__ float row[64];
  cg::cluster_group cluster = cg::this_cluster();
  row[threadIdx.x] = 0;
  cluster.sync();
  row[threadIdx.x] = in[blockIdx.x * 64 + threadIdx.x];  // fault: first
  __syncthreads();
  const float* other = cluster.map_shared_rank(row, cluster.block_rank() ^ 1);
  out[blockIdx.x * 64 + threadIdx.x] = other[threadIdx.x];  // fault: second
  cluster.sync();
}

int main() {
  auto* data = zeros<float>(512);
  swap<<<4, 64>>>(data, data + 256);
  return cudaDeviceSynchronize() != cudaSuccess;
}
