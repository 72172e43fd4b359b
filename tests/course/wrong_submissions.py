"""Submissions that are wrong in the ways in which students' are: (name, exercise, edits of the solution, what the grader says).

An edit is (what stands in the solution, what takes its place). The last element is a part of the sentence that must be said.
"""

WRONG = [
    # --- The first kernels.
    ("no bounds check", "W1L1/2", [("  if (i < n) c[i]", "  c[i]")], "guard element"),
    ("blocks rounded down", "W1L1/2", [("blocks_for(n, kBlockSize)", "n / kBlockSize")], "never written"),
    (
        "the block is forgotten",
        "W1L1/2",
        [("int64_t{blockIdx.x} * blockDim.x + threadIdx.x", "threadIdx.x")],
        "never written",
    ),
    ("a grid of no blocks", "W1L1/2", [("  if (blocks > 0) add_kernel", "  add_kernel")], "CUDA refuses your launch"),
    (
        "blocks too large",
        "W1L1/2",
        [("<<<blocks, kBlockSize,", "<<<blocks, 8 * kBlockSize,")],
        "CUDA refuses your launch",
    ),
    ("too many blocks", "W1L1/2", [("<<<blocks,", "<<<9 * blocks,")], "at most 1,024 blocks: yours has 1,152"),
    ("minus in place of plus", "W1L1/2", [("a[i] + b[i]", "a[i] - b[i]")], "elements wrong"),
    ("a semicolon is missing", "W1L1/2", [("c[i] = a[i] + b[i];", "c[i] = a[i] + b[i]")], "line 19: expected"),
    ("a name that is not there", "W1L1/2", [("c[i] = a[i] + b[i]", "c[i] = x[i] + b[i]")], "was not declared"),
    (
        "no launch at all",
        "W1L1/2",
        [("  if (blocks > 0) add_kernel", "  if (blocks < 0) add_kernel")],
        "launches no kernel",
    ),
    (
        "a stretch for each thread",
        "W1L1/1",
        [
            (
                "for (int64_t i = threadIdx.x; i < n; i += blockDim.x) c[i] = a[i] + b[i];",
                "for (int64_t i = threadIdx.x * (n / blockDim.x + 1); i < min(n, (threadIdx.x + 1) * (n / blockDim.x + 1)); ++i)\n"
                "    c[i] = a[i] + b[i];",
            )
        ],
        "touches 31.06 sectors where 3.91 would do",
    ),
    (
        "the stride of a block",
        "W1L1/3",
        [("int64_t{gridDim.x} * blockDim.x;  //", "blockDim.x;  //")],
        "wants each input element read once: yours is read 28.1 times",
    ),
    ("no loop", "W1L1/3", [("i < n; i += threads", "i < n; i += n")], "never written"),
    (
        "as many blocks as elements need",
        "W1L1/3",
        [("std::min(blocks_for(n, kBlockSize), most)", "(void(most), blocks_for(n, kBlockSize))")],
        "wants a grid of at most 32 blocks: yours has 128",
    ),
    (
        "stores of one float",
        "W1L1/4",
        [
            (
                "*reinterpret_cast<float4*>(c + first) = make_float4(x.x + y.x, x.y + y.y, x.z + y.z, x.w + y.w);",
                "c[first] = x.x + y.x, c[first + 1] = x.y + y.y, c[first + 2] = x.z + y.z, c[first + 3] = x.w + y.w;",
            )
        ],
        "wants stores of 16 bytes: line 22 moves 4",
    ),
    ("alignment taken for granted", "W1L1/4", [("if (aligned && first", "if (first")], "misaligned"),
    # --- Sums.
    ("no barrier between steps", "W2L1/0", [("sdata[tid + s];\n    __syncthreads();", "sdata[tid + s];")], "race"),
    (
        "a barrier in a branch",
        "W2L1/0",
        [
            (
                "if (tid % (2 * s) == 0) sdata[tid] += sdata[tid + s];\n    __syncthreads();",
                "if (tid % (2 * s) == 0) {\n      sdata[tid] += sdata[tid + s];\n      __syncthreads();\n    }",
            )
        ],
        "__syncthreads",
    ),
    (
        "one thread adds everything",
        "W2L1/0",
        [
            (
                "  for (int s = 1; s < kBlockSize; s *= 2) {\n    if (tid % (2 * s) == 0) sdata[tid] += sdata[tid + s];\n    __syncthreads();\n  }",
                "  if (tid == 0)\n    for (int i = 1; i < kBlockSize; ++i) sdata[0] += sdata[i];",
            )
        ],
        "requests to shared memory for 1000 elements: yours makes",
    ),
    (
        "every second lane",
        "W2L1/1",
        [
            (
                "    const int left = 2 * s * tid;\n    if (left < kBlockSize) sdata[left] += sdata[left + s];",
                "    if (tid % (2 * s) == 0) sdata[tid] += sdata[tid + s];",
            )
        ],
        "lanes in a load from shared memory, on average: line 27 has 5.4",
    ),
    (
        "words that are far apart",
        "W2L1/2",
        [
            (
                "  for (int s = kBlockSize / 2; s > 0; s /= 2) {\n    if (tid < s) sdata[tid] += sdata[tid + s];",
                "  for (int s = 1; s < kBlockSize; s *= 2) {\n    if (2 * s * tid < kBlockSize) sdata[2 * s * tid] += sdata[2 * s * tid + s];",
            )
        ],
        "wants no bank conflicts: a shared load in line 26 takes 3.92 wavefronts where 1 would do",
    ),
    (
        "the second element unchecked",
        "W2L1/3",
        [("if (i + kBlockSize < n) sum +=", "if (i < n) sum +=")],
        "elements wrong",
    ),
    (
        "two neighbours for each thread",
        "W2L1/3",
        [
            ("kElementsPerBlock + tid", "kElementsPerBlock + 2 * tid"),
            ("if (i + kBlockSize < n) sum += input[i + kBlockSize]", "if (i + 1 < n) sum += input[i + 1]"),
        ],
        "wants coalesced requests: a load in line 24",
    ),
    (
        "half of the barriers of the warp",
        "W2L1/4",
        [("    sum += sdata[tid + s];\n    __syncwarp();", "    sum += sdata[tid + s];")],
        "race",
    ),
    (
        "barriers of the block in one warp",
        "W2L1/4",
        [("    sdata[tid] = sum;\n    __syncwarp();", "    sdata[tid] = sum;\n    __syncthreads();")],
        "__syncthreads",
    ),
    ("five of the steps", "W2L1/6", [("for (int s = 16; s > 0", "for (int s = 8; s > 0")], "elements wrong"),
    (
        "lanes missing at a shuffle",
        "W2L1/6",
        [
            (
                "sum = warp_sum(lane < kWarps ? warp_sums[lane] : 0.0f);",
                "if (lane < kWarps) sum = warp_sum(warp_sums[lane]);",
            )
        ],
        "__shfl_down_sync",
    ),
    (
        "no head",
        "W2L1/7",
        [("min(static_cast<int64_t>((4 - past) % 4), n)", "min(static_cast<int64_t>(past * 0), n)")],
        "misaligned",
    ),
    (
        "no tail",
        "W2L1/7",
        [("    if (tid < n - tail) sum += input[tail + tid];\n", "    static_cast<void>(tail);\n")],
        "elements wrong",
    ),
    (
        "no fence before the count",
        "W2L1/8",
        [("    __threadfence();  // whoever sees this block counted sees its sum\n", "")],
        "fence",
    ),
    (
        "the counter is not set back",
        "W2L1/8",
        [("atomicInc(&blocks_done, last)", "atomicAdd(&blocks_done, 1)")],
        "never written",
    ),
    # --- Transposes.
    ("no barrier before the tile is read", "W2L3/1", [("  __syncthreads();\n", "")], "race"),
    (
        "rows and columns confused",
        "W2L3/1",
        [("output[(first_col + y) * rows", "output[(first_col + y) * cols")],
        "wrote outside",
    ),
    (
        "one condition for both sides",
        "W2L3/1",
        [("if (first_col + y < cols && first_row + x < rows)", "if (first_row + y < rows && first_col + x < cols)")],
        "elements wrong",
    ),
    (
        "not through the tile",
        "W2L3/1",
        [
            (
                "if (first_row + y < rows && first_col + x < cols) tile[y][x] = input[(first_row + y) * cols + first_col + x];",
                "tile[y][x] = 0;",
            ),
            ("= tile[x][y];", "= input[(first_row + x) * cols + first_col + y];"),
        ],
        "a load in line 28 touches 32 sectors where 4 would do",
    ),
    (
        "no padding",
        "W2L3/2",
        [("tile[kTile][kTile + 1]", "tile[kTile][kTile]")],
        "takes 32 wavefronts where 1 would do",
    ),
    (
        "padding in place of a swizzle",
        "W2L3/4",
        [
            ("tile[kTile][kTile]", "tile[kTile][kTile + 1]"),
            ("tile[y + i][x ^ (y + i)]", "tile[y + i][x]"),
            ("tile[x][x ^ (y + i)]", "tile[x][y + i]"),
        ],
        "wants at most 4,096 bytes of shared memory for a block: yours has 4,224",
    ),
    # --- The matrix.
    ("one running sum", "01", [("if (row >= rows) return;", "if (row > rows) return;")], "outside"),
    (
        "the mean of the elements",
        "02",
        [("sum += row_input[i] * row_input[i]", "sum += row_input[i]")],
        "elements wrong",
    ),
    (
        "eps outside of the root",
        "02",
        [
            (
                "rsqrtf(sdata[0] / static_cast<float>(cols) + eps)",
                "(1.0f / (sqrtf(sdata[0] / static_cast<float>(cols)) + eps))",
            )
        ],
        "elements wrong",
    ),
    (
        "a row of 8192 columns at most",
        "02",
        [("for (int64_t chunk = 0; chunk < cols; chunk += kChunk)", "for (int64_t chunk = 0; chunk < 1; ++chunk)")],
        "elements wrong",
    ),
    ("a barrier of the block for each step", "04", [("__syncwarp();", "__syncthreads();")], "the block diverged"),
    ("only lane 0 has the sum", "05", [("__shfl_xor_sync", "__shfl_down_sync")], "elements wrong"),
    (
        "a second barrier",
        "05",
        [
            (
                "  return warp_reduce_sum(lane < kWarps ? warp_sums[lane] : 0.0f);",
                "  value = warp_reduce_sum(lane < kWarps ? warp_sums[lane] : 0.0f);\n  __syncthreads();\n  return value;",
            )
        ],
        "wants at most 1 barrier of a block: yours has 2",
    ),
    (
        "the tree of 02",
        "05",
        [
            (
                "  value = warp_reduce_sum(value);\n  if (lane == 0) warp_sums[warp] = value;\n  __syncthreads();",
                "  __shared__ float tree[kBlockSize];\n  tree[threadIdx.x] = value;\n  __syncthreads();\n"
                "  for (int s = kBlockSize / 2; s > 0; s /= 2) {\n    if (threadIdx.x < s) tree[threadIdx.x] += tree[threadIdx.x + s];\n"
                "    __syncthreads();\n  }\n  static_cast<void>(warp);\n  return tree[0];",
            )
        ],
        "wants at most 1 barrier of a block: yours has 9",
    ),
    ("no barrier", "05", [("  __syncthreads();\n", "")], "race"),
    (
        "4 bytes per lane",
        "06",
        [("aligned_for_float4(row_input, weight, row_output) ? cols / 4 : 0", "cols < 0 ? cols / 4 : 0")],
        "wants loads of 16 bytes: line",
    ),
    (
        "addresses that are not aligned",
        "06",
        [("aligned_for_float4(row_input, weight, row_output) ? cols / 4 : 0", "cols % 4 == 0 ? cols / 4 : 0")],
        "misaligned",
    ),
    (
        "the last columns are forgotten",
        "06",
        [("i = 4 * vec_cols + tid", "i = 4 * (vec_cols + 1) + tid")],
        "never written",
    ),
    (
        "the row is read again",
        "07",
        [("vec_output[i] = scaled(kept[v], rstd", "vec_output[i] = scaled(vec_input[i], rstd")],
        "wants each input element read once: yours is read 2.0 times",
    ),
    ("a weight that may not be there", "07", [("weight == nullptr ? ones : vec_weight[i]", "vec_weight[i]")], "null"),
    (
        "more shuffles",
        "08",
        [
            (
                "  float sum = 0.0f;\n#pragma unroll\n  for (int warp = 0; warp < kWarps; warp += 4) {",
                "  return warp_reduce_sum(threadIdx.x % 32 < kWarps ? warp_sums[threadIdx.x % 32] : 0.0f);\n  float sum = 0.0f;\n"
                "  for (int warp = 0; warp < kWarps; warp += 4) {",
            )
        ],
        "wants at most 5 shuffles of a warp: yours has 10",
    ),
    ("no hint", "09", [("__ldcs(vec_input + i)", "vec_input[i]")], "wants __ldcs used"),
    (
        "four warps for a short row",
        "10",
        [
            ("if (vectors <= 32)", "if (vectors <= 0)"),
            ("if (vectors <= 64)", "if (vectors <= 0)"),
            ("if (vectors <= 128)", "if (vectors <= 0)"),
        ],
        "wants no barrier of a block: yours has 1",
    ),
    # --- The other ladders.
    (
        "256 partial sums",
        "vector/02",
        [("i < gridDim.x; i += kBlockSize", "i < min(gridDim.x, 256u); i += kBlockSize")],
        "elements wrong",
    ),
    (
        "block 0 does not wait",
        "vector/07",
        [
            (
                "is_last = atomicInc(&published, gridDim.x - 1) == gridDim.x - 1;",
                "atomicInc(&published, gridDim.x - 1);\n    is_last = blockIdx.x == 0;",
            )
        ],
        "elements wrong",
    ),
    (
        "one element of each pair",
        "precision/04",
        [("__hadd(__low2half(sums), __high2half(sums))", "__low2half(sums)")],
        "elements wrong",
    ),
    (
        "squares in float16",
        "precision/08",
        [
            (
                "    const float2 wide = __half22float2(pair);\n    sum += wide.x",
                "    const float2 wide = __half22float2(__hmul2(pair, __float2half2_rn(1.001f)));\n    sum += wide.x",
            )
        ],
        "elements wrong",
    ),
    (
        "four loads for one",
        "precision/08",
        [
            (
                "*reinterpret_cast<uint4*>(eight.pairs) = *reinterpret_cast<const uint4*>(from);",
                "for (int k = 0; k < 4; ++k) eight.pairs[k] = reinterpret_cast<const __half2*>(from)[k];",
            )
        ],
        "wants loads of 16 bytes",
    ),
    (
        "a sum that is not rounded",
        "serving/04",
        [
            (
                "sum += to_float(temp.val[i]) * to_float(temp.val[i]);",
                "sum += 1.01f * to_float(temp.val[i]) * to_float(temp.val[i]);",
            )
        ],
        "elements wrong",
    ),
    ("the residual is not written", "serving/04", [("    store_vec(residual_row + idx, temp);\n", "")], "residual_out"),
    (
        "low and high nibbles exchanged",
        "q4_gemm/02",
        [
            ("__dp4a(low_nibbles(word), x[j]", "__dp4a(high_nibbles(word), x[j]"),
            ("__dp4a(high_nibbles(word), x[4 + j]", "__dp4a(low_nibbles(word), x[4 + j]"),
        ],
        "elements wrong",
    ),
    (
        "byte by byte",
        "q4_gemm/02",
        [
            (
                "halves[2 * j] | static_cast<uint32_t>(halves[2 * j + 1]) << 16",
                "weights.qs[4 * j] | weights.qs[4 * j + 1] << 8 | weights.qs[4 * j + 2] << 16 | static_cast<uint32_t>(weights.qs[4 * j + 3]) << 24",
            ),
            ("  const auto* halves = reinterpret_cast<const uint16_t*>(weights.qs);\n", ""),
        ],
        "load requests to global memory for 1000 elements: yours makes",
    ),
    ("no wait for the copy", "q4_gemm/08", [("__pipeline_wait_prior(1)", "__pipeline_wait_prior(2)")], "async"),
    (
        "no barrier before a buffer is filled again",
        "q4_gemm/08",
        [("    __syncthreads();  // nobody still reads the buffer that the next step copies to\n", "")],
        "race",
    ),
]

