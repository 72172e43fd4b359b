// A bulk copy is read before the barrier that it is bound to has seen it land.
// hazard: race shared
#include <cuda/barrier>
#include "../program.h"

__global__ void copy(const int* in, int* out) {
  __shared__ alignas(16) int row[64];
  __shared__ cuda::barrier<cuda::thread_scope_block> barrier;
  const int i = threadIdx.x;
  if (i == 0) init(&barrier, 64);
  __syncthreads();
  cuda::barrier<cuda::thread_scope_block>::arrival_token token;
  if (i == 0) {
    cuda::device::memcpy_async_tx(row, in, cuda::aligned_size_t<16>(sizeof row), barrier);  // fault: first
    token = cuda::device::barrier_arrive_tx(barrier, 1, sizeof row);
  } else {
    token = barrier.arrive();
  }
  out[i] = row[i];  // fault: second
  barrier.wait(std::move(token));
}

int main() {
  auto* data = zeros<int>(128);
  copy<<<1, 64>>>(data, data + 64);
  return cudaDeviceSynchronize() != cudaSuccess;
}
