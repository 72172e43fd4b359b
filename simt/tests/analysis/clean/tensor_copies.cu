// Boxes of a tensor map that come and go by bulk copies, turned in between; the last ones lie across the edges.
#include <cuda.h>
#include "../program.h"

#include <cuda/barrier>

using Barrier = cuda::barrier<cuda::thread_scope_block>;
namespace cde = cuda::device::experimental;

__global__ void turn(const __grid_constant__ CUtensorMap from, const __grid_constant__ CUtensorMap to) {
  __shared__ alignas(1024) float box[32][32], turned[32][32];
  __shared__ Barrier arrived;
  const int x = threadIdx.x % 32, y = threadIdx.x / 32;
  if (threadIdx.x == 0) {
    init(&arrived, 1);
    cde::fence_proxy_async_shared_cta();
    cde::cp_async_bulk_tensor_2d_global_to_shared(box, &from, 32 * blockIdx.x, 32 * blockIdx.y, arrived);
    static_cast<void>(cuda::device::barrier_arrive_tx(arrived, 1, sizeof box));
  }
  __syncthreads();
  arrived.wait_parity(false);
  for (int row = y; row < 32; row += 8) turned[x][row] = box[row][x];
  cde::fence_proxy_async_shared_cta();
  __syncthreads();
  if (threadIdx.x == 0) {
    cde::cp_async_bulk_tensor_2d_shared_to_global(&to, 32 * blockIdx.y, 32 * blockIdx.x, turned);
    cde::cp_async_bulk_commit_group();
    cde::cp_async_bulk_wait_group_read<0>();
  }
}

CUtensorMap map_of(float* data, cuuint64_t rows, cuuint64_t cols) {
  void* encode = nullptr;
  cudaDriverEntryPointQueryResult status;
  cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &encode, 12000, cudaEnableDefault, &status);
  const cuuint64_t sizes[] = {cols, rows}, strides[] = {cols * sizeof(float)};
  const cuuint32_t box[] = {32, 32}, steps[] = {1, 1};
  CUtensorMap map;
  reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(encode)(
      &map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, data, sizes, strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
      CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  return map;
}

int main() {
  auto* data = zeros<float>(2 * 68 * 44);
  turn<<<dim3(2, 3), 256>>>(map_of(data, 68, 44), map_of(data + 68 * 44, 44, 68));
  return cudaDeviceSynchronize() != cudaSuccess;
}
