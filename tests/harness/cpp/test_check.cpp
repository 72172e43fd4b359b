// The checks themselves, on stand-ins for kernels that compute on the host: each planted fault must be named.
#include <doctest/doctest.h>

#include <cmath>
#include <cstdlib>
#include <string>
#include <vector>

#include "common/check.h"
#include "common/operators/rms_norm.h"
#include "common/operators/sum.h"

using namespace ladder;

namespace {

enum class Fault {
  none,
  unwritten,
  overrun_after,
  overrun_before,
  input_changed,
  weight_changed,
  weight_ignored,
  own_eps,
  nan,
  one_bit_on_second_run,
  reversed_order,
  left_behind,
  raced,
  cuda_error,
  reads_past_input,
};

int runs = 0;

// RMSNorm in float32 through the host's memory; enough for small shapes.
template <Fault fault>
void pretend(const float* input, const float* weight, float* output, int64_t rows, int64_t cols, float eps,
             cudaStream_t) {
  ++runs;
  const int64_t count = rows * cols;
  if (fault == Fault::cuda_error) CUDA_CHECK(cudaErrorIllegalAddress);
  if (count == 0) return;
  const auto upload = [](const float* to, float value) {
    CUDA_CHECK(cudaMemcpy(const_cast<float*>(to), &value, sizeof value, cudaMemcpyHostToDevice));
  };
  std::vector<float> x(count + 1), w(cols, 1.0f), y(count);
  CUDA_CHECK(cudaMemcpy(x.data(), input, (count + 1) * sizeof(float), cudaMemcpyDeviceToHost));
  if (weight && fault != Fault::weight_ignored)
    CUDA_CHECK(cudaMemcpy(w.data(), weight, cols * sizeof(float), cudaMemcpyDeviceToHost));
  for (int64_t row = 0; row < rows; ++row) {
    float sum = fault == Fault::reads_past_input ? x[row * cols + cols] * 1e-30f : 0.0f;
    for (int64_t i = 0; i < cols; ++i) sum += x[row * cols + i] * x[row * cols + i];
    const float rstd = 1.0f / std::sqrt(sum / static_cast<float>(cols) + (fault == Fault::own_eps ? 1e-6f : eps));
    for (int64_t i = 0; i < cols; ++i) y[row * cols + i] = x[row * cols + i] * rstd * w[i];
  }
  if (fault == Fault::nan) y[count / 2] = std::nanf("");
  if (fault == Fault::one_bit_on_second_run && runs % 2 == 0) y[0] = std::nextafter(y[0], 1e30f);
  const char* order = std::getenv("SIMT_ORDER");
  if (fault == Fault::reversed_order && order && order == std::string("reversed")) y[count - 1] += 1.0f;
  if (fault == Fault::left_behind && runs > 1) y[0] += 1.0f;
  if (fault == Fault::raced && (runs == 2 || runs == 3)) y[0] += 1.0f;
  CUDA_CHECK(
      cudaMemcpy(output, y.data(), (count - (fault == Fault::unwritten)) * sizeof(float), cudaMemcpyHostToDevice));
  if (fault == Fault::overrun_after) upload(output + count + 2, 1.0f);
  if (fault == Fault::overrun_before) upload(output - 1, 1.0f);
  if (fault == Fault::input_changed) upload(input, 0.5f);
  if (fault == Fault::weight_changed && weight) upload(weight, 0.5f);
}

template <Fault fault>
const Stage<RmsNorm> pretended{"01_pretended", "computes on the host", pretend<fault>};

template <Fault fault>
std::string failure(Shape shape = {{7, 33}}) {
  runs = 0;
  return check_shape(pretended<fault>, shape, 1, true).failure;
}

bool says(const std::string& message, const std::string& part) { return message.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("a right kernel passes") {
  for (const Shape shape : {Shape{{0, 5}}, {{1, 1}}, {{7, 33}}, {{989, 111}}}) CHECK(failure<Fault::none>(shape) == "");
  CHECK(runs == 2);
  const EdgeCases edge_cases(RmsNorm::get(), true, 5);
  CHECK(edge_cases.count() > 200);
  CHECK(edge_cases.check(pretended<Fault::none>).failure == "");
}

TEST_CASE("each fault is named, with the shape and the order that showed it") {
  CHECK(says(failure<Fault::unwritten>(), "7 x 33, weight, eps 1e-06, thread order forward: 1 of 231 elements wrong"));
  CHECK(says(failure<Fault::unwritten>(), "(row 6, col 32), expected"));
  CHECK(says(failure<Fault::unwritten>(), "got nothing (never written)"));
  CHECK(says(failure<Fault::overrun_after>(),
             "wrote outside its output: 1 guard element overwritten, first 3 past its end"));
  CHECK(says(failure<Fault::overrun_before>(),
             "wrote outside its output: 1 guard element overwritten, first 1 before its start"));
  CHECK(says(failure<Fault::input_changed>(), "changed its input"));
  CHECK(says(failure<Fault::weight_changed>(), "changed its weight"));
  CHECK(says(failure<Fault::nan>(), "got NaN; 1 of them NaN; relative tolerance"));
  CHECK(says(failure<Fault::nan>(), "got NaN"));
  CHECK(says(failure<Fault::weight_ignored>(), "elements wrong"));
  CHECK(says(failure<Fault::one_bit_on_second_run>(), "not deterministic"));
  CHECK(says(failure<Fault::reversed_order>(), "thread order reversed: 1 of 231 elements wrong"));
  CHECK(!says(failure<Fault::reversed_order>(), "leaves something behind"));
  CHECK(says(failure<Fault::left_behind>(), "so it is not the order, and a launch leaves something behind"));
  CHECK(says(failure<Fault::raced>(), "thread order reversed: 1 of 231 elements wrong"));
  CHECK(!says(failure<Fault::raced>(), "leaves something behind"));
  CHECK(says(failure<Fault::cuda_error>(), "cudaErrorIllegalAddress"));
  CHECK(says(failure<Fault::reads_past_input>(), "got NaN"));
}

TEST_CASE("the error of what is wrong is not within the limit") {
  const auto error = [](const AnyStage& stage) { return check_shape(stage, {{7, 33}}, 1, true).worst_error; };
  CHECK(std::isnan(error(pretended<Fault::nan>)));
  CHECK(std::isnan(error(pretended<Fault::unwritten>)));
  CHECK(error(pretended<Fault::weight_ignored>) > 0.01);
  CHECK(error(pretended<Fault::none>) < 1e-5);
  Comparison exact;  // where no error is allowed
  CHECK(error_of(exact, 0) == 0);
  exact.wrong = 1;
  CHECK(std::isinf(error_of(exact, 0)));
}

TEST_CASE("the edge cases see what one shape does not") {
  const EdgeCases edge_cases(RmsNorm::get(), true, 1);
  CHECK(failure<Fault::own_eps>() == "");  // its eps is the shape's
  CHECK(says(edge_cases.check(pretended<Fault::own_eps>).failure, "eps 1e-05"));
  CHECK(says(edge_cases.check(pretended<Fault::weight_ignored>).failure, "weight"));
}

TEST_CASE("what a stage refuses is not asked of it") {
  const EdgeCases edge_cases(RmsNorm::get(), true, 1);
  Stage<RmsNorm> stage = pretended<Fault::weight_ignored>;
  stage.needs.refuses = [](const Shape&) -> const char* { return "nothing fits"; };
  CHECK(edge_cases.check(stage).failure == "");
}

TEST_CASE("one stage's damage is not blamed on the next") {
  const Case c(RmsNorm::get(), {{7, 33}}, 1);
  Problem problem(c, RmsNorm::get().plain());
  const auto fails = [&](const AnyStage& stage) { return problem.check(stage, {nullptr}).failure != ""; };
  CHECK(fails(pretended<Fault::overrun_after>));
  CHECK_FALSE(fails(pretended<Fault::none>));
  CHECK(fails(pretended<Fault::input_changed>));
  CHECK(fails(pretended<Fault::weight_changed>));
  CHECK_FALSE(fails(pretended<Fault::none>));
}

TEST_CASE("the user's thread order is put back") {
  setenv("SIMT_ORDER", "7", 1);
  failure<Fault::none>();
  CHECK(std::string(std::getenv("SIMT_ORDER")) == "7");
  unsetenv("SIMT_ORDER");
  failure<Fault::none>();
  CHECK(std::getenv("SIMT_ORDER") == nullptr);
}

TEST_CASE("the user's thread order is the only one") {
  setenv("SIMT_ORDER", "forward", 1);
  CHECK(failure<Fault::reversed_order>() == "");
  CHECK(runs == 1);
  setenv("SIMT_ORDER", "reversed", 1);
  CHECK(says(failure<Fault::reversed_order>(), "thread order reversed: 1 of 231 elements wrong"));
  CHECK(asked_thread_order(true) == "reversed");
  CHECK(asked_thread_order(false) == "");
  CHECK(thread_orders(false).size() == 2);
  unsetenv("SIMT_ORDER");
  CHECK(says(failure<Fault::reversed_order>(), "thread order reversed"));
  CHECK(runs == 3);  // the third in the first one's order
}

TEST_CASE("a wait is not silent") {
  std::vector<std::string> said;
  check_shape(pretended<Fault::none>, {{7, 33}}, 1, true, [&](const std::string& what) { said.push_back(what); });
  CHECK(said.size() == 3);
  for (const std::string& line : said) CHECK(line.find("7 x 33: ") == 0);
}

TEST_CASE("of the edge cases, the small ones") {
  const EdgeCases all(RmsNorm::get(), true, 1), small(RmsNorm::get(), true, 1, 10000),
      none(RmsNorm::get(), true, 1, -1);
  CHECK(small.count() > 100);
  CHECK(small.count() < all.count());
  CHECK(none.count() == 0);
  CHECK(EdgeCases(Sum::get(), true, 1, 10000).count() > 20);  // whose scratch memory is larger
}

TEST_CASE("a pointer is off by exactly one element") {
  const Tensor tensor{"x", Type::bfloat16, Role::input, 1, 10};
  Place place;
  CHECK(reinterpret_cast<uintptr_t>(DeviceTensor(tensor, place).data()) % 256 == 0);
  place.offset = 1;
  CHECK(reinterpret_cast<uintptr_t>(DeviceTensor(tensor, place).data()) % 256 == 2);
}

TEST_CASE("rows apart, backwards and in heads come back as they went, and what lies between them is guarded") {
  const Tensor tensor{"x", Type::float16, Role::input, 6, 5};
  std::vector<uint16_t> rows(30), back(30);
  for (int i = 0; i < 30; ++i) rows[i] = static_cast<uint16_t>(i + 1);
  for (const Layout& layout : {Layout{}, Layout{7, 1, 0}, Layout{-6, 1, 0}, Layout{40, 3, 6}, Layout{-40, 3, -7}})
    for (const int offset : {0, 1}) {
      Place place;
      place.layout = layout;
      place.offset = offset;
      DeviceTensor x(tensor, place);
      x.upload(rows.data());
      x.download(back.data());
      CHECK(back == rows);
      CHECK(x.holds(rows.data()));
      CHECK(x.overrun("x") == "");
      x.download(back.data(), 7, 11);
      CHECK(std::equal(back.begin(), back.begin() + 11, rows.begin() + 7));
      uint16_t second;  // the first element of row 1
      const int64_t begin = layout.stride == kContiguous ? 5 : layout.begin(1);
      CUDA_CHECK(cudaMemcpy(&second, static_cast<uint16_t*>(x.data()) + begin, 2, cudaMemcpyDeviceToHost));
      CHECK(second == 6);
      if (layout.stride == kContiguous) continue;
      const uint16_t stray = 0x1234;  // between row 0 and the next
      CUDA_CHECK(cudaMemcpy(static_cast<uint16_t*>(x.data()) + 5, &stray, 2, cudaMemcpyHostToDevice));
      CHECK(says(x.overrun("x"), "wrote outside its x: 1 guard element overwritten"));
      CHECK(x.overrun("x") == "");
      CHECK(x.holds(rows.data()));
    }
}

TEST_CASE("an output in the memory of an input") {
  const Case c(RmsNorm::get(), {{7, 33}}, 1);
  Variant variant = RmsNorm::get().plain();
  variant.places[2].same_as = 0;
  Problem problem(c, variant);
  CHECK(problem.context() == "7 x 33, weight, output is input, eps 1e-06");
  CHECK(problem.buffers.arguments().tensors[0] == problem.buffers.arguments().tensors[2]);
  CHECK(problem.check(AnyStage(pretended<Fault::none>), {nullptr, nullptr}).failure == "");
  CHECK(says(problem.check(AnyStage(pretended<Fault::nan>), {nullptr}).failure, "got NaN"));
}
