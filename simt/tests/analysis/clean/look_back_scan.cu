// A prefix sum in one pass: each block publishes its own sum, then looks back over the blocks before it until it finds
// one whose whole prefix is known.
#include "../program.h"

constexpr int kThreads = 64;
enum State { kNothing, kOwnSum, kPrefix };

__global__ void scan(const int* in, int* out, int* own_sums, int* prefixes, volatile int* states, int* next) {
  __shared__ int block, before, values[kThreads];
  const int t = threadIdx.x;
  if (t == 0) block = atomicAdd(next, 1);
  __syncthreads();
  values[t] = in[kThreads * block + t];
  __syncthreads();
  for (int step = 1; step < kThreads; step *= 2) {
    const int other = t >= step ? values[t - step] : 0;
    __syncthreads();
    values[t] += other;
    __syncthreads();
  }
  if (t == 0) {
    const int own = values[kThreads - 1];
    own_sums[block] = own;
    __threadfence();
    if (block > 0) states[block] = kOwnSum;
    int sum = 0;
    for (int b = block - 1; b >= 0; --b) {
      int state;
      while ((state = states[b]) == kNothing) {
      }
      __threadfence();
      sum += state == kPrefix ? prefixes[b] : own_sums[b];
      if (state == kPrefix) break;
    }
    prefixes[block] = sum + own;
    __threadfence();
    states[block] = kPrefix;
    before = sum;
  }
  __syncthreads();
  out[kThreads * block + t] = before + values[t];
}

int main() {
  constexpr int kBlocks = 60;
  auto* data = zeros<int>((2 * kThreads + 3) * kBlocks + 1);
  int *out = data + kThreads * kBlocks, *own = out + kThreads * kBlocks, *prefix = own + kBlocks,
      *state = prefix + kBlocks;
  scan<<<kBlocks, kThreads>>>(data, out, own, prefix, state, state + kBlocks);
  return cudaDeviceSynchronize() != cudaSuccess;
}
