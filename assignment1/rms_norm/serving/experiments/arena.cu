#include "arena.h"

#include <cuda_fp16.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "common/memory.h"
#include "common/random.h"
#include "common/text.h"

namespace ladder::serving {
namespace {

constexpr int64_t kLongestRow = 8192;

int64_t rounded_up(int64_t bytes) { return (bytes + 255) / 256 * 256; }

}  // namespace

int64_t bytes_of(Dtype dtype) { return dtype == Dtype::float32 ? 4 : 2; }
const char* name_of(Dtype dtype) {
  return dtype == Dtype::half ? "half" : dtype == Dtype::bfloat16 ? "bfloat16" : "float";
}

const AnyStage& stage_of(const Report& report, const char* name) {
  for (const Result& result : report.results)
    if (std::strcmp(name, result.stage->name) == 0) return *result.stage;
  throw UsageError(text("this experiment needs %s; leave --stage out", name));
}

double bytes_of_call(bool adds_residual, int64_t num_tokens, int64_t hidden_size, Dtype dtype) {
  return (adds_residual ? 4.0 : 2.0) * static_cast<double>(num_tokens * hidden_size * bytes_of(dtype));
}

// The largest shape of the document once, or as much as copies_for asks for. Every pattern of 16 or 32 bits that lies
// in it is a number of ordinary size in each of the three types.
Arena::Arena(const Device& device)
    : device_(device),
      bytes_(device.cpu ? int64_t{1} << 24 : static_cast<int64_t>(1.1e9 + 8.0 * device.l2_bytes)),
      memory_(allocate(bytes_)),
      weight_(allocate(kLongestRow * 4)) {
  std::vector<uint16_t> pattern(1 << 20);
  for (size_t i = 0; i < pattern.size(); ++i)
    pattern[i] = static_cast<uint16_t>(0x3c00u + (hash32(1, static_cast<int64_t>(i)) & 0x80ffu));
  const auto size = static_cast<int64_t>(pattern.size() * sizeof(uint16_t));
  for (int64_t done = 0; done < bytes_; done += size)
    CUDA_CHECK(cudaMemcpy(memory_.get() + done, pattern.data(), std::min(size, bytes_ - done), cudaMemcpyDefault));
  CUDA_CHECK(cudaMemcpy(weight_.get(), pattern.data(), kLongestRow * 4, cudaMemcpyDefault));
}

ServingCall Arena::call(bool adds_residual, int64_t num_tokens, int64_t hidden_size, Dtype dtype, int64_t copy) const {
  const int64_t each = rounded_up(num_tokens * hidden_size * bytes_of(dtype));
  char* first = memory_.get() + 2 * copy * each;
  return {adds_residual ? first : first + each,
          first,
          hidden_size,
          adds_residual ? first + each : nullptr,
          weight_.get(),
          1e-6f,
          num_tokens,
          hidden_size,
          dtype};
}

int64_t Arena::copies(bool, int64_t num_tokens, int64_t hidden_size, Dtype dtype) const {
  const int64_t each = 2 * rounded_up(num_tokens * hidden_size * bytes_of(dtype));
  return std::clamp<int64_t>(copies_for(static_cast<double>(each), device_), 1, std::max<int64_t>(bytes_ / each, 1));
}

Timing Arena::time(Launch launch, bool adds_residual, int64_t num_tokens, int64_t hidden_size, Dtype dtype,
                   int iterations) const {
  const auto one = [&](int64_t number, cudaStream_t stream) {
    launch(call(adds_residual, num_tokens, hidden_size, dtype, number), stream);
  };
  const Timing timing =
      measure(NumberedLaunch(one), copies(adds_residual, num_tokens, hidden_size, dtype), iterations, 4e3);
  CUDA_CHECK(cudaGetLastError());
  return timing;
}

void require_right(const AnyStage& stage, int64_t hidden_size, Dtype dtype, const Report& report) {
  for (const int64_t num_tokens : {3, 300}) {
    const Case given(*stage.op, {{num_tokens, hidden_size, static_cast<int64_t>(dtype)}}, report.options.seed);
    Problem problem(given, stage.op->plain());
    const Outcome outcome = problem.check(stage, {nullptr});
    if (!outcome.failure.empty()) throw std::runtime_error(text("%s: %s", stage.name, outcome.failure.c_str()));
  }
}

}  // namespace ladder::serving
