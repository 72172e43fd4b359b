// What several workers share: the claims of blocks, the places of shared variables, atomics in the order of blocks, a
// flag behind a fence, a fault. With the argument "race" the blocks race for one word, which must be reported.
#include <cstdio>

constexpr unsigned kBlocks = 256;

__global__ void count(const float* x, unsigned* sum) {
  __shared__ unsigned warps[4];
  const bool is_zero = x[blockIdx.x * blockDim.x + threadIdx.x] == 0.0f;
  const unsigned found = __popc(__ballot_sync(0xffffffffu, is_zero));
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = found;
  __syncthreads();
  if (threadIdx.x == 0) atomicAdd(sum, warps[0] + warps[1] + warps[2] + warps[3]);
}

__device__ unsigned tickets;
__global__ void last_block_adds(unsigned* parts, unsigned* sum) {
  if (threadIdx.x > 0) return;
  parts[blockIdx.x] = blockIdx.x;
  __threadfence();
  if (atomicAdd(&tickets, 1u) != gridDim.x - 1) return;
  __threadfence();
  for (unsigned block = 0; block < gridDim.x; ++block) *sum += parts[block];
  tickets = 0;
}

__global__ void fault(int* p) {
  if (blockIdx.x == 50) p[1 << 20] = 1;
}

__global__ void race(volatile unsigned* word) { *word = *word + 1; }

int main(int argc, char**) {
  float* x;
  unsigned *parts, *sum, host[2];
  cudaMalloc(&x, kBlocks * 128 * sizeof(float));
  cudaMalloc(&parts, kBlocks * sizeof(unsigned));
  cudaMalloc(&sum, sizeof host);
  cudaMemset(x, 0, kBlocks * 128 * sizeof(float));
  for (int turn = 0; turn < 10; ++turn) {
    cudaMemset(sum, 0, sizeof host);
    count<<<kBlocks, 128>>>(x, sum);
    last_block_adds<<<kBlocks, 32>>>(parts, sum + 1);
    cudaMemcpy(host, sum, sizeof host, cudaMemcpyDeviceToHost);
    if (host[0] != kBlocks * 128 || host[1] != kBlocks * (kBlocks - 1) / 2) return 1;
  }
  if (argc > 1) race<<<kBlocks, 128>>>(sum);
  cudaDeviceSynchronize();
  fault<<<100, 64>>>(reinterpret_cast<int*>(sum));
  return cudaDeviceSynchronize() == cudaErrorIllegalAddress ? 0 : 1;
}
