// The machinery of timing: every launch lands in the graph, every buffer of the pool is used and verified. The times
// themselves are not checked, so this runs on the CPU device too.
#include <doctest/doctest.h>

#include <cmath>
#include <stdexcept>
#include <vector>

#include "common/copy_kernel.h"
#include "common/operators/rms_norm.h"
#include "common/timing.h"

using namespace ladder;

namespace {

Device small_cache(double l2_bytes) {
  Device device;
  device.l2_bytes = l2_bytes;
  return device;
}

void copy_whole(const Arguments& arguments, cudaStream_t stream) {
  launch_copy(arguments.tensor<float>(0), arguments.tensor<float>(2), 64 * 33, stream);
}

double pool_bytes(int64_t rows, int64_t cols, double l2_bytes) {
  const double own = 8.0 * static_cast<double>(rows) * static_cast<double>(cols);
  return own * static_cast<double>(copies_for(own, small_cache(l2_bytes)));
}

}  // namespace

TEST_CASE("the pool outgrows the cache, within reason") {
  CHECK(pool_bytes(8192, 8192, 60e6) == 536870912.0);       // each several times the cache: no copy
  CHECK(pool_bytes(8192, 4096, 60e6) == 3 * 268435456.0);   // 600 MB
  CHECK(pool_bytes(1, 4096, 60e6) == 64 * 32768.0);         // 64 copies
  CHECK(pool_bytes(8192, 4096, 126e6) == 4 * 268435456.0);  // eight times a larger cache
  CHECK(pool_bytes(0, 4096, 60e6) == 0.0);
  const Case c(RmsNorm::get(), {{1, 4096}}, 1);
  CHECK(Pool::bytes(c.tensors, RmsNorm::get().plain(), small_cache(60e6)) == 64 * 32768.0);  // the weight is shared
}

TEST_CASE("every launch is timed on every buffer of the pool") {
  const Case c(RmsNorm::get(), {{64, 33}}, 1);
  Problem problem(c, RmsNorm::get().plain());
  Pool pool(problem, small_cache(1e6));
  REQUIRE(pool.copies() == 64);
  pool.prepare();
  CHECK(pool.verify(copy_whole).failure.find("never written") != std::string::npos);
  const Timing timing = measure(copy_whole, problem, pool, 3);
  CHECK(timing.microseconds > 0);
  for (int64_t i = 0; i < pool.copies(); ++i) {
    CHECK(pool.arguments(i).tensor<float>(1) == problem.buffers.arguments().tensor<float>(1));
    std::vector<float> copied(64 * 33);
    const size_t bytes = copied.size() * sizeof(float);
    CUDA_CHECK(cudaMemcpy(copied.data(), pool.arguments(i).tensor<float>(2), bytes, cudaMemcpyDeviceToHost));
    CHECK(std::memcmp(copied.data(), c.inputs[0].data(), bytes) == 0);
  }
  CHECK(pool.verify(copy_whole).failure.find("elements wrong") != std::string::npos);  // a copy is no RMSNorm
  CHECK(problem.buffers.side_effects(c) == "");
}

TEST_CASE("a launcher that ignores its stream is not timed") {
  const Case c(RmsNorm::get(), {{64, 33}}, 1);
  Problem problem(c, RmsNorm::get().plain());
  Pool pool(problem, small_cache(1e6));
  CHECK_THROWS_AS(measure([](const Arguments&, cudaStream_t) {}, problem, pool, 3), std::runtime_error);
  CHECK(measure(copy_whole, problem, pool, 3).microseconds > 0);  // and leaves no state
}

TEST_CASE("the copy kernel copies every count") {
  for (const int64_t count : {0, 1, 3, 4, 5, 1023, 1024, 1025, 4099}) {
    const std::vector<float> host(count, 1.5f);
    const Tensor tensor{"floats", Type::float32, Role::output, 1, count};
    DeviceTensor from(tensor, {}), to(tensor, {});
    from.upload(host.data());
    to.poison();
    launch_copy(static_cast<float*>(from.data()), static_cast<float*>(to.data()), count, nullptr);
    CUDA_CHECK(cudaGetLastError());
    CHECK(to.holds(host.data()));
    CHECK(to.overrun("floats") == "");
  }
}

TEST_CASE("a summary is the median, with the spread of the middle four fifths") {
  std::vector<double> samples;
  for (int i = 0; i <= 10; ++i) samples.push_back(10.0 - i);
  samples[0] = 1e6;  // an outlier moves neither
  const Timing timing = summarize(samples);
  CHECK(timing.microseconds == 5.0);
  CHECK(timing.spread_percent == doctest::Approx(160.0));
  CHECK(summarize({7.0}).microseconds == 7.0);
}

TEST_CASE("a time that the datasheet does not allow is an error of the measurement") {
  Device device;
  device.peak_bytes_per_second = 1e12;
  CHECK_NOTHROW(require_possible("a copy", 2e6, {2.001, 0}, device));
  CHECK_THROWS_WITH(require_possible("a copy", 2e6, {1.999, 0}, device),
                    "measurement error: a copy took 2.00 us, but the datasheet's bandwidth needs 2.00 us");
  CHECK_THROWS(require_possible("a copy", 2e6, {std::nan(""), 0}, device));
  device.peak_bytes_per_second = 0;  // unknown: nothing to compare with
  CHECK_NOTHROW(require_possible("a copy", 2e6, {0, 0}, device));
}
