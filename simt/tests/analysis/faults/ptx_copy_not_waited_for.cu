// A bulk copy in inline PTX is read before the barrier that it is bound to has seen it land.
// hazard: race shared
#include <cstdint>
#include "../program.h"

__device__ unsigned shared_address(const void* pointer) {
  return static_cast<unsigned>(__cvta_generic_to_shared(pointer));
}

__global__ void copy(const int* in, int* out) {
  __shared__ alignas(16) int row[64];
  __shared__ uint64_t barrier;
  const int i = threadIdx.x;
  const unsigned b = shared_address(&barrier), to = shared_address(row), bytes = sizeof row;
  if (i == 0) asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(b));
  __syncthreads();
  if (i == 0) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(b), "r"(bytes) : "memory");
    const char* from = reinterpret_cast<const char*>(in);
#define COPY "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
    asm volatile(COPY ::"r"(to), "l"(from), "r"(bytes), "r"(b) : "memory");  // fault: first
  }
  out[i] = row[i];  // fault: second
  asm volatile("{ .reg .pred p; wait: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], 0; @!p bra wait; }" ::"r"(b)
               : "memory");
}

int main() {
  auto* data = zeros<int>(128);
  copy<<<1, 64>>>(data, data + 64);
  return cudaDeviceSynchronize() != cudaSuccess;
}
