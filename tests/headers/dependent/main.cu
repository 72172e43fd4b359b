// Chains of dependent launches: a kernel that writes late what the last call of the chain reads before it waits, any
// call of the two headers between them, and the last call. Only if each kernel between waits before it lets the next
// one start has the first kernel ended when the last one reads.
//
//   make BACKEND=cuda tests/headers/dependent/program && build/cuda/tests/headers/dependent/dependent_test
//
// It prints of each chain how often its result is wrong with plain launches and with dependent ones. Exit code 1 if one
// is wrong. The CPU device runs one kernel after the other, and its analysis says what a GPU might do
// (test_dependent.py).
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <q4_gemm/q4_gemm.cuh>
#include <rms_norm/all_reduce.cuh>
#include <rms_norm/backward.cuh>
#include <rms_norm/quantize.cuh>
#include <rms_norm/rms_norm.cuh>
#include <rms_norm/rope.cuh>
#include <string>
#include <vector>

#include "common/cuda_check.h"
#include "common/memory.h"

namespace {

using q4_gemm::Blocks, q4_gemm::Quantized, q4_gemm::Repacked;

// Lets the next launch start at once, and writes when that may long have begun.
__global__ void write_late(uint32_t* to, const uint32_t* from, int64_t count) {
#if __CUDA_ARCH__ >= 900
  cudaTriggerProgrammaticLaunchCompletion();
#endif
#ifndef __SIMT__
  const long long begin = clock64();
  while (clock64() - begin < 400000) {
  }
#endif
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += int64_t{gridDim.x} * blockDim.x)
    to[i] = from[i];
}

struct Memory {
  ladder::DeviceMemory<uint32_t> words;
  size_t bytes;

  explicit Memory(size_t size, int byte = 0x3c) : words(ladder::allocate<uint32_t>((size + 3) / 4)), bytes(size) {
    CUDA_CHECK(cudaMemset(words.get(), byte, size));
  }
  template <class T = void>
  T* as() const {
    return reinterpret_cast<T*>(words.get());
  }
};

using Call = std::function<cudaError_t(bool dependent)>;
struct Between {
  const char* name;
  Call call;
};
struct Last {
  const char* name;
  const Memory &early, &result;  // what it reads before it waits, and what it writes
  Call call;
};

std::vector<char> bytes_of(const Memory& memory) {
  std::vector<char> bytes(memory.bytes);
  CUDA_CHECK(cudaMemcpy(bytes.data(), memory.as(), bytes.size(), cudaMemcpyDefault));
  return bytes;
}

// What the last call writes if all before it has ended: what is read early holds `byte` everywhere.
std::vector<char> result_with(const Last& last, int byte) {
  CUDA_CHECK(cudaMemset(last.early.as(), byte, last.early.bytes));
  CUDA_CHECK(last.call(false));
  return bytes_of(last.result);
}

constexpr int kStale = 0, kFresh = 0x3c;

std::vector<char> result_of_chain(const Between& between, const Last& last, const Memory& fresh, bool dependent) {
  CUDA_CHECK(cudaMemset(last.early.as(), kStale, last.early.bytes));
  CUDA_CHECK(cudaMemset(last.result.as(), 0xff, last.result.bytes));
  CUDA_CHECK(cudaDeviceSynchronize());
  write_late<<<1, 256>>>(last.early.as<uint32_t>(), fresh.as<uint32_t>(), static_cast<int64_t>(last.early.bytes / 4));
  CUDA_CHECK(between.call(dependent));
  CUDA_CHECK(last.call(dependent));
  return bytes_of(last.result);
}

// Of that many chains of either kind, none may differ.
bool is_right(const Between& between, const Last& last, int times) {
  const Memory fresh(last.early.bytes, kFresh);
  const std::vector<char> stale = result_with(last, kStale), expected = result_with(last, kFresh);
  int wrong[2] = {};
  for (const bool dependent : {false, true})
    for (int i = 0; i < times; ++i) wrong[dependent] += result_of_chain(between, last, fresh, dependent) != expected;
  std::printf("%s, %s: of %d chains are wrong: plain %d, dependent %d%s\n", between.name, last.name, times, wrong[0],
              wrong[1], stale == expected ? "; what was read early has no effect" : "");
  return wrong[0] + wrong[1] == 0 && stale != expected;
}

constexpr int64_t kM = 64, kK = 512, kMany = 40, kSome = 17;

