// table_not_repeated: the table is read as if it were as long as the stream.
#pragma once
#include "../residency.cuh"

namespace ladder::hopper::mutants::table_not_repeated {

__global__ void add_table_kernel(const float* a, const float* table, float* c, int64_t n, int64_t length) {
  const int64_t i = int64_t{blockIdx.x} * kTableThreads + threadIdx.x;
  if (i < n) c[i] = a[i] + table[i < length ? i : length - 1];  // the fault
}

inline void launch(const float* a, const float* table, float* c, int64_t n, cudaStream_t stream) {
  const auto blocks = static_cast<unsigned>(blocks_for(n, kTableThreads));
  if (blocks > 0) add_table_kernel<<<blocks, kTableThreads, 0, stream>>>(a, table, c, n, AddTable::length(n));
}

inline const Mutant<AddTable> mutant{"table_not_repeated", "the table's last element in place of its first", launch,
                                     "elements wrong"};

}  // namespace ladder::hopper::mutants::table_not_repeated
