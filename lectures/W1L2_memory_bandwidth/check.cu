#include "check.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <numeric>
#include <vector>

#include "common/device_buffer.h"
#include "common/text.h"

namespace memory_bandwidth {
namespace {

constexpr int kOffsets[][2] = {{0, 0}, {1, 0}, {0, 1}, {1, 1}};
constexpr int64_t kAround = 1024;  // words
constexpr int64_t kStaging = 1 << 22;

// Around the sizes of vectors, warps, blocks and tiles; the last has more tiles than a resident grid has blocks.
std::vector<int64_t> sizes(bool cpu_device) {
  return {0, 1, 2, 3, 4, 5, 31, 32, 33, 255, 1000, 1023, 1024, 1025, 4096, 8193, 65536, cpu_device ? 1000003 : 6000011};
}

__global__ void random_kernel(float* to, int64_t count, uint32_t seed) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= count) return;
  uint32_t bits = static_cast<uint32_t>(i) ^ seed;  // MurmurHash3's finalizer, twice
  for (int round = 0; round < 2; ++round) {
    bits = (bits ^ (bits >> 16)) * 0x85ebca6bu;
    bits = (bits ^ (bits >> 13)) * 0xc2b2ae35u;
    bits ^= bits >> 16;
  }
  to[i] = __uint_as_float(bits);
}

std::vector<uint32_t> download(const ladder::DeviceBuffer& buffer) {
  std::vector<uint32_t> bits(buffer.size());
  CUDA_CHECK(cudaMemcpy(bits.data(), buffer.data(), bits.size() * sizeof(float), cudaMemcpyDeviceToHost));
  return bits;
}

// `from` has random words before and behind it, so that a copy that goes too far brings something else into the guards
// of `to` than what is there.
std::string check_once(const Variant& variant, int64_t count, const int (&offsets)[2]) {
  ladder::DeviceBuffer around(count + 2 * kAround, 0, offsets[0]), to(count, kAround, offsets[1]);
  const float* from = around.data() + kAround;
  fill_random(around.data(), around.size(), static_cast<uint32_t>(count) + 1);
  const std::vector<uint32_t> before = download(around);
  prepare(variant, to.data(), count);
  variant.launch(from, to.data(), count, cudaStreamPerThread);
  CUDA_CHECK(cudaGetLastError());
  std::string failure = verify(variant, from, to.data(), count);
  if (download(around) != before) failure += "; changed what it may only read";
  if (const size_t words = to.overrun().size())
    failure += ladder::text("; wrote outside its buffer: %zu guard words overwritten", words);
  return failure;
}

}  // namespace

void fill_random(float* to, int64_t count, uint32_t seed) {
  if (count > 0) random_kernel<<<static_cast<unsigned>(blocks_for(count, 256)), 256>>>(to, count, seed);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaDeviceSynchronize());
}

void prepare(const Variant& variant, float* to, int64_t count) {
  CUDA_CHECK(cudaMemset(to, variant.moves == Moves::read ? 0 : 0xa5, count * sizeof(float)));
  CUDA_CHECK(cudaDeviceSynchronize());
}

std::string verify(const Variant& variant, const float* from, const float* to, int64_t count) {
  CUDA_CHECK(cudaDeviceSynchronize());
  const ladder::HostBuffer staged_from(std::min(count, kStaging)), staged_to(std::min(count, kStaging));
  const auto* source = reinterpret_cast<const uint32_t*>(staged_from.data());
  const auto* target = reinterpret_cast<const uint32_t*>(staged_to.data());
  int64_t wrong = 0, first_wrong = 0;
  uint32_t expected = 0, got = 0, read_sum = 0, kept_sum = 0;
  for (int64_t first = 0; first < count; first += kStaging) {
    const int64_t length = std::min(kStaging, count - first);
    const size_t bytes = length * sizeof(float);
    CUDA_CHECK(cudaMemcpy(staged_from.data(), from + first, bytes, cudaMemcpyDeviceToHost));
    CUDA_CHECK(cudaMemcpy(staged_to.data(), to + first, bytes, cudaMemcpyDeviceToHost));
    if (variant.moves == Moves::read) {
      read_sum = std::accumulate(source, source + length, read_sum);
      kept_sum = std::accumulate(target, target + length, kept_sum);
      continue;
    }
    if (variant.moves == Moves::copy && std::memcmp(source, target, bytes) == 0) continue;
    for (int64_t i = 0; i < length; ++i) {
      const uint32_t wanted =
          variant.moves == Moves::copy ? source[i] : static_cast<uint32_t>(first + i) * kPatternStep;
      if (target[i] == wanted) continue;
      if (wrong++ == 0) first_wrong = first + i, expected = wanted, got = target[i];
    }
  }
  if (wrong > 0)
    return ladder::text("%lld of %lld words wrong, the first at %lld: expected 0x%08x, got 0x%08x",
                        static_cast<long long>(wrong), static_cast<long long>(count),
                        static_cast<long long>(first_wrong), expected, got);
  if (read_sum != kept_sum)
    return ladder::text("the sum of %lld words is wrong: expected 0x%08x, got 0x%08x", static_cast<long long>(count),
                        read_sum, kept_sum);
  return "";
}

std::string check_small(const Variant& variant, bool cpu_device) {
  for (const int64_t count : sizes(cpu_device))
    for (const auto& offsets : kOffsets) {
      std::string failure;
      try {
        failure = check_once(variant, count, offsets);
      } catch (const ladder::CudaError& error) {
        failure = error.what();
      }
      if (failure.empty()) continue;
      if (failure[0] == ';') failure = failure.substr(2);
      return ladder::text("%lld elements, from off by %d, to off by %d: %s", static_cast<long long>(count), offsets[0],
                          offsets[1], failure.c_str());
    }
  return "";
}

int small_problems() { return static_cast<int>(sizes(true).size() * std::size(kOffsets)); }

}  // namespace memory_bandwidth
