// A row's bits with Options::batch_invariant: the same alone, beside others, and wherever tensors lie.
#include "common/text.h"
#include "tests/headers/rms_norm/topics.h"

namespace header_test {
namespace {

using ladder::text;

std::vector<char> bits_of(Trial& trial, Tally& tally) {
  trial.reset();
  const cudaError_t error = trial.launch(nullptr);
  tally.expect(error ? trial.failed(error) : "");
  return trial.results();
}

// The rows of a problem in calls of `at_once` rows each.
std::vector<char> bits_in_calls(Trial& trial, int64_t at_once, Tally& tally) {
  trial.reset();
  const Call whole = trial.call();
  const auto row_of = [](auto* data, Type type, const Layout& layout, int64_t row) {
    using Byte = std::conditional_t<std::is_const_v<std::remove_pointer_t<decltype(data)>>, const char, char>;
    return data ? static_cast<Byte*>(data) + row * layout.stride * size_of(type) : nullptr;
  };
  const Combination& c = trial.combination();
  for (int64_t row = 0; row < whole.rows; row += at_once) {
    Call call = whole;
    call.rows = std::min(at_once, whole.rows - row);
    call.x = row_of(whole.x, c.types.x, whole.x_layout, row);
    call.y = row_of(whole.y, c.types.y, whole.y_layout, row);
    call.residual = row_of(whole.residual, c.residual(), whole.residual_layout, row);
    call.residual_out = row_of(whole.residual_out, c.residual(), whole.residual_out_layout, row);
    const cudaError_t error = c.run(call, nullptr);
    if (error) tally.expect(trial.failed(error));
  }
  return trial.results();
}

struct Elsewhere {
  const char* what;
  Problem problem;
};

// The same numbers, in tensors that lie elsewhere, and with options that change no bit.
std::vector<Elsewhere> elsewhere(const Combination& c, const Problem& p, void* workspace) {
  std::vector<Elsewhere> all;
  const auto add = [&](const char* what, const auto& change) {
    all.push_back({what, p});
    change(all.back().problem);
  };
  add("x one element further", [](Problem& q) { q.place(Op::kX).offset = 1; });
  add("y one element further", [](Problem& q) { q.place(Op::kY).offset = 1; });
  add("all one element further", [&](Problem& q) {
    for (const int tensor : matrices(c)) q.place(tensor).offset = 1;
  });
  if (!p.variant.places[Op::kWeight].absent)
    add("weight one element further", [](Problem& q) { q.place(Op::kWeight).offset = 1; });
  add("gaps between rows", [&](Problem& q) {
    for (const int tensor : matrices(c)) q.layout(tensor) = {q.cols + 16};
  });
  add("odd gaps between rows", [&](Problem& q) { q.layout(Op::kX) = {q.cols + 1}; });
  if (p.rows % 4 == 0 && p.rows > 0)
    add("heads", [&](Problem& q) {
      for (const int tensor : matrices(c)) q.layout(tensor) = {6 * q.cols, 4, q.cols};
    });
  add("a workspace, a dependent launch", [&](Problem& q) { q.workspace = workspace, q.dependent_launch = true; });
  return all;
}

}  // namespace

void batch_invariance(Tally& tally, const Combination& c, bool quick) {
  Workspace memory;
  Shapes shapes = {{9, 1},    {9, 31},   {4, 32},    {12, 64},   {40, 100}, {8, 256},  {5, 1000},
                   {5, 1023}, {4, 1024}, {5, 1025},  {5, 1032},  {4, 2056}, {3, 4096}, {3, 5120},
                   {3, 8192}, {3, 8200}, {4, 16384}, {2, 20008}, {2, 32776}};
  if (c.uniform()) shapes.insert(shapes.end(), {{2, 65537}, {2, 65544}, {2, 140008}});
  // More rows than at which the policy changes the shape.
  if (c.uniform())
    shapes.push_back(c.types.x == Type::float32 ? Shapes::value_type(100, 16384) : Shapes::value_type(800, 4096));
  if (c.uniform() && !quick)
    shapes.insert(shapes.end(), {{2000, 256}, {800, 2048}, {130, 16384}, {40, 65536}, {20, 262144}, {2, 1048576}});
  int number = 0;
  for (const auto& [rows, cols] : shapes) {
    Problem p = in_mode({rows, cols}, number++);
    p.batch_invariant = true;
    Trial together(c, p);
    const std::vector<char> bits = bits_of(together, tally);
    const bool is_large = rows * cols > 1000000;
    if (!is_large) tally.expect(together.check());
    for (const int64_t at_once : {int64_t{1}, rows / 2}) {
      if (at_once < 1 || (at_once == 1 && rows == 1)) continue;
      tally.expect(bits_in_calls(together, at_once, tally) == bits,
                   text("%lld x %lld in calls of %lld rows: other bits", static_cast<long long>(rows),
                        static_cast<long long>(cols), static_cast<long long>(at_once)));
    }
    if (is_large) continue;
    for (const Elsewhere& other : elsewhere(c, p, memory.data())) {
      Trial there(c, other.problem);
      tally.expect(bits_of(there, tally) == bits, text("%lld x %lld, %s: other bits", static_cast<long long>(rows),
                                                       static_cast<long long>(cols), other.what));
    }
  }
}

}  // namespace header_test
