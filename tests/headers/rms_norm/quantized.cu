// bfloat16 that ends in e4m3 and, with a residual, in int8; and what is refused.
#include "tests/headers/rms_norm/quantized.h"

namespace header_test {

std::vector<AddQuantized>& quantized_forms() {
  static std::vector<AddQuantized> all;
  return all;
}

namespace {

void arguments(Tally& tally) {
  using E = __nv_bfloat16;
  using Q = __nv_fp8_e4m3;
  const auto memory = ladder::allocate<E>(8192);
  E* const m = memory.get();
  CUDA_CHECK(cudaMemset(m, 0, 8192 * sizeof(E)));
  E *const x = m, *const residual = m + 1024, *const y = m + 2048, *const weight = m + 3072;
  auto* const q = reinterpret_cast<Q*>(m + 4096);
  auto* const scales = reinterpret_cast<float*>(m + 5120);
  const E* const none = nullptr;
  Q* const no_codes = nullptr;
  rms_norm::Options options;
  const auto past = [](auto* pointer, int bytes) {
    return reinterpret_cast<decltype(pointer)>(reinterpret_cast<uintptr_t>(pointer) + bytes);
  };
  const auto refused = [&](const char* wanted, auto... arguments) {
    std::string sentence;
    cudaError_t error;
    const char* got = rms_norm::explain_quantized(arguments...);
    sentence = got ? got : "";
    if constexpr (sizeof...(arguments) == 7 || sizeof...(arguments) == 8)
      error = rms_norm::forward_quantized(arguments...);
    else
      error = rms_norm::fused_add_rms_norm_quantized(arguments...);
    tally.expect(sentence == wanted && error == (sentence.empty() ? cudaSuccess : cudaErrorInvalidValue),
                 sentence + ", not: " + wanted);
  };
  const rms_norm::Quantization fixed = {scales}, rows = {nullptr, scales}, blocks = {nullptr, scales, 128};
  for (const auto& how : {fixed, rows, blocks}) {
    refused("", x, weight, q, how, y, 4, 200);
    refused("", x, weight, q, how, x, 4, 200);
    refused("", x, none, q, how, nullptr, 4, 200);
    refused("", x, residual, residual, weight, q, how, nullptr, 4, 200);
    refused("", x, residual, x, weight, q, how, residual, 4, 200);
    refused("", none, none, no_codes, how, nullptr, 0, 200);
  }
  refused("scale or scales is to be given, and not both", x, weight, q, rms_norm::Quantization{}, y, 4, 200);
  refused("scale or scales is to be given, and not both", x, weight, q, rms_norm::Quantization{scales, scales + 8}, y,
          4, 200);
  refused("block is given, and scale is one number for all", x, weight, q, rms_norm::Quantization{scales, nullptr, 128},
          y, 4, 200);
  refused("block is not 0, 64 or 128", x, weight, q, rms_norm::Quantization{nullptr, scales, 32}, y, 4, 200);
  const auto with = [&](auto change) {
    rms_norm::Quantization how = blocks;
    change(how);
    return how;
  };
  const auto upper = with([&](auto& how) { how = {scales}, how.upper_bound = scales + 8; });
  refused("upper_bound is given, and scale is not found by the kernel", x, weight, q, upper, y, 4, 200);
  const auto odd = with([&](auto& how) { how.scales = past(scales, 2); });
  refused("a scale is not aligned to 4 bytes", x, weight, q, odd, y, 4, 200);
  for (const int64_t pitch : {INT64_MIN, int64_t{-1}, INT64_MAX})
    refused("pitch is negative or too large for 64-bit addresses", x, weight, q,
            with([&](auto& how) { how.pitch = pitch; }), y, 4, 200);
  refused("pitch is smaller than what it is to step over", x, weight, q, with([](auto& how) { how.pitch = 1; }), y, 4,
          200);
  const auto columns = [&](int64_t pitch) {
    return with([=](auto& how) { how.pitch = pitch, how.order = rms_norm::Scales::column_major; });
  };
  refused("pitch is smaller than what it is to step over", x, weight, q, columns(3), y, 4, 200);
  refused("", x, weight, q, columns(4), y, 4, 200);
  refused("q is nullptr", x, weight, no_codes, rows, y, 4, 200);
  refused("x is nullptr", none, weight, q, rows, y, 4, 200);
  refused("residual_out is nullptr", x, residual, static_cast<E*>(nullptr), weight, q, rows, y, 4, 200);
  refused("cols is less than 1", x, weight, q, rows, y, 4, 0);
  refused("rows of q overlap each other", x, weight, rms_norm::Tensor{q, {199}}, rows, y, 4, 200);
  refused("the layouts have different heads", x, weight, rms_norm::Tensor{q, {400, 2, 200}}, rows, y, 4, 200);
  refused("q overlaps x", x, weight, reinterpret_cast<Q*>(x), rows, y, 4, 200);
  refused("q overlaps y", x, weight, reinterpret_cast<Q*>(y) - 799, rows, y, 4, 200);
  refused("q overlaps weight", x, weight, reinterpret_cast<Q*>(weight) + 1, rows, y, 4, 200);
  refused("q overlaps residual", x, residual, m + 6144, weight, reinterpret_cast<Q*>(residual), rows, y, 4, 200);
  refused("y overlaps x, and is not the same tensor", x, weight, q, rows, x + 1, 4, 200);
  refused("y overlaps residual_out", x, residual, residual, weight, q, rows, residual, 4, 200);
  for (const void* taken : {static_cast<const void*>(x), static_cast<const void*>(y), static_cast<const void*>(q),
                            static_cast<const void*>(weight)}) {
    auto* const there = static_cast<float*>(const_cast<void*>(taken));
    refused("scales overlaps a tensor", x, weight, q, rms_norm::Quantization{nullptr, there}, y, 4, 200);
    const bool read = taken == x || taken == weight;  // which a scale may be, too
    refused(read ? "" : "a scale overlaps what is written", x, weight, q, rms_norm::Quantization{there}, y, 4, 200);
  }
  refused("a scale overlaps what is written", x, weight, q, with([&](auto& how) {
            how = {nullptr, scales}, how.upper_bound = scales + 3;
          }),
          y, 4, 200);
  options.eps = -1.0f;
  refused("eps is negative or not finite", x, weight, q, rows, y, 4, 200, options);
  CUDA_CHECK(cudaDeviceSynchronize());
}

// A problem that does not stay in L2 has another kernel, whose numbers are those of a row alone.
void large_problem(Tally& tally, int64_t cols) {
  using E = __nv_bfloat16;
  using Q = __nv_fp8_e4m3;
  const int64_t rows = 5'800'000 / cols, of_row = cols / 128, step = rows / 14;
  const auto x = ladder::allocate<E>(rows * cols), weight = ladder::allocate<E>(cols);
  const auto q = ladder::allocate<Q>(rows * cols), q_alone = ladder::allocate<Q>(cols);
  const auto scales = ladder::allocate<float>(rows * of_row), scales_alone = ladder::allocate<float>(of_row);
  std::vector<E> numbers(rows * cols);
  uint32_t state = 1;
  for (E& number : numbers) {
    state = state * 1664525u + 1013904223u;
    number = __float2bfloat16(static_cast<float>(static_cast<int>(state >> 8) - (1 << 23)) / 4e6f);
  }
  CUDA_CHECK(cudaMemcpy(x.get(), numbers.data(), numbers.size() * sizeof(E), cudaMemcpyDefault));
  CUDA_CHECK(cudaMemcpy(weight.get(), numbers.data() + 1, cols * sizeof(E), cudaMemcpyDefault));
  const auto bytes_of = [](const void* from, int64_t count) {
    std::vector<char> bytes(count);
    CUDA_CHECK(cudaMemcpy(bytes.data(), from, count, cudaMemcpyDefault));
    return bytes;
  };
  for (const int64_t block : {0, 128}) {
    const int64_t blocks = block == 0 ? 1 : of_row;
    CUDA_CHECK(rms_norm::forward_quantized(x.get(), weight.get(), q.get(), {nullptr, scales.get(), block}, nullptr,
                                           rows, cols));
    for (int64_t row = 0; row < rows; row += step) {
      CUDA_CHECK(rms_norm::forward_quantized(x.get() + row * cols, weight.get(), q_alone.get(),
                                             {nullptr, scales_alone.get(), block}, nullptr, 1, cols));
      CUDA_CHECK(cudaDeviceSynchronize());
      const int64_t of_scales = blocks * static_cast<int64_t>(sizeof(float));
      tally.expect(bytes_of(q.get() + row * cols, cols) == bytes_of(q_alone.get(), cols) &&
                       bytes_of(scales.get() + row * blocks, of_scales) == bytes_of(scales_alone.get(), of_scales),
                   "row " + std::to_string(row) + " with " + std::to_string(blocks) + " scales");
    }
  }
}

}  // namespace

std::vector<Group> quantized(bool quick) {
  std::vector<Group> groups;
  add_quantized<__nv_bfloat16, void, float, __nv_fp8_e4m3>(groups, quick);
  add_quantized<__nv_bfloat16, __nv_bfloat16, __nv_bfloat16, int8_t>(groups, quick);
  for (const AddQuantized add : quantized_forms()) add(groups, quick);
  groups.push_back({"quantized: arguments", arguments});
  for (const int64_t cols : {4096, 8192, 12288, 16384})
    if (!quick)
      groups.push_back({"quantized: a large problem of " + std::to_string(cols) + " columns",
                        [=](Tally& tally) { large_problem(tally, cols); }});
  return groups;
}

}  // namespace header_test
