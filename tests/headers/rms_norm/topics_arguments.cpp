// What is refused, with nothing written.
#include <functional>
#include <limits>

#include "common/text.h"
#include "tests/headers/rms_norm/topics.h"

namespace header_test {

using ladder::text;

void arguments(Tally& tally, const Combination& c, bool) {
  constexpr int64_t kCols = 64, kRows = 6;
  const float nan = std::numeric_limits<float>::quiet_NaN(), infinity = std::numeric_limits<float>::infinity();
  const auto past = [](auto* pointer, int64_t bytes) {
    return reinterpret_cast<decltype(pointer)>(reinterpret_cast<uintptr_t>(pointer) + bytes);
  };
  Problem problem = {kRows, kCols};
  for (const int tensor : matrices(c)) problem.layout(tensor) = {kCols + 8};
  Workspace memory;
  problem.workspace = memory.data();
  Trial trial(c, problem);
  tally.expect(trial.run());
  trial.reset();

  const auto expect = [&](cudaError_t wanted, const char* what, const std::function<void(Call&)>& change) {
    Call call = trial.call();
    change(call);
    const cudaError_t got = c.run(call, nullptr);
    const bool untouched = trial.untouched();
    tally.expect(got == wanted, text("%s: returned %s, not %s", what, cudaGetErrorName(got), cudaGetErrorName(wanted)));
    tally.expect(untouched, text("%s: something was written", what));
    const char* const why = c.explain(call);
    tally.expect((why != nullptr) == (wanted != cudaSuccess), text("%s: explained as %s", what, why ? why : "right"));
    if (!untouched) trial.reset();
    static_cast<void>(cudaGetLastError());
  };
  const auto refuse = [&](const char* what, const std::function<void(Call&)>& change) {
    expect(cudaErrorInvalidValue, what, change);
  };
  refuse("rows = -1", [](Call& a) { a.rows = -1; });
  refuse("rows = -2^63", [](Call& a) { a.rows = INT64_MIN; });
  refuse("cols = 0", [](Call& a) { a.cols = 0; });
  refuse("cols = 0 without rows", [](Call& a) { a.cols = a.rows = 0; });
  refuse("cols = -1", [](Call& a) { a.cols = -1; });
  refuse("cols = 2^63 - 1", [](Call& a) { a.cols = INT64_MAX; });
  refuse("rows · cols past 2^63", [](Call& a) { a.rows = a.cols = int64_t{1} << 40; });
  refuse("eps < 0", [](Call& a) { a.options.eps = -1e-6f; });
  refuse("eps NaN", [=](Call& a) { a.options.eps = nan; });
  refuse("eps infinite", [=](Call& a) { a.options.eps = infinity; });
  refuse("eps -infinite", [=](Call& a) { a.options.eps = -infinity; });
  refuse("weight_offset NaN", [=](Call& a) { a.options.weight_offset = nan; });
  refuse("weight_offset infinite", [=](Call& a) { a.options.weight_offset = -infinity; });
  refuse("x null", [](Call& a) { a.x = nullptr; });
  refuse("y null", [](Call& a) { a.y = nullptr; });
  refuse("x misaligned", [=](Call& a) { a.x = past(a.x, 1); });
  refuse("y misaligned", [=](Call& a) { a.y = past(a.y, 1); });
  refuse("weight misaligned", [=](Call& a) { a.weight = past(a.weight, 1); });
  refuse("workspace misaligned", [=](Call& a) { a.options.workspace = past(a.options.workspace, 8); });
  refuse("stride past 2^63", [](Call& a) { a.x_layout.stride = INT64_MAX / 4; });
  refuse("rows no multiple of heads", [](Call& a) {
    for (Layout* l : {&a.x_layout, &a.y_layout, &a.residual_layout, &a.residual_out_layout}) *l = {1000, 4, 72};
  });
  for (const int64_t heads : {int64_t{0}, int64_t{-2}, int64_t{3}, INT64_MIN}) {
    const std::string of = text(", heads %lld", static_cast<long long>(heads));
    refuse(("x" + of).c_str(), [=](Call& a) { a.x_layout.heads = heads; });
    refuse(("y" + of).c_str(), [=](Call& a) { a.y_layout.heads = heads; });
    if (c.adds()) {
      refuse(("residual" + of).c_str(), [=](Call& a) { a.residual_layout.heads = heads; });
      refuse(("residual_out" + of).c_str(), [=](Call& a) { a.residual_out_layout.heads = heads; });
    }
    if (heads == 3) continue;
    refuse(("all tensors" + of).c_str(), [=](Call& a) {
      for (Layout* l : {&a.x_layout, &a.y_layout, &a.residual_layout, &a.residual_out_layout}) l->heads = heads;
    });
  }
  const auto with_heads = [](Layout wrong, Layout Call::*of) {
    return [=](Call& a) {
      for (Layout* l : {&a.x_layout, &a.y_layout, &a.residual_layout, &a.residual_out_layout})
        *l = {2 * kCols, 2, kCols};
      a.*of = wrong;
    };
  };
  std::vector<std::pair<std::string, Layout Call::*>> outputs = {{"y", &Call::y_layout}};
  if (c.adds()) outputs.push_back({"residual_out", &Call::residual_out_layout});
  for (const auto& [tensor, layout] : outputs) {
    for (const int64_t stride : {int64_t{0}, int64_t{1}, kCols - 1, 1 - kCols, INT64_MIN + 1})
      refuse((tensor + text(": rows overlap, stride %lld", static_cast<long long>(stride))).c_str(),
             [=, layout = layout](Call& a) { (a.*layout).stride = stride; });
    refuse((tensor + ": heads overlap").c_str(), with_heads({2 * kCols, 2, kCols - 1}, layout));
    refuse((tensor + ": heads at one place").c_str(), with_heads({2 * kCols, 2, 0}, layout));
    refuse((tensor + ": a row reaches into the next one's heads").c_str(),
           with_heads({2 * kCols - 1, 2, kCols}, layout));
    refuse((tensor + ": interleaved heads overlap").c_str(), with_heads({kCols, 2, 2 * kCols}, layout));
  }
  if (c.types.weight == c.types.y) {
    refuse("y is weight", [](Call& a) { a.y = const_cast<void*>(a.weight); });
    refuse("weight is the last row of y", [&](Call& a) { a.weight = past(a.y, (kRows - 1) * (kCols + 8) * 2); });
  }
  refuse("weight begins with the last element of y", [&](Call& a) {
    a.y_layout = {kCols};
    a.weight = past(a.y, (kRows * kCols - 1) * size_of(c.types.y) / size_of(c.types.weight) * size_of(c.types.weight));
  });
  refuse("y begins within x, both contiguous", [&](Call& a) {
    a.x_layout = a.y_layout = {kCols};
    a.y = past(const_cast<void*>(a.x), kCols * 4);
  });
  refuse("y is x in another layout", [](Call& a) { a.y = const_cast<void*>(a.x), a.x_layout.stride += 8; });
  if (c.types.x != c.types.y) refuse("y is x of another type", [](Call& a) { a.y = const_cast<void*>(a.x); });
  if (c.adds()) {
    refuse("residual_out is weight", [](Call& a) { a.residual_out = const_cast<void*>(a.weight); });
    refuse("residual null", [](Call& a) { a.residual = nullptr; });
    refuse("residual_out null", [](Call& a) { a.residual_out = nullptr; });
    refuse("residual misaligned", [=](Call& a) { a.residual = past(a.residual, 1); });
    refuse("residual_out misaligned", [=](Call& a) { a.residual_out = past(a.residual_out, 1); });
    refuse("y is residual_out", [](Call& a) { a.y = a.residual_out; });
    refuse("residual_out is residual in another layout",
           [](Call& a) { a.residual_out = const_cast<void*>(a.residual), a.residual_layout.stride += 8; });
    refuse("residual_out is x in another layout",
           [](Call& a) { a.residual_out = const_cast<void*>(a.x), a.x_layout.stride += 8; });
    refuse("y is residual in another layout",
           [](Call& a) { a.y = const_cast<void*>(a.residual), a.residual_layout.stride += 8; });
    if (c.types.x != c.residual())
      refuse("residual_out is x of another type", [](Call& a) { a.residual_out = const_cast<void*>(a.x); });
    if (c.types.y != c.residual())
      refuse("y is residual of another type", [](Call& a) { a.y = const_cast<void*>(a.residual); });
  }
  expect(cudaSuccess, "rows = 0", [](Call& a) { a.rows = 0; });
  expect(cudaSuccess, "rows = 0, no memory", [](Call& a) {
    a.rows = 0;
    a.x = a.weight = a.residual = nullptr;
    a.y = a.residual_out = nullptr;
  });
  tally.expect(trial.run());  // after all that
}

}  // namespace header_test
