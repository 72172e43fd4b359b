// transpose_v7: the tile comes and goes by bulk tensor copies. One thread names a box of the matrix; the copy engine of
// the SM computes the addresses, cuts the box at the edges of the matrix, and puts its rows into shared memory in the
// order of a swizzle (counters: no global requests of the threads; registers; instructions). The threads turn the tile
// where it lies, as blocks of 4 × 4, and the copy engine takes it away.
//
// A box may be 128 bytes wide with this swizzle, so a tile of 64 × 64 is two boxes of 32 columns and 64 rows. Tensor
// copies need addresses and rows of multiples of 16 bytes; other matrices use loads and stores. Needs sm_90.
#define CCCL_IGNORE_DEPRECATED_API  // CUDA 13.5 deprecates these names; CUDA 12.0 has no others for them
#include <cuda.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <cuda/barrier>

#include "common/launch.h"
#include "common/operators/transpose.h"

namespace ladder::transpose::transpose_v7 {

using Barrier = cuda::barrier<cuda::thread_scope_block>;

constexpr int kTile = 64;
constexpr int kBoxCols = 32;  // floats in the 128 bytes of the swizzle's row: eight vectors
constexpr int kThreads = 256;

// [half][row][vector]: columns 0 to 31 of each row, then columns 32 to 63. The copy engine puts vector v of row r at
// place v ^ (r % 8), which needs an address that is a multiple of 1024.
using Tile = float4[kTile / kBoxCols][kTile][kBoxCols / 4];

__device__ inline float4& vector(Tile& tile, int row, int v) { return tile[v / 8][row][v % 8 ^ row % 8]; }
__device__ inline float& element(Tile& tile, int row, int col) {
  return reinterpret_cast<float*>(&vector(tile, row, col / 4))[col % 4];
}

// In eight neighbouring lanes both the rows and the columns of the 4 × 4 blocks differ, so the vectors that they read
// lie in different banks, and so do those that they write.
__device__ inline void turn(Tile& tile) {
  const int lane = threadIdx.x % 8, diagonal = threadIdx.x / 8 % 8, quarter = threadIdx.x / 64;
  const int y = 8 * (quarter / 2) + (lane ^ diagonal), x = 8 * (quarter % 2) + lane;
  float4 v[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) v[i] = vector(tile, 4 * y + i, x);
  __syncthreads();  // no thread writes before all have read
  vector(tile, 4 * x + 0, y) = make_float4(v[0].x, v[1].x, v[2].x, v[3].x);
  vector(tile, 4 * x + 1, y) = make_float4(v[0].y, v[1].y, v[2].y, v[3].y);
  vector(tile, 4 * x + 2, y) = make_float4(v[0].z, v[1].z, v[2].z, v[3].z);
  vector(tile, 4 * x + 3, y) = make_float4(v[0].w, v[1].w, v[2].w, v[3].w);
}

template <bool kBulk>
__global__ void __launch_bounds__(kThreads)
    transpose_kernel(const __grid_constant__ CUtensorMap from, const __grid_constant__ CUtensorMap to,
                     const float* __restrict__ input, float* __restrict__ output, int64_t rows, int64_t cols,
                     unsigned tiles_down) {
#if __CUDA_ARCH__ >= 900
  namespace cde = cuda::device::experimental;
  __shared__ alignas(1024) Tile tile;
  __shared__ alignas(Barrier) unsigned char barrier_bytes[sizeof(Barrier)];
  Barrier& arrived = *reinterpret_cast<Barrier*>(barrier_bytes);
  const int64_t first_row = int64_t{blockIdx.x % tiles_down} * kTile;
  const int64_t first_col = int64_t{blockIdx.x / tiles_down} * kTile;

  if (kBulk) {
    if (threadIdx.x == 0) {
      init(&arrived, 1);
      cde::fence_proxy_async_shared_cta();  // the copy engine sees the initialized barrier
      for (int half = 0; half < 2; ++half)
        cde::cp_async_bulk_tensor_2d_global_to_shared(tile[half], &from, static_cast<int>(first_col) + half * kBoxCols,
                                                      static_cast<int>(first_row), arrived);
      static_cast<void>(cuda::device::barrier_arrive_tx(arrived, 1, sizeof(Tile)));
    }
    __syncthreads();  // no thread waits at a barrier that is not initialized
    arrived.wait_parity(false);
  } else {
    for (int i = threadIdx.x; i < kTile * kTile; i += kThreads) {
      const int64_t row = first_row + i / kTile, col = first_col + i % kTile;
      element(tile, i / kTile, i % kTile) = row < rows && col < cols ? input[row * cols + col] : 0.0f;
    }
    __syncthreads();
  }

  turn(tile);
  if (kBulk) cde::fence_proxy_async_shared_cta();  // the copy engine sees what this thread wrote
  __syncthreads();

  if (kBulk) {
    if (threadIdx.x != 0) return;
    for (int half = 0; half < 2; ++half)
      cde::cp_async_bulk_tensor_2d_shared_to_global(&to, static_cast<int>(first_row) + half * kBoxCols,
                                                    static_cast<int>(first_col), tile[half]);
    cde::cp_async_bulk_commit_group();
    cde::cp_async_bulk_wait_group_read<0>();  // the tile must live until it has been read
  } else {
    for (int i = threadIdx.x; i < kTile * kTile; i += kThreads) {
      const int64_t col = first_col + i / kTile, row = first_row + i % kTile;
      if (row < rows && col < cols) output[col * rows + row] = element(tile, i / kTile, i % kTile);
    }
  }
#endif
}

// cuTensorMapEncodeTiled is a function of the driver; the runtime knows the way to it.
inline decltype(&cuTensorMapEncodeTiled) encoder() {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult status;
#if CUDART_VERSION >= 12050
  CUDA_CHECK(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000, cudaEnableDefault, &status));
#else
  CUDA_CHECK(cudaGetDriverEntryPoint("cuTensorMapEncodeTiled", &function, cudaEnableDefault, &status));
#endif
  if (status != cudaDriverEntryPointSuccess) CUDA_CHECK(cudaErrorNotSupported);
  return reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(function);
}

