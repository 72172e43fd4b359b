// The second reduction stores into the memory that thread 0 may still read for the first one: CUB asks for a barrier
// between two uses of one TempStorage.
// hazard: race shared
// detail: write after read
#include <cub/block/block_reduce.cuh>
#include "../program.h"

#include <cstdio>

__global__ void mean_and_maximum(const float* in, float* out) {
  using Reduce = cub::BlockReduce<float, 128>;
  __shared__ Reduce::TempStorage temp;
  const float value = in[threadIdx.x];
  const float sum = Reduce(temp).Sum(value);                         // fault: first
  const float most = Reduce(temp).Reduce(value, cuda::maximum<>{});  // fault: second
  if (threadIdx.x == 0) out[0] = sum / 128, out[1] = most;
}

int main() {
  auto* in = zeros<float>(128);
  auto* out = zeros<float>(2);
  mean_and_maximum<<<1, 128>>>(in, out);
  std::printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
}
