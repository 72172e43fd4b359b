// Bulk copies that a barrier in shared memory counts in bytes, in two buffers.
#include <cuda/barrier>
#include <utility>
#include "../program.h"

using Barrier = cuda::barrier<cuda::thread_scope_block>;

__global__ void reverse_rows(const int* in, int* out, int rows) {
  __shared__ alignas(16) int buffer[2][64];
  __shared__ Barrier full[2];
  const int i = threadIdx.x;
  if (i < 2) init(&full[i], 64);
  __syncthreads();
  const auto start = [&](int r) {
    if (i != 0) return full[r % 2].arrive();
    cuda::device::memcpy_async_tx(buffer[r % 2], in + 64 * r, cuda::aligned_size_t<16>(sizeof buffer[0]), full[r % 2]);
    return cuda::device::barrier_arrive_tx(full[r % 2], 1, sizeof buffer[0]);
  };
  Barrier::arrival_token token = start(0);
  for (int r = 0; r < rows; ++r) {
    full[r % 2].wait(std::move(token));
    if (r + 1 < rows) token = start(r + 1);
    out[64 * r + i] = buffer[r % 2][63 - i];
    __syncthreads();
  }
}

int main() {
  auto* data = zeros<int>(1024);
  reverse_rows<<<1, 64>>>(data, data + 512, 8);
  return cudaDeviceSynchronize() != cudaSuccess;
}