// A matrix in boxes of kTile rows and kBoxCols columns. Coordinates of tensor copies begin with the column.
inline CUtensorMap tensor_map(const float* data, int64_t rows, int64_t cols) {
  static const auto encode = encoder();
  const cuuint64_t sizes[] = {static_cast<cuuint64_t>(cols), static_cast<cuuint64_t>(rows)};
  const cuuint64_t strides[] = {static_cast<cuuint64_t>(cols) * sizeof(float)};
  const cuuint32_t box[] = {kBoxCols, kTile}, steps[] = {1, 1};
  CUtensorMap map;
  const CUresult result = encode(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, const_cast<float*>(data), sizes, strides,
                                 box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                                 CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (result != CUDA_SUCCESS) CUDA_CHECK(cudaErrorInvalidValue);
  return map;
}

inline void launch(const float* input, float* output, int64_t rows, int64_t cols, cudaStream_t stream) {
  const int64_t wide = blocks_for(cols, kTile), tall = blocks_for(rows, kTile);
  if (wide * tall == 0) return;
  const auto blocks = static_cast<unsigned>(wide * tall), tiles_down = static_cast<unsigned>(tall);
  if (aligned_for<float4>(input, output) && rows % 4 == 0 && cols % 4 == 0)
    transpose_kernel<true><<<blocks, kThreads, 0, stream>>>(
        tensor_map(input, rows, cols), tensor_map(output, cols, rows), input, output, rows, cols, tiles_down);
  else
    transpose_kernel<false>
        <<<blocks, kThreads, 0, stream>>>(CUtensorMap{}, CUtensorMap{}, input, output, rows, cols, tiles_down);
}

inline const char* refuses(const Shape& shape) {
  if (shape[0] > INT32_MAX || shape[1] > INT32_MAX)
    return "a tensor copy counts rows and columns in 31 bits; give fewer";
  return Transpose::one_block_per_tile<kTile>(shape);
}

inline const Stage<Transpose> stage{"transpose_v7", "bulk tensor copies both ways", launch, {90, refuses}};

}  // namespace ladder::transpose::transpose_v7

LADDER_MAIN(ladder::transpose::transpose_v7::stage)
