// One block waits for another's flag, whose scope is the block.
// hazard: race global
#include <cuda/atomic>
#include "../program.h"

__global__ void hand_over(int* value, int* word, int* out) {
  cuda::atomic_ref<int, cuda::thread_scope_block> flag(*word);
  if (blockIdx.x == 0) {
    *value = 42;
    flag.store(1, cuda::memory_order_release);  // fault: first
  } else {
    while (flag.load(cuda::memory_order_acquire) == 0) {  // fault: second
    }
    *out = *value;
  }
}

int main() {
  auto* data = zeros<int>(3);
  hand_over<<<2, 1>>>(data, data + 1, data + 2);
  return cudaDeviceSynchronize() != cudaSuccess;
}
