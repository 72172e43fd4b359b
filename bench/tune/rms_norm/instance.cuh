// Candidates<R, access> compiles the candidates of one operator and one kind of access, and makes them known to the
// program. What L2 is asked to do with reads is an argument of a kernel: each strided kernel is a candidate twice.
#pragma once
#include <rms_norm/rms_norm.cuh>

#include <iterator>
#include <utility>

#include "bench/tune/rms_norm/candidate.h"

namespace tune {

constexpr int kVectors[] = {1, 2, 4, 8};
constexpr int kBlocks[] = {128, 256, 320, 512, 1024};
constexpr int kParts[] = {1, 2, 4, 8};
constexpr int kCombinations = std::size(kPacks) * std::size(kVectors) * std::size(kBlocks) * std::size(kParts);

constexpr Shape combination(int i, Access access, Eviction reads) {
  const auto next = [&i](const auto& choices) {
    constexpr int kChoices = sizeof choices / sizeof choices[0];
    const int chosen = choices[i % kChoices];
    i /= kChoices;
    return chosen;
  };
  const int parts = next(kParts), block = next(kBlocks), vectors = next(kVectors), packs = next(kPacks);
  return {packs, rms_norm::kAnySize, vectors, block, parts, access, reads};
}

// Whether a shape that is possible is also worth a try, and not the same launch as another one:
// - a row is kept in registers whole;
// - a cluster shares a row of 16 KB or more, and each of its threads has all its packs to keep;
// - of the threads of a warp that share a row there are four or more;
// - a block has as many threads as a row at least (with fewer, the launch is the same) and at most those of eight rows,
//   or four times those of its only row; 320 threads are for rows that take just so many.
constexpr bool is_candidate(const Shape& s) {
  const int threads = rms_norm::detail::row_threads(s);
  if (!rms_norm::detail::is_possible(s)) return false;
  if (s.parts > 1) return s.packs >= 1024 && s.vectors > 1 && s.block <= 512 && threads == s.block;
  if (threads <= 32) return threads >= 4 && s.block % 128 == 0;
  if ((s.block & (s.block - 1)) != 0 && s.block != threads) return false;
  return s.block >= threads && s.block <= (s.access == Access::contiguous ? 4 : 8) * threads;
}

template <class R, Access access, int i>
cudaError_t launch(const Tensors& tensors, Eviction reads, bool dependent, cudaStream_t stream) {
  constexpr Shape s = combination(i, access, Eviction::normal);
  rms_norm::detail::Problem<bf16, R, bf16, bf16> p = {tensors.x, tensors.weight, tensors.y};
  p.rows = tensors.rows, p.cols = tensors.cols;
  p.inverse_cols = 1.0f / static_cast<float>(tensors.cols);
  p.eps = kEps;
  p.residual = p.residual_out = tensors.residual;
  for (auto* steps : {&p.x_steps, &p.y_steps, &p.residual_steps, &p.residual_out_steps}) steps->row = tensors.cols;
  p.dependent = dependent;
  rms_norm::detail::set_cache(p, rms_norm::Cache::tuned, access, reads);
  rms_norm::detail::Device device;
  if (const cudaError_t error = query(device)) return error;
  return rms_norm::detail::launch_shape<kElements, s.packs, s.vectors, s.block, s.parts, access>(p, device, stream);
}

template <class R, Access access>
struct Candidates {
  Candidates() { add_all(std::make_integer_sequence<int, kCombinations>()); }

 private:
  template <int... i>
  static void add_all(std::integer_sequence<int, i...>) {
    (add<i>(), ...);
  }
  template <int i>
  static void add() {
    constexpr Shape s = combination(i, access, Eviction::last);
    if constexpr (is_candidate(s)) {
      Candidate candidate = {!std::is_void_v<R>, s, rms_norm::detail::kernel_threads(s), launch<R, access, i>};
      candidates().push_back(candidate);
      candidate.shape.reads = Eviction::first;
      if (access == Access::strided) candidates().push_back(candidate);  // a contiguous one keeps the residual it reads
    }
  }
};

}  // namespace tune