bool run(const std::string& only) {
#ifdef __SIMT__
  constexpr int kTimes = 1;
#else
  constexpr int kTimes = 20;
#endif
  const Memory blocks(kM * kK / 32 * 18), packed(q4_gemm::packed_size(kM, kK)), x(4 * kMany * kK), sums(4 * kMany * kK);
  const Memory numbers(q4_gemm::quantized_size(kMany, kK)), y(4 * kMany * kM);
  const Memory product_workspace(q4_gemm::workspace_size(kM, kMany, kK));
  constexpr int64_t kLong = 70000, kTeamRow = 3000;  // a row for all blocks of the GPU, and one for a team
  const Memory row(4 * kLong), row_out(4 * kLong), odd(4 * 8 * 1001 + 16);
  const Memory gradients_workspace(rms_norm::backward_workspace_bytes(kMany, kK));
  const Memory norm_workspace(rms_norm::kWorkspaceBytes, 0), positions(2 * sizeof(int64_t), 0);

  // A group of one rank.
  const Memory region(rms_norm::region_bytes(1, 4 * kMany * kK));
  rms_norm::Communicator alone;
  alone.regions[0] = region.as(), alone.bytes = region.bytes;
  CUDA_CHECK(rms_norm::init_region(region.as(), region.bytes));

  const auto q4 = [](bool dependent, const Memory* workspace = nullptr) {
    q4_gemm::Options options;
    options.dependent_launch = dependent, options.workspace = workspace ? workspace->as() : nullptr;
    return options;
  };
  const auto q4_norm = [](bool dependent) {
    q4_gemm::NormOptions options;
    options.dependent_launch = dependent;
    return options;
  };
  const auto norm = [&](bool dependent) {
    rms_norm::Options options;
    options.dependent_launch = dependent, options.workspace = norm_workspace.as();
    return options;
  };
  const auto forward = [&](const Memory& from, int64_t rows, int64_t cols, int64_t stride, const float* weight,
                           const Memory& to, bool dependent) {
    const rms_norm::Tensor source{from.as<const float>(), {stride}};
    return rms_norm::forward(source, weight, rms_norm::Tensor{to.as<float>(), {stride}}, rows, cols, norm(dependent));
  };
  const float* const none = nullptr;
  const std::vector<Between> betweens = {
      {"rms_norm_quantize",
       [&](bool d) { return q4_gemm::rms_norm_quantize(x.as<float>(), none, numbers.as(), 2, kK, q4_norm(d)); }},
      {"add_rms_norm_quantize",
       [&](bool d) {
         return q4_gemm::add_rms_norm_quantize(x.as<float>(), x.as<float>(), sums.as<float>(), none, numbers.as(), 2,
                                               kK, q4_norm(d));
       }},
      {"quantize", [&](bool d) { return q4_gemm::quantize(x.as<float>(), numbers.as(), 2, kK, q4(d)); }},
      {"multiply",
       [&](bool d) {
         return q4_gemm::multiply(Repacked{packed.as()}, x.as<float>(), y.as<float>(), kM, 1, kK, nullptr, q4(d));
       }},
      {"multiply, blocks",
       [&](bool d) {
         return q4_gemm::multiply(Blocks{blocks.as()}, x.as<float>(), y.as<float>(), kM, 1, kK, nullptr, q4(d));
       }},
      {"multiply, quantized once",
       [&](bool d) {
         return q4_gemm::multiply(Repacked{packed.as()}, x.as<float>(), y.as<float>(), kM, kSome, kK, nullptr,
                                  q4(d, &product_workspace));
       }},
      {"multiply, many columns",
       [&](bool d) {
         return q4_gemm::multiply(Repacked{packed.as()}, x.as<float>(), y.as<float>(), kM, kMany, kK, nullptr,
                                  q4(d, &product_workspace));
       }},
      {"forward, contiguous", [&](bool d) { return forward(x, 2, kK, kK, none, sums, d); }},
      {"forward, strided", [&](bool d) { return forward(x, 2, kK - 4, kK, none, sums, d); }},
      {"forward, unaligned", [&](bool d) { return forward(odd, 8, 1001, 1001, none, odd, d); }},
      {"forward, batch-invariant",
       [&](bool d) {
         rms_norm::Options options = norm(d);
         options.batch_invariant = true;
         return rms_norm::forward(odd.as<float>() + 1, none, odd.as<float>() + 1, 8, 1000, options);
       }},
      {"qk_norm_rope",
       [&](bool d) {
         const rms_norm::Heads<float> heads = {sums.as<float>(), 2, 2, 1, 64};
         const rms_norm::Rotation<float> rotation = {x.as<const float>(), positions.as<const int64_t>(), 1};
         return rms_norm::qk_norm_rope(heads, none, none, rotation, norm(d));
       }},
      {"forward_quantized",
       [&](bool d) {
         rms_norm::Quantization how;
         how.scales = y.as<float>();
         return rms_norm::forward_quantized(x.as<const float>(), none, sums.as<int8_t>(), how, nullptr, 2, kK, norm(d));
       }},
      {"all_reduce_fused_add_rms_norm",
       [&](bool d) {
         rms_norm::AllReduceOptions options;
         options.dependent_launch = d;
         return rms_norm::all_reduce_fused_add_rms_norm(alone, x.as<const float>(), sums.as<float>(), sums.as<float>(),
                                                        none, y.as<float>(), 2, kK, options);
       }},
      {"backward",
       [&](bool d) {
         return rms_norm::backward(x.as<const float>(), nullptr, x.as<const float>(), row.as<const float>(),
                                   sums.as<float>(), y.as<float>(), gradients_workspace.as(), kMany, kK / 2 - 1,
                                   norm(d));
       }},
      {"backward, few rows",
       [&](bool d) {
         return rms_norm::backward(x.as<const float>(), nullptr, x.as<const float>(), row.as<const float>(),
                                   sums.as<float>(), y.as<float>(), gradients_workspace.as(), 2, 640, norm(d));
       }},
      {"backward, rows read again",
       [&](bool d) {
         return rms_norm::backward(x.as<const float>(), nullptr, x.as<const float>(), row.as<const float>(),
                                   sums.as<float>(), row_out.as<float>(), gradients_workspace.as(), 2, 9000, norm(d));
       }},
      {"backward, long rows",
       [&](bool d) {
         return rms_norm::backward(row.as<const float>(), nullptr, row.as<const float>(), none, row_out.as<float>(),
                                   static_cast<float*>(nullptr), nullptr, 1, kLong, norm(d));
       }},
      {"forward, a cluster a row", [&](bool d) { return forward(row, 1, 30000, kLong, none, row_out, d); }},
      {"forward, the GPU a row", [&](bool d) { return forward(row, 1, kLong, kLong, none, row_out, d); }},
      {"forward, a team a row",
       [&](bool d) {
         rms_norm::detail::Problem<float, void, float, float> p = {row.as<float>(), nullptr, row_out.as<float>()};
         p.rows = 4, p.cols = kTeamRow, p.inverse_cols = 1.0f / kTeamRow, p.weight_offset = 1, p.dependent = d;
         p.x_steps.row = p.y_steps.row = kTeamRow, p.workspace = norm_workspace.as<uint64_t>();
         return rms_norm::detail::launch_in_teams<4, rms_norm::Access::strided>(p, 1, 3, nullptr);
       }},
  };

  const Memory own_numbers(q4_gemm::quantized_size(1, kK)), result(4 * kM), normed(4 * kK);
  const Memory weights(q4_gemm::packed_size(kM, kK)), weight(4 * kK), quantized(q4_gemm::quantized_size(1, kK));
  const std::vector<Last> lasts = {
      {"multiply", weights, result,
       [&](bool d) {
         return q4_gemm::multiply(Repacked{weights.as()}, Quantized{own_numbers.as()}, result.as<float>(), kM, 1, kK,
                                  nullptr, q4(d));
       }},
      {"rms_norm_quantize", weight, quantized,
       [&](bool d) {
         return q4_gemm::rms_norm_quantize(x.as<float>(), weight.as<float>(), quantized.as(), 1, kK, q4_norm(d));
       }},
      {"forward", weight, normed, [&](bool d) { return forward(x, 1, kK, kK, weight.as<float>(), normed, d); }},
  };

  CUDA_CHECK(q4_gemm::quantize(x.as<float>(), own_numbers.as(), 1, kK));
  bool all_right = true;
  for (const Between& between : betweens)
    for (const Last& last : lasts)
      if (only.empty() || only == between.name) all_right = is_right(between, last, kTimes) && all_right;
  return all_right;
}

}  // namespace

// The name of a call: only chains with that one between.
int main(int count, char** given) try {
  return run(count > 1 ? given[1] : "") ? 0 : 1;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 2;
}
