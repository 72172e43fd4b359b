// The checks themselves, on pretended kernels that compute on the host: each planted fault must be named.
#include <doctest/doctest.h>

#include <cmath>
#include <cstdlib>
#include <string>
#include <vector>

#include "common/check.h"

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
  CUDA_CHECK(
      cudaMemcpy(output, y.data(), (count - (fault == Fault::unwritten)) * sizeof(float), cudaMemcpyHostToDevice));
  if (fault == Fault::overrun_after) upload(output + count + 2, 1.0f);
  if (fault == Fault::overrun_before) upload(output - 1, 1.0f);
  if (fault == Fault::input_changed) upload(input, 0.5f);
  if (fault == Fault::weight_changed && weight) upload(weight, 0.5f);
}

template <Fault fault>
std::string failure(Shape shape = {7, 33}) {
  runs = 0;
  return check_shape(pretend<fault>, shape, true, 1, true).failure;
}

bool says(const std::string& message, const std::string& part) { return message.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("a right kernel passes") {
  for (const Shape shape : {Shape{0, 5}, {1, 1}, {7, 33}, {989, 111}}) CHECK(failure<Fault::none>(shape) == "");
  CHECK(runs == 2);
  HurtfulChecks hurtful(true, 5);
  CHECK(hurtful.count() > 200);
  CHECK(hurtful.check(pretend<Fault::none>).failure == "");
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
  CHECK(says(failure<Fault::weight_changed>(), "changed the weight"));
  CHECK(says(failure<Fault::nan>(), "got NaN"));
  CHECK(says(failure<Fault::weight_ignored>(), "elements wrong"));
  CHECK(says(failure<Fault::one_bit_on_second_run>(), "not deterministic"));
  CHECK(says(failure<Fault::reversed_order>(), "thread order reversed: 1 of 231 elements wrong"));
  CHECK(says(failure<Fault::cuda_error>(), "cudaErrorIllegalAddress"));
  CHECK(says(failure<Fault::reads_past_input>(), "got NaN"));
}

TEST_CASE("the hurtful shapes see what one shape does not") {
  HurtfulChecks hurtful(true, 1);
  CHECK(failure<Fault::own_eps>() == "");  // its eps is the shape's
  CHECK(says(hurtful.check(pretend<Fault::own_eps>).failure, "eps 1e-05"));
  CHECK(says(hurtful.check(pretend<Fault::weight_ignored>).failure, "weight"));
}

TEST_CASE("one stage's damage is not blamed on the next") {
  const Case c({7, 33}, 1);
  Problem problem(c, {});
  CHECK(problem.check(pretend<Fault::overrun_after>, {nullptr}).failure != "");
  CHECK(problem.check(pretend<Fault::none>, {nullptr}).failure == "");
  CHECK(problem.check(pretend<Fault::input_changed>, {nullptr}).failure != "");
  CHECK(problem.check(pretend<Fault::weight_changed>, {nullptr}).failure != "");
  CHECK(problem.check(pretend<Fault::none>, {nullptr}).failure == "");
}

TEST_CASE("the user's thread order is put back") {
  setenv("SIMT_ORDER", "7", 1);
  failure<Fault::none>();
  CHECK(std::string(std::getenv("SIMT_ORDER")) == "7");
  unsetenv("SIMT_ORDER");
  failure<Fault::none>();
  CHECK(std::getenv("SIMT_ORDER") == nullptr);
}

TEST_CASE("a pointer is off by exactly one element") {
  const DeviceBuffer aligned(10, 1000), off(10, 1000, 1);
  CHECK(reinterpret_cast<uintptr_t>(aligned.data()) % 256 == 0);
  CHECK(reinterpret_cast<uintptr_t>(off.data()) % 256 == 4);
}
