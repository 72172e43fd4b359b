// Tensor maps of two dimensions: what cuTensorMapEncodeTiled accepts, and bulk copies of boxes, swizzled and over
// edges.
#include "testing.h"

#include <cuda.h>
#include <cuda/barrier>

#include <algorithm>

#pragma nv_diag_suppress static_var_with_dynamic_init

namespace cde = cuda::device::experimental;
using block_barrier = cuda::barrier<cuda::thread_scope_block>;

decltype(&cuTensorMapEncodeTiled) encoder() {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult status;
  REQUIRE(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000, cudaEnableDefault, &status) ==
          cudaSuccess);
  REQUIRE(status == cudaDriverEntryPointSuccess);
  return reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(function);
}

struct Matrix {
  cuuint64_t sizes[2], strides[1];
  cuuint32_t box[2], steps[2] = {1, 1};
  CUtensorMapSwizzle swizzle = CU_TENSOR_MAP_SWIZZLE_NONE;

  CUresult encode(CUtensorMap* map, const void* data, cuuint32_t rank = 2) const {
    return encoder()(map, CU_TENSOR_MAP_DATA_TYPE_INT32, rank, const_cast<void*>(data), sizes, strides, box, steps,
                     CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle, CU_TENSOR_MAP_L2_PROMOTION_NONE,
                     CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  }
};

TEST_CASE("an encoder refuses what the copies cannot do") {
  Device<int> data(1024);
  CUtensorMap map;
  const Matrix good = {{20, 30}, {96}, {8, 4}};
  CHECK(good.encode(&map, data.data) == CUDA_SUCCESS);
  CHECK(good.encode(&map, data.data + 1) == CUDA_ERROR_INVALID_VALUE);  // no multiple of 16
  CHECK(good.encode(&map, data.data, 3) == CUDA_ERROR_NOT_SUPPORTED);
  for (const Matrix& bad : {Matrix{{20, 30}, {92}, {8, 4}},
                            {{20, 30}, {64}, {8, 4}},
                            {{0, 30}, {96}, {8, 4}},
                            {{20, 30}, {96}, {8, 257}},
                            {{20, 30}, {96}, {6, 4}},
                            {{20, 30}, {96}, {64, 4}, {1, 1}, CU_TENSOR_MAP_SWIZZLE_128B}})
    CHECK(bad.encode(&map, data.data) == CUDA_ERROR_INVALID_VALUE);

  void* function = &map;
  cudaDriverEntryPointQueryResult status;
  CHECK(cudaGetDriverEntryPointByVersion("cuInit", &function, 12000, cudaEnableDefault, &status) == cudaSuccess);
  CHECK(function == nullptr);
  CHECK(status == cudaDriverEntryPointSymbolNotFound);
}

// A box comes in; its bytes as they lie in shared memory go to `seen`; and the box goes to another matrix.
template <int kBytes>
__global__ void move_box(const __grid_constant__ CUtensorMap from, const __grid_constant__ CUtensorMap to, int* seen,
                         int x, int y, int to_x, int to_y) {
  __shared__ alignas(1024) int box[kBytes / 4];
  __shared__ block_barrier bar;
  if (threadIdx.x == 0) {
    init(&bar, 1);
    cde::fence_proxy_async_shared_cta();
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    cde::cp_async_bulk_tensor_2d_global_to_shared(box, &from, x, y, bar);
    static_cast<void>(cuda::device::barrier_arrive_tx(bar, 1, kBytes));
  }
  bar.wait_parity(false);
  for (int i = int(threadIdx.x); i < kBytes / 4; i += int(blockDim.x)) seen[i] = box[i];
  cde::fence_proxy_async_shared_cta();
  __syncthreads();
  if (threadIdx.x == 0) {
    cde::cp_async_bulk_tensor_2d_shared_to_global(&to, to_x, to_y, box);
    cde::cp_async_bulk_commit_group();
    cde::cp_async_bulk_wait_group_read<0>();
  }
}

template <int kCols, int kRows>
void check_box(CUtensorMapSwizzle swizzle, int x, int y, int to_x, int to_y) {
  constexpr int kWidth = 50, kHeight = 40, kPitch = 52, kToWidth = 36, kToHeight = 33;
  std::vector<int> in(kPitch * kHeight);
  for (size_t i = 0; i < in.size(); ++i) in[i] = int(i) + 1;
  Device<int> from(in), to(std::vector<int>(kToWidth * kToHeight, -7)), seen(kCols * kRows);
  CUtensorMap from_map, to_map;
  REQUIRE(Matrix{{kWidth, kHeight}, {kPitch * 4}, {kCols, kRows}, {1, 1}, swizzle}.encode(&from_map, from.data) ==
          CUDA_SUCCESS);
  REQUIRE(Matrix{{kToWidth, kToHeight}, {kToWidth * 4}, {kCols, kRows}, {1, 1}, swizzle}.encode(&to_map, to.data) ==
          CUDA_SUCCESS);
  move_box<kCols * kRows * 4><<<1, 32>>>(from_map, to_map, seen.data, x, y, to_x, to_y);
  REQUIRE(cudaDeviceSynchronize() == cudaSuccess);

  const auto expected = [&](int col, int row) {  // of the box
    const int c = x + col, r = y + row;
    return c >= 0 && c < kWidth && r >= 0 && r < kHeight ? in[size_t(r * kPitch + c)] : 0;
  };
  const auto box = seen.host(), out = to.host();
  const int bits = swizzle == CU_TENSOR_MAP_SWIZZLE_NONE ? 0 : (16 << swizzle) - 16;
  int misplaced = 0, wrong = 0;
  for (int row = 0; row < kRows; ++row)
    for (int col = 0; col < kCols; ++col) {
      const int byte = 4 * (row * kCols + col);
      misplaced += box[size_t((byte ^ (byte >> 3 & bits)) / 4)] != expected(col, row);
    }
  for (int row = 0; row < kToHeight; ++row)
    for (int col = 0; col < kToWidth; ++col) {
      const int c = col - to_x, r = row - to_y;
      const bool in_box = c >= 0 && c < kCols && r >= 0 && r < kRows;
      wrong += out[size_t(row * kToWidth + col)] != (in_box ? expected(c, r) : -7);
    }
  CHECK(misplaced == 0);
  CHECK(wrong == 0);
}

TEST_CASE("a box comes with zeros outside the tensor, swizzled, and goes without them") {
  for (const int x : {0, 5, 30, 49, -3, 60})
    for (const int y : {0, 37, -2}) {
      check_box<32, 16>(CU_TENSOR_MAP_SWIZZLE_NONE, x, y, 0, 0);
      check_box<32, 16>(CU_TENSOR_MAP_SWIZZLE_128B, x, y, 8, 20);
      check_box<16, 8>(CU_TENSOR_MAP_SWIZZLE_64B, x, y, 30, 30);
      check_box<8, 32>(CU_TENSOR_MAP_SWIZZLE_32B, x, y, -4, -3);
    }
}

__global__ void not_waited_for(const __grid_constant__ CUtensorMap map, int* out) {
  __shared__ alignas(128) int box[8 * 32];
  __shared__ block_barrier bar;
  init(&bar, 1);
  cde::cp_async_bulk_tensor_2d_global_to_shared(box, &map, 0, 0, bar);
  static_cast<void>(cuda::device::barrier_arrive_tx(bar, 1, sizeof box));
  out[0] = box[0];
}

TEST_CASE("without the wait, the box is not there; what is no map or no place for a box is named") {
  Device<int> data(32 * 32, 1), out(1);
  CUtensorMap map;
  REQUIRE(Matrix{{32, 32}, {128}, {32, 8}}.encode(&map, data.data) == CUDA_SUCCESS);
  not_waited_for<<<1, 1>>>(map, out.data);
  CHECK(out.host()[0] != 0x01010101);
  CHECK(contains(fault_of(cudaErrorIllegalInstruction, [&] { not_waited_for<<<1, 1>>>(CUtensorMap{}, out.data); }),
                 "was not made by cuTensorMapEncodeTiled"));
}
