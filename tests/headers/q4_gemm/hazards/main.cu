// Each kernel of the header once, for tools that look for races and take their time: the analysis of the CPU device, in
// tests/headers/test_q4_header.py, and
//   make BACKEND=cuda tests/headers/q4_gemm/hazards/program
//   compute-sanitizer --tool racecheck build/cuda/tests/headers/q4_gemm/hazards/q4_hazards
// What they compute is not looked at.
#include <cstdint>
#include <cstdio>
#include <q4_gemm/q4_gemm.cuh>

namespace {

struct XInSlots : q4_gemm::policies::H200 {
  static constexpr q4_gemm::FewChoice kFew[] = {
      {q4_gemm::kAnySize, q4_gemm::kAnySize, q4_gemm::kAnySize, 4, 2, 8, 3, 8, 1, true, 2}};
};

// With an odd number of chunks, and two sets of rows for the blocks of a cluster.
constexpr int64_t kM = 130, kK = 2848, kColumns = 40;

template <class T = void>
T* allocate(size_t bytes) {
  T* memory = nullptr;
  if (cudaMalloc(&memory, bytes) == cudaSuccess) cudaMemset(memory, 0x11, bytes);
  return memory;
}

cudaError_t launch_all() {
  using q4_gemm::Repacked, q4_gemm::Quantized, q4_gemm::multiply;
  const int64_t few = 3;
  void* const blocks = allocate(kM * kK / 32 * 18);
  void* const packed = allocate(q4_gemm::packed_size(kM, kK));
  void* const numbers = allocate(q4_gemm::quantized_size(kColumns, kK));
  float* const x = allocate<float>(sizeof(float) * kColumns * kK);
  float* const y = allocate<float>(sizeof(float) * kM * kColumns);
  q4_gemm::Options options;
  options.workspace = allocate(q4_gemm::workspace_size(kM, kColumns, kK));
  cudaError_t error = q4_gemm::repack(blocks, packed, kM, kK);
  const auto next = [&](cudaError_t result) { error = error == cudaSuccess ? result : error; };
  next(multiply(Repacked{packed}, x, y, kM, few, kK));
  next(multiply(q4_gemm::Blocks{blocks}, x, y, kM, 1, kK));
  next(q4_gemm::add_rms_norm_quantize(x, x, x, nullptr, numbers, few, kK));
  next(multiply(Repacked{packed}, Quantized{numbers}, y, kM, few, kK));
  next(multiply<XInSlots>(Repacked{packed}, Quantized{numbers}, y, kM, few, kK));
  next(multiply(Repacked{packed}, x, y, kM, few, kK, nullptr, options));
  next(multiply(Repacked{packed}, x, y, kM, kColumns, kK, nullptr, options));
  next(multiply<q4_gemm::policies::H200Rounded>(Repacked{packed}, x, y, kM, kColumns, kK, nullptr, options));
  return error == cudaSuccess ? cudaDeviceSynchronize() : error;
}

}  // namespace

int main() {
  const cudaError_t error = launch_all();
  if (error != cudaSuccess) std::printf("%s\n", cudaGetErrorString(error));
  return error != cudaSuccess;
}
