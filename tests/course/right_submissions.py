"""Solutions of another hand than the stage's, which must pass: (name, exercise, edits of the stage's source)."""

RIGHT = [
    (
        "down, and then to all lanes",
        "05",
        [
            (
                "  for (int mask = kWarpSize / 2; mask > 0; mask /= 2) value += __shfl_xor_sync(0xffffffffu, value, mask);",
                "  for (int far = 16; far >= 1; far >>= 1) value += __shfl_down_sync(~0u, value, far);\n  value = __shfl_sync(~0u, value, 0);",
            ),
            ("launch<256>", "launch<128>"),
            ("#pragma unroll 8\n", ""),
        ],
    ),
    (
        "every thread adds the sums of the warps",
        "05",
        [
            (
                "  return warp_reduce_sum(lane < kWarps ? warp_sums[lane] : 0.0f);",
                "  float sum = 0.0f;\n  for (int i = 0; i < kWarps; ++i) sum += warp_sums[i];\n  return sum;",
            )
        ],
    ),
    (
        "other blocks",
        "W1L1/2",
        [
            ("constexpr int kBlockSize = 256;", "constexpr int kBlockSize = 96;"),
            ("  if (i < n) c[i] = a[i] + b[i];", "  if (i >= n) return;\n  const float x = a[i];\n  c[i] = b[i] + x;"),
        ],
    ),
    (
        "a while loop",
        "W1L1/3",
        [
            (
                "  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < n; i += threads) c[i] = a[i] + b[i];",
                "  int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;\n  while (i < n) {\n    c[i] = a[i] + b[i];\n    i += threads;\n  }",
            )
        ],
    ),
    (
        "the upper half is added to the lower",
        "W2L1/0",
        [
            (
                "  for (int s = 1; s < kBlockSize; s *= 2) {\n    if (tid % (2 * s) == 0) sdata",
                "  for (int s = kBlockSize / 2; s > 0; s /= 2) {\n    if (tid < s) sdata",
            )
        ],
    ),
    (
        "the upper half here, too",
        "W2L1/1",
        [
            (
                "  for (int s = 1; s < kBlockSize; s *= 2) {\n    const int left = 2 * s * tid;\n"
                "    if (left < kBlockSize) sdata[left] += sdata[left + s];",
                "  for (int s = kBlockSize / 2; s > 0; s >>= 1) {\n    if (tid < s) sdata[tid] += sdata[tid + s];",
            )
        ],
    ),
    (
        "shuffles in the last warp",
        "W2L1/4",
        [
            (
                "    sdata[tid] = sum;\n    __syncwarp();\n    sum += sdata[tid + s];\n    __syncwarp();",
                "    sum += __shfl_down_sync(0xffffffffu, sum, s);",
            )
        ],
    ),
    (
        "all warps add",
        "W2L1/6",
        [
            ("  if (warp > 0) return;\n", ""),
            ("  if (lane == 0) sums[blockIdx.x] = sum;", "  if (tid == 0) sums[blockIdx.x] = sum;"),
        ],
    ),
    (
        "a counter that the last block sets back",
        "W2L1/8",
        [
            (
                "    is_last = atomicInc(&blocks_done, last) == last;  // this sets it back to 0, ready for the next launch",
                "    is_last = atomicAdd(&blocks_done, 1u) == last;\n    if (is_last) blocks_done = 0;",
            )
        ],
    ),
    (
        "a swizzle in place of padding",
        "W2L3/2",
        [
            ("tile[kTile][kTile + 1]", "tile[kTile][kTile]"),
            ("tile[y][x] =", "tile[y][(x + y) % kTile] ="),
            ("= tile[x][y];", "= tile[x][(x + y) % kTile];"),
        ],
    ),
    (
        "another swizzle",
        "W2L3/4",
        [
            ("[x ^ (y + i)] = input", "[(x + y + i) % kTile] = input"),
            ("tile[x][x ^ (y + i)]", "tile[x][(x + y + i) % kTile]"),
        ],
    ),
    (
        "shuffles in place of the tree",
        "02",
        [
            (
                "  for (int s = kBlockSize / 2; s > 0; s /= 2) {\n    if (tid < s) sdata[tid] += sdata[tid + s];\n    __syncthreads();\n  }",
                "  if (tid < 32) {\n    for (int i = tid + 32; i < kBlockSize; i += 32) sum += sdata[i];\n"
                "    for (int s = 16; s > 0; s /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, s);\n    if (tid == 0) sdata[0] = sum;\n  }\n  __syncthreads();",
            ),
            (
                "  for (int64_t chunk = 0; chunk < cols; chunk += kChunk) {\n#pragma unroll 8\n    for (int j = 0; j < kElementsPerThread; ++j) {\n"
                "      const int64_t i = chunk + j * kBlockSize + tid;\n      if (i < cols) sum += row_input[i] * row_input[i];\n    }\n  }",
                "  for (int64_t i = tid; i < cols; i += kBlockSize) sum += row_input[i] * row_input[i];",
            ),
        ],
    ),
    (
        "blocks of 256",
        "06",
        [
            ("launch<512>", "launch<256>"),
            (
                "    sum += x.x * x.x + x.y * x.y + x.z * x.z + x.w * x.w;",
                "    sum = fmaf(x.x, x.x, sum);\n    sum = fmaf(x.y, x.y, sum);\n    sum = fmaf(x.z, x.z, sum);\n    sum = fmaf(x.w, x.w, sum);",
            ),
        ],
    ),
    (
        "four rows in a block",
        "10",
        [
            ("run(launch_shape<1>, 32, 8)", "run(launch_shape<1>, 32, 4)"),
            ("run(launch_shape<2>, 32, 8)", "run(launch_shape<2>, 32, 4)"),
            ("run(launch_shape<4>, 32, 8)", "run(launch_shape<4>, 32, 4)"),
        ],
    ),
    ("one more barrier", "vector/07", [("  sum = 0.0f;\n", "  sum = 0.0f;\n  __syncthreads();\n")]),
    (
        "words put together by bytes of two halves",
        "q4_gemm/02",
        [
            (
                "halves[2 * j] | static_cast<uint32_t>(halves[2 * j + 1]) << 16",
                "halves[2 * j] + 65536u * halves[2 * j + 1]",
            )
        ],
    ),
]
