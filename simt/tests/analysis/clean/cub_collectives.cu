// CUB's collectives with a barrier between two uses of their memory, for blocks and tiles that are not full.
#include <cub/cub.cuh>
#include "../program.h"

#include <cstdio>

template <cub::BlockReduceAlgorithm algorithm, int threads>
__global__ void reduce_twice(const float* in, float* out, int valid) {
  using Reduce = cub::BlockReduce<float, threads, algorithm>;
  __shared__ typename Reduce::TempStorage temp;
  const float value = in[threadIdx.x];
  const float sum = Reduce(temp).Sum(value);
  __syncthreads();
  const float most = Reduce(temp).Reduce(value, cuda::maximum<>{}, valid);
  if (threadIdx.x == 0) out[0] = sum + most;
}

template <cub::BlockScanAlgorithm algorithm, int threads>
__global__ void scan_tile(const float* in, float* out, int valid) {
  using Load = cub::BlockLoad<float, threads, 4, cub::BLOCK_LOAD_TRANSPOSE>;
  using Store = cub::BlockStore<float, threads, 4, cub::BLOCK_STORE_WARP_TRANSPOSE>;
  using Scan = cub::BlockScan<float, threads, algorithm>;
  __shared__ union {
    typename Load::TempStorage load;
    typename Scan::TempStorage scan;
    typename Store::TempStorage store;
  } temp;
  float items[4], total;
  Load(temp.load).Load(in, items, valid, 0.f);
  __syncthreads();
  Scan(temp.scan).ExclusiveSum(items, items, total);
  __syncthreads();
  Store(temp.store).Store(out, items, valid);
}

__global__ void parts_of_a_warp(const float* in, float* out) {
  using Reduce = cub::WarpReduce<float, 8>;
  using Scan = cub::WarpScan<float>;
  __shared__ Reduce::TempStorage reduce[8];
  __shared__ Scan::TempStorage scan[2];
  float before;
  Scan(scan[threadIdx.x / 32]).ExclusiveSum(in[threadIdx.x], before);
  out[threadIdx.x] = before + Reduce(reduce[threadIdx.x / 8]).Sum(in[threadIdx.x], 5);
}

int main() {
  auto* in = zeros<float>(512);
  auto* out = zeros<float>(512);
  reduce_twice<cub::BLOCK_REDUCE_WARP_REDUCTIONS, 128><<<1, 128>>>(in, out, 128);
  reduce_twice<cub::BLOCK_REDUCE_WARP_REDUCTIONS, 100><<<1, 100>>>(in, out, 99);
  reduce_twice<cub::BLOCK_REDUCE_RAKING, 100><<<1, 100>>>(in, out, 99);
  reduce_twice<cub::BLOCK_REDUCE_RAKING, 20><<<1, 20>>>(in, out, 19);
  reduce_twice<cub::BLOCK_REDUCE_RAKING_COMMUTATIVE_ONLY, 128><<<1, 128>>>(in, out, 128);
  scan_tile<cub::BLOCK_SCAN_RAKING, 128><<<1, 128>>>(in, out, 500);
  scan_tile<cub::BLOCK_SCAN_WARP_SCANS, 64><<<1, 64>>>(in, out, 256);
  parts_of_a_warp<<<1, 64>>>(in, out);
  std::printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
}
