// The kernel of teams (include/rms_norm/teams.cuh) alone, on smaller problems than the header would give it, so that
// the CPU device, its analysis and the tools of compute-sanitizer take seconds:
//
//   make BACKEND=cuda tests/headers/rms_norm/teams/program
//   compute-sanitizer --tool racecheck build/cuda/tests/headers/rms_norm/teams/teams_test
//
// Three or four blocks form the teams: so many the CPU device runs at once. Each launch has other numbers than the one
// before, and between two of them another kernel uses the workspace. Exit code 1 if anything is wrong, 2 if a CUDA call
// fails.
#include <cuda_bf16.h>
#include <rms_norm/rms_norm.cuh>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <vector>

#include "common/memory.h"

using namespace rms_norm::detail;
using rms_norm::Access;
using bf16 = __nv_bfloat16;

namespace {

template <class T>
cudaError_t copy(T* to, const T* from, size_t count) {
  return cudaMemcpy(to, from, sizeof(T) * count, cudaMemcpyDefault);
}

template <class T>
double value_of(T number) {
  return static_cast<double>(static_cast<float>(number));
}

// How many elements of a row are wrong.
template <class X, class W, class Y>
int64_t wrong_of_row(const X* x, const std::vector<W>* weight, double weight_offset, const Y* y, int64_t cols,
                     double eps) {
  double squares = 0;
  for (int64_t i = 0; i < cols; ++i) squares += value_of(x[i]) * value_of(x[i]);
  const double rstd = 1 / std::sqrt(squares / static_cast<double>(cols) + eps);
  int64_t wrong = 0;
  for (int64_t i = 0; i < cols; ++i) {
    const double expected = value_of(x[i]) * rstd * (weight ? weight_offset + value_of((*weight)[i]) : 1.0);
    const double limit = (sizeof(Y) == 2 ? 4e-3 : 1e-6) * (std::abs(expected) + 1e-6);
    wrong += !(std::abs(value_of(y[i]) - expected) <= limit);
  }
  return wrong;
}

// One row of ones through another kernel that uses the workspace: whether it gives ones.
template <class X, int N = 16 / sizeof(X)>
bool use_workspace(uint64_t* workspace) {
  std::vector<X> row(N * 64, X(1.0f));
  const auto there = ladder::allocate<X>(row.size());
  CUDA_CHECK(copy(there.get(), row.data(), row.size()));
  Problem<X, void, X, X> p = {there.get(), nullptr, there.get()};
  p.rows = 1, p.cols = N * 64, p.workspace = workspace, p.inverse_cols = 1.0f / (N * 64), p.weight_offset = 1;
  cudaError_t error = launch_across_gpu<N, 4, 256, Access::strided>(p, 3, nullptr);
  if (error == cudaSuccess) error = copy(row.data(), there.get(), row.size());
  return error == cudaSuccess && std::all_of(row.begin(), row.end(), [](X x) { return value_of(x) == 1.0; });
}

// Three launches: how many of them are wrong. The tensors begin `offset` elements behind an aligned address, and
// between two rows of y nothing may be written.
template <class X, class W, class Y, Access access = Access::strided>
int check(int64_t rows, int64_t cols, int64_t stride, float weight_offset, bool has_weight, uint64_t* workspace,
          int64_t offset = 0) {
  constexpr int N = 16 / sizeof(X), kMost = team_packs<access>;
  constexpr float kEps = 1e-3f;
  std::vector<X> x(offset + rows * stride);
  std::vector<W> weight(cols);
  std::vector<Y> y(offset + rows * stride), untouched(stride);
  std::memset(static_cast<void*>(untouched.data()), 0xff, sizeof(Y) * stride);
  for (int64_t i = 0; i < cols; ++i) weight[i] = W(static_cast<float>(i % 17 - 8) / 8.0f);
  const auto x_there = ladder::allocate<X>(x.size());
  const auto weight_there = ladder::allocate<W>(cols);
  const auto y_there = ladder::allocate<Y>(y.size());
  CUDA_CHECK(copy(weight_there.get(), weight.data(), weight.size()));
  int failures = 0;
  for (int launch = 0; launch < 3; ++launch) {
    for (size_t i = 0; i < x.size(); ++i)
      x[i] = X(static_cast<float>(static_cast<int>((i * 7919 + i / 977) % 201) - 100) / (64.0f + 9.0f * launch));
    CUDA_CHECK(copy(x_there.get(), x.data(), x.size()));
    CUDA_CHECK(cudaMemset(y_there.get(), 0xff, sizeof(Y) * y.size()));
    Problem<X, void, W, Y> p = {x_there.get() + offset, has_weight ? weight_there.get() : nullptr,
                                y_there.get() + offset};
    p.rows = rows, p.cols = cols, p.workspace = workspace, p.inverse_cols = 1.0f / static_cast<float>(cols);
    p.eps = kEps, p.weight_offset = has_weight ? weight_offset : 1.0f;
    p.x_steps.row = p.y_steps.row = stride, p.dependent = launch == 1;
    const int64_t parts = (cols / N + kMost - 1) / kMost;
    const int blocks = access == Access::strided && parts <= 3 ? 3 + launch % 2 : 4;
    const int teams = static_cast<int>(std::min(rows, blocks / parts));
    cudaError_t error = launch_in_teams<N, access>(p, teams, blocks / teams, nullptr);
    if (error == cudaSuccess) error = copy(y.data(), y_there.get(), y.size());
    const auto is_untouched = [&](const Y* from, int64_t count) {
      return std::memcmp(static_cast<const void*>(from), static_cast<const void*>(untouched.data()),
                         sizeof(Y) * count) == 0;
    };
    int64_t wrong = is_untouched(y.data(), offset) ? 0 : 1;
    for (int64_t r = 0; r < rows; ++r) {
      const Y* const row = y.data() + offset + r * stride;
      wrong +=
          wrong_of_row(x.data() + offset + r * stride, has_weight ? &weight : nullptr, weight_offset, row, cols, kEps);
      wrong += !is_untouched(row + cols, stride - cols);
    }
    const bool others_work = launch != 1 || use_workspace<X>(workspace);
    std::printf("%d x %d in %d teams of %d: %s, %d wrong%s\n", static_cast<int>(rows), static_cast<int>(cols), teams,
                blocks / teams, cudaGetErrorName(error), static_cast<int>(wrong),
                others_work ? "" : ", and the next kernel on the workspace is wrong");
    failures += error != cudaSuccess || wrong > 0 || !others_work;
  }
  return failures;
}

}  // namespace

