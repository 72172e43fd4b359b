// The gradients of x in bfloat16, and what is refused.
#include "tests/headers/rms_norm/backward.h"

namespace header_test {

std::vector<AddGradients>& gradients() {
  static std::vector<AddGradients> all;
  return all;
}

namespace {

void arguments(Tally& tally) {
  using E = __nv_bfloat16;
  const auto memory = ladder::allocate<E>(8192);
  E* const m = memory.get();
  CUDA_CHECK(cudaMemset(m, 0, 8192 * sizeof(E)));
  E *const dy = m, *const x = m + 1024, *const dx = m + 2048, *const weight = m + 3072, *const dweight = m + 4096,
           *const workspace = m + 5120;
  const E* const none = nullptr;
  E* const nothing = nullptr;
  rms_norm::Options options;
  const auto expect = [&](const char* got, cudaError_t error, const char* wanted) {
    const std::string sentence = got ? got : "";
    tally.expect(sentence == wanted && (error == cudaSuccess) == sentence.empty(), sentence + ", not: " + wanted);
  };
  const auto shifted = [](E* pointer) { return reinterpret_cast<E*>(reinterpret_cast<uintptr_t>(pointer) + 1); };
  const auto refused = [&](const char* wanted, auto... arguments) {
    expect(rms_norm::explain_backward(arguments...), rms_norm::backward(arguments...), wanted);
  };
  refused("", dy, nullptr, x, weight, dx, dweight, workspace, 4, 64);
  refused("", dy, nullptr, x, weight, dy, nothing, nullptr, 4, 64);
  refused("", none, nullptr, none, weight, nothing, dweight, nullptr, 0, 64);
  refused("rows is negative", dy, nullptr, x, weight, dx, dweight, workspace, -1, 64);
  refused("cols is less than 1", dy, nullptr, x, weight, dx, dweight, workspace, 4, 0);
  refused("dy is nullptr", none, nullptr, x, weight, dx, dweight, workspace, 4, 64);
  refused("dx is nullptr", dy, nullptr, x, weight, nothing, dweight, workspace, 4, 64);
  refused("dweight is given, and weight is nullptr", dy, nullptr, x, none, dx, dweight, workspace, 4, 64);
  refused("dweight is wanted, and workspace is nullptr", dy, nullptr, x, weight, dx, dweight, nullptr, 4, 64);
  refused("dx overlaps x, and is not the same tensor", dy, nullptr, x, weight, x + 1, dweight, workspace, 4, 64);
  refused("dx overlaps dy, and is not the same tensor", dy, nullptr, x, weight, dy + 64, dweight, workspace, 4, 64);
  refused("dx overlaps weight", dy, nullptr, x, dx + 64, dx, dweight, workspace, 4, 64);
  refused("dweight overlaps weight", dy, nullptr, x, weight, dx, weight, workspace, 4, 64);
  refused("dweight overlaps a tensor", dy, nullptr, x, weight, dx, dx + 192, workspace, 4, 64);
  refused("dweight overlaps a tensor", dy, x, dx, weight, dx, x, workspace, 4, 64);
  for (E* taken : {dy, x, dx})
    refused("workspace overlaps a tensor", dy, nullptr, x, weight, dx, dweight, taken, 4, 64);
  refused("workspace overlaps weight or dweight", dy, nullptr, x, weight, dx, dweight, weight, 4, 64);
  refused("workspace overlaps weight or dweight", dy, nullptr, x, weight, dx, dweight, dweight - 64, 4, 64);
  refused("", dy, nullptr, x, weight, dx, nothing, x, 4, 64);  // no workspace is needed
  refused("x is not aligned to its element type", dy, nullptr, shifted(x), weight, dx, dweight, workspace, 4, 64);
  refused("dsum is not aligned to its element type", dy, shifted(x), x, weight, dx, dweight, workspace, 4, 64);
  refused("cols is too large for dweight", none, nullptr, none, weight, nothing, dweight, nullptr, 0, int64_t{1} << 40);
  const rms_norm::Layout heads = {128, 2, 64}, far = {128, 2, INT64_MIN};
  refused("a stride is too large for 64-bit addresses", rms_norm::Tensor{dy, heads}, nullptr, rms_norm::Tensor{x, far},
          weight, rms_norm::Tensor{dx, heads}, dweight, workspace, 4, 64);
  refused("", dy, nullptr, rms_norm::Tensor{x, {INT64_MAX}}, weight, dx, dweight, workspace, 1, 64);  // no row needs it
  refused("rows of dx overlap each other", dy, nullptr, x, weight, rms_norm::Tensor{dx, {63}}, nothing, nullptr, 4, 64);
  options.eps = -1.0f;
  refused("eps is negative or not finite", dy, nullptr, x, weight, dx, dweight, workspace, 4, 64, options);
  for (const int64_t rows : {-1, 0})
    tally.expect(rms_norm::backward_workspace_bytes(rows, 64) == 0, "bytes of no rows");
  // An error of another call is not this one's.
  void* too_much = nullptr;
  static_cast<void>(cudaMalloc(&too_much, size_t{1} << 60));
  refused("", dy, nullptr, x, weight, dx, dweight, workspace, 4, 64);
  static_cast<void>(cudaGetLastError());
  CUDA_CHECK(cudaDeviceSynchronize());
}

}  // namespace

std::vector<Group> backward(bool quick) {
  std::vector<Group> groups;
  begin_with<__nv_bfloat16>(groups, quick);
  add_others<__nv_bfloat16>(groups, quick);
  for (const AddGradients add : gradients()) add(groups, quick);
  groups.push_back({"backward: arguments", arguments});
  return groups;
}

}  // namespace header_test
