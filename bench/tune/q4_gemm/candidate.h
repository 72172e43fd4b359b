// The candidates of make tune S=q4_gemm: shapes of kernels for repacked weights, and float32 x and y.
#pragma once
#include <cuda_runtime_api.h>

#include <cstdint>
#include <string>
#include <vector>

namespace tune {

// Which table of a policy a shape may stand in: kFew, or kMany with exact or with rounded scales.
enum class Table { few, exact, rounded };

constexpr int kMostParts = 8;  // of k: the blocks of a cluster

// Contiguous columns. x is quantized by the launch.
struct Product {
  const void* packed;
  const float* x;
  float* y;
  void* workspace;
  int64_t m, n, k;
};

// Of few columns, `tiles`, `warp_tiles`, `phases`, `depth` and `x_in_slots`; of many, `groups` and `ways`.
struct Candidate {
  Table table;
  int columns, tiles, warp_tiles, groups, phases, ways, depth, together;
  bool x_in_slots;
  int most_parts;  // for which a block has the shared memory
  // A dependent launch, if the GPU has such. cudaErrorNotSupported if it lacks wgmma.
  cudaError_t (*launch)(const Product& product, int parts, cudaStream_t stream);
  // How many clusters of so many blocks the GPU holds at once; 0 for few columns.
  int (*clusters)(int parts);

  std::string name() const;
  int rows() const;
  // At most most_parts. Few columns: powers of two, so that the blocks of a cluster share the rows evenly.
  bool has_parts(int parts) const;
};

std::vector<Candidate>& candidates();

}  // namespace tune