int main() try {
  const auto memory = ladder::allocate<uint64_t>(rms_norm::kWorkspaceBytes / sizeof(uint64_t));
  uint64_t* const workspace = memory.get();
  CUDA_CHECK(rms_norm::init_workspace(workspace));
  constexpr Access unaligned = Access::unaligned;
  int failures = check<float, float, float>(21, 12000, 12000, 0.0f, true, workspace);
  failures += check<bf16, float, bf16>(9, 16392, 16400, 1.0f, true, workspace);       // wide weights
  failures += check<bf16, bf16, float>(10, 65536, 65536, 0.0f, true, workspace);      // one team, as full as it can be
  failures += check<float, float, float>(40, 4 * 9, 4 * 11, 0.0f, false, workspace);  // most threads idle
  failures += check<bf16, bf16, bf16, unaligned>(21, 20001, 20004, 0.0f, true, workspace, 1);  // in turn aligned alike
  failures += check<bf16, float, float, unaligned>(7, 50001, 50008, 1.0f, true, workspace, 5);
  failures += check<float, float, float, unaligned>(101, 1001, 1001, 0.0f, false, workspace, 3);
  return failures > 0;
} catch (const ladder::CudaError& error) {
  std::fprintf(stderr, "teams_test: %s\n", error.what());
  return 2;
}
