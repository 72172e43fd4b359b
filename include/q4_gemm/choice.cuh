// What a policy says about a product.
#pragma once

#include <cstdint>

namespace q4_gemm {

constexpr int64_t kAnySize = INT64_MAX;

// For products of up to most_columns columns, most_m rows of weights and most_k weights of a row: blocks with `tiles`
// times 16 rows, of which a warp has `warp_tiles`, and `phases` warps for each of these; slots for `depth` chunks of
// them per warp; `columns` columns; at most `together` blocks on a multiprocessor; whether quantized x comes into the
// slots, with the weights; and `cluster` blocks that share k, a power of two: more than one only where there are
// clusters.
struct FewChoice {
  int64_t most_columns, most_m, most_k;
  int tiles, warp_tiles, phases, depth, columns, together;
  bool x_in_slots;
  int cluster;
};

// Where the scales are multiplied in.
enum class Scales {
  // x is quantized to q8_1. Tensor cores multiply whole numbers, exactly, and after each block of 32 both scales are
  // multiplied to float32 sums.
  exact,
  // A weight is d · (q - 8) rounded to float16, and so is x, which is not quantized. Relative error of a weight, and of
  // a number of x: 2^-11 at most.
  rounded_to_half,
};

// A shape of kernel for many columns: blocks with `groups` times 64 rows and `columns` columns, in which `ways` times
// as many warpgroups share k, and of which a multiprocessor has `together`; and how many microseconds such blocks take
// for a chunk of 64 numbers of k, to begin and to end, and beyond that if the blocks of a cluster share k.
struct ManyChoice {
  int columns, groups, ways, together;
  float chunk, block, share;
};

}  // namespace q4_gemm
