// A block of a cluster may end, and its shared memory with it, while another still reads there.
// hazard: race shared
#include <cooperative_groups.h>
#include "../program.h"

namespace cg = cooperative_groups;

__global__ void __cluster_dims__(2, 1, 1) swap(const float* in, float* out) {
  __shared__ float row[64];
  cg::cluster_group cluster = cg::this_cluster();
  row[threadIdx.x] = in[blockIdx.x * 64 + threadIdx.x];
  const float* other = cluster.map_shared_rank(row, cluster.block_rank() ^ 1);
  cluster.sync();
  out[blockIdx.x * 64 + threadIdx.x] = other[threadIdx.x];  // fault: first
}

int main() {
  auto* data = zeros<float>(512);
  swap<<<4, 64>>>(data, data + 256);
  return cudaDeviceSynchronize() != cudaSuccess;
}
