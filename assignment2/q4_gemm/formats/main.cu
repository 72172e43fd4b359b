// Quantizes floats from stdin, or weights that are blocks already, to stdout: what tests compare with another reader
// and writer of the formats.
//   q4_formats_test q4_0|q8_1 host|device    floats in, blocks out
//   q4_formats_test repack                   blocks of q4_0 in; out come 16 bytes of each block, then the scale of each
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "common/memory.h"
#include "common/program.h"
#include "quantize.cuh"

namespace ladder::q4_gemm {
namespace {

std::vector<char> read_all() {
  std::vector<char> bytes;
  char part[1 << 16];
  while (const size_t count = std::fread(part, 1, sizeof part, stdin)) bytes.insert(bytes.end(), part, part + count);
  return bytes;
}

template <class Block>
Block on_host(const float* x);
template <>
block_q4_0 on_host(const float* x) {
  return quantized_q4_0(x);
}
template <>
block_q8_1 on_host(const float* x) {
  return quantized_q8_1(x);
}

// Bytes to the device, `work` there, and `size` bytes back.
template <class Work>
std::vector<char> on_device(const std::vector<char>& from, size_t size, Work work) {
  const DeviceMemory<> input = allocate(from.size()), output = allocate(size);
  CUDA_CHECK(cudaMemcpy(input.get(), from.data(), from.size(), cudaMemcpyHostToDevice));
  work(input.get(), output.get());
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaDeviceSynchronize());
  std::vector<char> to(size);
  CUDA_CHECK(cudaMemcpy(to.data(), output.get(), size, cudaMemcpyDeviceToHost));
  return to;
}

template <class Block>
std::vector<char> blocks_of(const std::vector<char>& from, bool device) {
  const size_t blocks = from.size() / (sizeof(float) * kBlock);
  if (device)
    return on_device(from, blocks * sizeof(Block), [&](char* x, char* to) {
      quantize(reinterpret_cast<const float*>(x), reinterpret_cast<Block*>(to), static_cast<int64_t>(blocks), nullptr);
    });
  std::vector<float> x(blocks * kBlock);
  std::memcpy(x.data(), from.data(), x.size() * sizeof(float));
  std::vector<char> to(blocks * sizeof(Block));
  for (size_t b = 0; b < blocks; ++b) {
    const Block block = on_host<Block>(x.data() + b * kBlock);
    std::memcpy(to.data() + b * sizeof block, &block, sizeof block);
  }
  return to;
}

std::vector<char> repacked(const std::vector<char>& from) {
  const auto blocks = static_cast<int64_t>(from.size() / sizeof(block_q4_0));
  return on_device(from, from.size(), [=](char* w, char* to) {
    repack(reinterpret_cast<const block_q4_0*>(w), reinterpret_cast<uint4*>(to),
           reinterpret_cast<uint16_t*>(to + 16 * blocks), blocks, nullptr);
  });
}

int body(const std::vector<std::string>& words) {
  const bool is_repack = words == std::vector<std::string>{"repack"};
  const bool is_known = words.size() == 2 && (words[0] == "q4_0" || words[0] == "q8_1");
  if (!is_repack && !(is_known && (words[1] == "host" || words[1] == "device"))) {
    std::fputs("q4_formats_test: say q4_0 or q8_1, and host or device; or repack\n", stderr);
    return 2;
  }
  const bool device = words.back() != "host";
  if (device) require_device();
  const std::vector<char> from = read_all();
  const size_t unit = is_repack ? sizeof(block_q4_0) : sizeof(float) * kBlock;
  if (from.empty() || from.size() % unit != 0) {
    std::fprintf(stderr, "q4_formats_test: %zu bytes came; give one or more times %zu\n", from.size(), unit);
    return 2;
  }
  const std::vector<char> to = is_repack            ? repacked(from)
                               : words[0] == "q4_0" ? blocks_of<block_q4_0>(from, device)
                                                    : blocks_of<block_q8_1>(from, device);
  return std::fwrite(to.data(), 1, to.size(), stdout) == to.size() ? 0 : 1;
}

}  // namespace
}  // namespace ladder::q4_gemm

int main(int argc, char** argv) {
  return ladder::guarded("q4_formats_test", [=] { return ladder::q4_gemm::body({argv + 1, argv + argc}); });
}
