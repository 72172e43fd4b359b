// transpose_v6: 16 bytes per lane on both sides, of global and of shared memory. A thread reads a block of 4 × 4
// elements as four vectors, turns it in its registers, and puts four vectors of the output's rows into the tile
// (counter: requests, a quarter). Vectors are swizzled as elements were in v4: vector a of row r lies at place a ^ (r /
// 4 % 8), so eight lanes find eight different groups of four banks, down a column and along a row.
//
// Blocks that follow each other take tiles below each other, so that what is written at one time lies side by side in
// the output's rows (no counter of the SMs sees it; the control v6_across has the order of the stages before).
//
// Vectors need addresses and row lengths that are multiples of 16 bytes, on both sides; others are moved element by
// element, through the same tile. It leaves: 256 threads compute addresses to ask for 64 pieces of 256 bytes.
#include <cuda_runtime.h>

#include <cstdint>

#include "common/launch.h"
#include "common/operators/transpose.h"

namespace ladder::transpose::transpose_v6 {

// Four elements of a matrix from element i on, of which `left` exist. Vectors are elements of an array of float4 here:
// where a pointer to float + i is cast to float4, nvcc 13.0 makes four stores of it (counter: global store requests).
template <bool kAligned>
__device__ float4 load(const float* matrix, int64_t i, int64_t left) {
  float4 v = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
  if constexpr (kAligned) {
    if (left > 0) v = reinterpret_cast<const float4*>(matrix)[i / 4];
  } else {
    if (left > 0) v.x = matrix[i];
    if (left > 1) v.y = matrix[i + 1];
    if (left > 2) v.z = matrix[i + 2];
    if (left > 3) v.w = matrix[i + 3];
  }
  return v;
}

template <bool kAligned>
__device__ void store(float* matrix, int64_t i, float4 v, int64_t left) {
  if constexpr (kAligned) {
    if (left > 0) reinterpret_cast<float4*>(matrix)[i / 4] = v;
  } else {
    if (left > 0) matrix[i] = v.x;
    if (left > 1) matrix[i + 1] = v.y;
    if (left > 2) matrix[i + 2] = v.z;
    if (left > 3) matrix[i + 3] = v.w;
  }
}

constexpr int threads_of(int tile) { return tile / 4 * (tile / 4); }  // a block of 4 × 4 elements each

// kAligned: both addresses are multiples of 16 bytes, rows and cols of 4 elements. Then a vector exists whole or not at
// all. Tiles are numbered down the input, `tiles` in a column of them, or with kAcross across it, `tiles` in a row.
template <int kTile, bool kAcross, bool kAligned>
__global__ void __launch_bounds__(threads_of(kTile))
    transpose_kernel(const float* __restrict__ input, float* __restrict__ output, int64_t rows, int64_t cols,
                     unsigned tiles) {
  constexpr int kVectors = kTile / 4;       // in a row of the tile
  __shared__ float4 tile[kTile][kVectors];  // in the order of the output
  const unsigned quotient = blockIdx.x / tiles, remainder = blockIdx.x % tiles;
  const int64_t first_row = int64_t{kAcross ? quotient : remainder} * kTile;
  const int64_t first_col = int64_t{kAcross ? remainder : quotient} * kTile;
  const int x = threadIdx.x % kVectors, y = threadIdx.x / kVectors;

  {
    const int64_t row = first_row + 4 * y, col = first_col + 4 * x;
    float4 v[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) v[i] = load<kAligned>(input, (row + i) * cols + col, row + i < rows ? cols - col : 0);
    const int place = y ^ (x % 8);
    tile[4 * x + 0][place] = make_float4(v[0].x, v[1].x, v[2].x, v[3].x);
    tile[4 * x + 1][place] = make_float4(v[0].y, v[1].y, v[2].y, v[3].y);
    tile[4 * x + 2][place] = make_float4(v[0].z, v[1].z, v[2].z, v[3].z);
    tile[4 * x + 3][place] = make_float4(v[0].w, v[1].w, v[2].w, v[3].w);
  }
  __syncthreads();

  const int64_t row = first_row + 4 * x;
#pragma unroll
  for (int i = 0; i < kTile; i += kVectors) {
    const int r = i + y;  // of the tile: a column of the input
    const int64_t left = first_col + r < cols ? rows - row : 0;
    store<kAligned>(output, (first_col + r) * rows + row, tile[r][x ^ (r / 4 % 8)], left);
  }
}

template <int kTile, bool kAcross = false>
void launch(const float* input, float* output, int64_t rows, int64_t cols, cudaStream_t stream) {
  const int64_t wide = blocks_for(cols, kTile), tall = blocks_for(rows, kTile);
  if (wide * tall == 0) return;
  const bool aligned = aligned_for<float4>(input, output) && rows % 4 == 0 && cols % 4 == 0;
  auto* kernel = aligned ? transpose_kernel<kTile, kAcross, true> : transpose_kernel<kTile, kAcross, false>;
  kernel<<<static_cast<unsigned>(wide * tall), threads_of(kTile), 0, stream>>>(
      input, output, rows, cols, static_cast<unsigned>(kAcross ? wide : tall));
}

inline const Stage<Transpose> stage{"transpose_v6",
                                    "16 bytes per lane both ways, 4 × 4 blocks turned in registers",
                                    launch<64>,
                                    {0, Transpose::one_block_per_tile<64>}};

}  // namespace ladder::transpose::transpose_v6

LADDER_MAIN(ladder::transpose::transpose_v6::stage)
