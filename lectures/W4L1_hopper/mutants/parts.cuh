// The right parts of the kernels, so that each mutant contains its fault and nothing else.
#pragma once
#include "../bulk_copy.cuh"
#include "../cluster.cuh"

namespace ladder::hopper::mutants::parts {

// What a block of bulk_copy_kernel keeps in shared memory, made ready by all threads.
struct Buffers {
  float4 tiles[kBuffers][kTile / 4];
  uint64_t barriers[kBuffers];

  __device__ cuda::barrier<cuda::thread_scope_block>& arrived(int buffer) {
    return reinterpret_cast<cuda::barrier<cuda::thread_scope_block>&>(barriers[buffer]);
  }
  __device__ void make_ready() {
#if __CUDA_ARCH__ >= 900
    if (threadIdx.x == 0) {
      for (int buffer = 0; buffer < kBuffers; ++buffer) init(&arrived(buffer), 1);
      cuda::device::experimental::fence_proxy_async_shared_cta();
    }
#endif
    __syncthreads();
  }
  __device__ void fetch(const float* from, int64_t tile, int64_t whole, int buffer) {
#if __CUDA_ARCH__ >= 900
    if (threadIdx.x != 0 || tile >= whole) return;
    constexpr int kBytes = kTile * static_cast<int>(sizeof(float));
    const auto* source = reinterpret_cast<const float4*>(from + tile * kTile);
    cuda::device::memcpy_async_tx(tiles[buffer], source, cuda::aligned_size_t<16>(kBytes), arrived(buffer));
    static_cast<void>(cuda::device::barrier_arrive_tx(arrived(buffer), 1, kBytes));
#endif
  }
  __device__ void fetch_first(const float* from, int64_t whole) {
    for (int buffer = 0; buffer < kBuffers; ++buffer)
      fetch(from, blockIdx.x + int64_t{buffer} * gridDim.x, whole, buffer);
  }
  __device__ void wait(int buffer, bool parity) {
#if __CUDA_ARCH__ >= 900
    arrived(buffer).wait_parity(parity);
#endif
  }
  __device__ void write(float* to, int64_t tile, int buffer) const {
    auto* target = reinterpret_cast<float4*>(to + tile * kTile);
    for (unsigned i = threadIdx.x; i < kTile / 4; i += blockDim.x) target[i] = tiles[buffer][i];
  }
};

// What is left after the whole tiles, or everything where there are none.
__device__ inline void copy_rest(const float* from, float* to, int64_t whole, int64_t n) {
  if (blockIdx.x == 0) copy_by_element(from, to, whole * kTile, n);
}

// Two blocks, so that each has many tiles. The parameter has the same name as the kernels, because errors name the
// kernel as the launch spells it.
template <void (*copy_kernel)(const float*, float*, int64_t, int64_t)>
void launch_tiles(const float* from, float* to, int64_t n, cudaStream_t stream) {
  if (n > 0) copy_kernel<<<2, kThreads, 0, stream>>>(from, to, n, aligned_for<float4>(from, to) ? n / kTile : 0);
}

}  // namespace ladder::hopper::mutants::parts
