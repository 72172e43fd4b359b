// A file, and so a module, of its own: no other kernel's launch may load it.
#include "first_launch.h"

namespace memory_bandwidth {
namespace {

constexpr int kThreads = 256;

template <int kNumber>
__global__ void newcomer_kernel(const float* __restrict__ from, float* __restrict__ to) {
  const int i = blockIdx.x * kThreads + threadIdx.x;
  to[i] = from[i];
}

template <int kNumber>
void launch_newcomer(const float* from, float* to, cudaStream_t stream) {
  newcomer_kernel<kNumber><<<kNewcomerFloats / kThreads, kThreads, 0, stream>>>(from, to);
}

}  // namespace

std::vector<void (*)(const float*, float*, cudaStream_t)> newcomers() {
  return {launch_newcomer<0>, launch_newcomer<1>, launch_newcomer<2>, launch_newcomer<3>,
          launch_newcomer<4>, launch_newcomer<5>, launch_newcomer<6>, launch_newcomer<7>};
}

}  // namespace memory_bandwidth
