// Structures with padding, copied whole; members written by different threads.
#include "../program.h"

struct Item {
  char kind;
  int weight;
  double value;
};

__global__ void shuffle(const Item* in, Item* out) {
  __shared__ Item items[64];
  __shared__ Item best;
  const int t = threadIdx.x;
  items[t] = in[t];
  if (t == 0) best.kind = 'a';
  if (t == 33) best.weight = 3;
  if (t == 34) best.value = 0.5;
  __syncthreads();
  out[t] = items[63 - t];
  if (t == 5) out[64] = best;
}

int main() {
  auto* data = zeros<Item>(129);
  shuffle<<<1, 64>>>(data, data + 64);
  return cudaDeviceSynchronize() != cudaSuccess;
}
