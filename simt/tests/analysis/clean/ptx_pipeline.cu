// Bulk copies and barriers in memory, all of them in inline PTX, in two buffers.
#include <cstdint>
#include "../program.h"

__device__ unsigned shared_address(const void* pointer) {
  return static_cast<unsigned>(__cvta_generic_to_shared(pointer));
}
__device__ void wait(unsigned barrier, unsigned parity) {
  asm volatile(
      "{ .reg .pred p; wait: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1; @!p bra wait; }" ::"r"(barrier),
      "r"(parity)
      : "memory");
}

__global__ void reverse_rows(const int* in, int* out, int rows) {
  __shared__ alignas(16) int buffer[2][64];
  __shared__ uint64_t full[2], empty[2];
  const int i = threadIdx.x;
  if (i < 2) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared_address(&full[i])));
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 64;" ::"r"(shared_address(&empty[i])));
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();
  for (int r = 0; r < rows; ++r) {
    const int stage = r % 2, round = r / 2;
    if (i == 0) {
      wait(shared_address(&empty[stage]), (round + 1) % 2);
      asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(&full[stage])),
                   "n"(sizeof buffer[0])
                   : "memory");
      asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                       shared_address(buffer[stage])),
                   "l"(in + 64 * r), "n"(sizeof buffer[0]), "r"(shared_address(&full[stage]))
                   : "memory");
    }
    wait(shared_address(&full[stage]), round % 2);
    out[64 * r + i] = buffer[stage][63 - i];
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(&empty[stage])) : "memory");
  }
}

int main() {
  auto* data = zeros<int>(1024);
  reverse_rows<<<1, 64>>>(data, data + 512, 8);
  return cudaDeviceSynchronize() != cudaSuccess;
}