# What only looks like a solution. Most break a rule for the text and are not built.
FOOLING = [
    (
        "the launcher waits",
        "W1L1/2",
        [("stream>>>(a, b, c, n);", "stream>>>(a, b, c, n);\n  cudaDeviceSynchronize();")],
        "the launcher returns at once",
    ),
    (
        "a macro of the harness",
        "05",
        [("#pragma once", "#pragma once\n#define LADDER_ALL_STAGES")],
        "LADDER_ALL_STAGES would change how the grader looks at your kernels",
    ),
    (
        "a program that says nothing",
        "05",
        [("template <int kBlockSize>\nvoid launch", "int run_all();\ntemplate <int kBlockSize>\nvoid launch")],
        "run_all would change how the grader looks at your kernels",
    ),
    (
        "the solution included",
        "05",
        [
            (
                '#include "common/operators/rms_norm.h"',
                '#include "common/operators/rms_norm.h"\n#include "assignment1/rms_norm/matrix/05_warp_shuffle/kernel.cuh"',
            )
        ],
        "that is a solution",
    ),
    (
        "another stage included",
        "05",
        [
            (
                "#include <cstdint>",
                '#include <cstdint>\n#include "../assignment1/rms_norm/matrix/06_vectorized/kernel.cuh"',
            )
        ],
        "that is a solution",
    ),
    (
        "what is to be written included",
        "05",
        [("#include <cstdint>", '#include <cstdint>\n#include "common/kernel_helpers.cuh"')],
        "which the skeleton does not",
    ),
    (
        "an include by a macro",
        "05",
        [
            (
                "#include <cstdint>",
                '#include <cstdint>\n#define THAT "assignment1/rms_norm/matrix/05_warp_shuffle/kernel.cuh"\n#include THAT',
            )
        ],
        "line 13: includes THAT",
    ),
    (
        "the reference called",
        "05",
        [("  if (rows == 0) return;", "  if (rows == 0) return;\n  RmsNorm::get();")],
        "the reference's answer",
    ),
    (
        "the oracle declared",
        "05",
        [
            (
                "template <int kBlockSize>\nvoid launch",
                "struct Answer { void oracle(); };\ntemplate <int kBlockSize>\nvoid launch",
            )
        ],
        "oracle asks for the reference's answer",
    ),
    (
        "the host computes",
        "05",
        [
            (
                "  if (rows == 0) return;",
                "  if (rows == 0) return;\n  cudaMemcpy(output, input, 4, cudaMemcpyDeviceToDevice);",
            )
        ],
        "cudaMemcpy moves or sets memory from the host",
    ),
    (
        "managed memory",
        "05",
        [("constexpr int kWarpSize = 32;", "constexpr int kWarpSize = 32;\n__managed__ float everything[4];")],
        "__managed__",
    ),
    (
        "no input is accepted",
        "05",
        [("RmsNorm::one_block_per_row}}", '[](const Shape&) { return "no"; }}}')],
        "must stay as it was",
    ),
    ("a namespace of its own", "05", [("namespace ladder::matrix::warp_shuffle {", "namespace mine {")], "must stay"),
    (
        "two devices told apart",
        "05",
        [("constexpr int kWarpSize = 32;", "#ifdef __SIMT__\n#endif\nconstexpr int kWarpSize = 32;")],
        "__SIMT__",
    ),
    (
        "counted as nothing",
        "05",
        [("  if (rows == 0) return;", "  if (rows == 0) return;\n  cudaProfilerStop();")],
        "cudaProfilerStop",
    ),
    (
        "the end of the program",
        "05",
        [("  if (rows == 0) return;", "  if (rows == 0) exit(0);")],
        "exit has nothing to do with a kernel",
    ),
    ("other flags", "05", [("#pragma once", '#pragma once\n#pragma GCC optimize("O0")')], "#pragma GCC"),
    (
        "no instrumentation",
        "05",
        [
            (
                "template <int kBlockSize>\n__device__",
                'template <int kBlockSize>\n__attribute__((no_sanitize("thread"))) __device__',
            )
        ],
        "__attribute__",
    ),
    (
        "a library",
        "W2L1/6",
        [("  sum = warp_sum(sum);\n", "  sum = cub::BlockReduce<float, 256>().Sum(sum);\n")],
        "cub:: calls a library",
    ),
    (
        "a line comment that goes on",
        "05",
        [("constexpr int kWarpSize = 32;", "constexpr int kWarpSize = 32;  // \\\nhidden\nvoid oracle();")],
        "oracle asks for the reference's answer",
    ),
    (
        "constants",
        "05",
        [("row_output[i] = weight == nullptr ? normalized : normalized * weight[i];", "row_output[i] = 0.5f;")],
        "elements wrong",
    ),
    (
        "a loop on the host",
        "05",
        [
            (
                "  if (rows == 0) return;",
                "  for (int64_t i = 0; i < rows * cols; ++i) output[i] = input[i];\n  if (rows == 0) return;",
            )
        ],
        "line 63: host code accessed device memory",
    ),
    ("nothing is launched", "05", [("  if (rows == 0) return;", "  if (rows >= 0) return;")], "launches no kernel"),
]
