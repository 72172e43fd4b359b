// The production header on shapes that no peer's table has: other lengths of rows, odd ones, strides, pointers off by
// one element, mixed types. Each answer is compared with float64 in three rows and then timed with a cold cache beside
// a copy of the same bytes. Without a GPU the answers of smaller problems are compared, and nothing is timed.
#include <cmath>
#include <cstdio>
#include <type_traits>
#include <vector>

#include "common/command_line.h"
#include "common/device_buffer.h"
#include "common/inputs.h"
#include "common/options.h"
#include "common/program.h"
#include "common/report.h"
#include "common/timing.h"
#include "rms_norm/rms_norm.cuh"

namespace {

using ladder::DeviceBuffer;
using bf16 = __nv_bfloat16;

constexpr int64_t kPattern = 1 << 20;  // elements; every tensor repeats them
constexpr double kPoolBytes = 600e6;   // what a round of launches touches, several times the L2 cache
constexpr float kEps = 1e-6f;

struct Case {
  const char* what;
  int64_t rows, cols;
  rms_norm::Layout layout = {};  // {}: contiguous
  int64_t offset = 0;            // elements by which each tensor begins later
};

template <class T>
constexpr const char* name_of = std::is_same_v<T, float>  ? "float32"
                                : std::is_same_v<T, bf16> ? "bfloat16"
                                                          : "float16";

// `count` elements behind one another for each launch of a round, and the host's copy of the pattern.
template <class T>
class Tensor {
 public:
  Tensor(int64_t count, int64_t slots, int64_t offset, uint64_t seed)
      : step_((count + offset + 127) / 128 * 128), offset_(offset), buffer_((step_ * slots * sizeof(T) + 3) / 4) {
    std::vector<float> values(kPattern);
    ladder::fill_weight(values.data(), kPattern, seed);
    for (const float value : values) pattern_.push_back(T(value));
    T* const begin = reinterpret_cast<T*>(buffer_.data());
    for (int64_t done = 0; done < step_ * slots; done += kPattern)
      CUDA_CHECK(cudaMemcpy(begin + done, pattern_.data(), sizeof(T) * std::min(kPattern, step_ * slots - done),
                            cudaMemcpyHostToDevice));
  }
  T* slot(int64_t i) const { return reinterpret_cast<T*>(buffer_.data()) + i * step_ + offset_; }
  double at(int64_t i) const { return double(float(pattern_[(i + offset_) % kPattern])); }  // of slot 0, as filled
  std::vector<T> download(int64_t first, int64_t count) const {
    std::vector<T> values(count);
    CUDA_CHECK(cudaMemcpy(values.data(), slot(0) + first, sizeof(T) * count, cudaMemcpyDeviceToHost));
    return values;
  }

 private:
  int64_t step_, offset_;
  DeviceBuffer buffer_;
  std::vector<T> pattern_;
};

template <class T>
double rounding() {  // half the distance of neighbouring numbers, relative
  return std::is_same_v<T, float> ? 0x1p-24 : std::is_same_v<T, bf16> ? 0x1p-9 : 0x1p-11;
}

struct Report {
  const ladder::Device& device;
  int iterations;
  std::string csv;
};

template <class X, class W, class Y, bool kAdds = false>
void run(Case c, Report& report) {
  if (report.device.cpu) c.rows = std::min<int64_t>(c.rows / c.layout.heads, 3) * c.layout.heads;
  if (c.layout.stride == 0) c.layout.stride = c.cols;
  const auto begin = [&](int64_t row) {
    return row / c.layout.heads * c.layout.stride + row % c.layout.heads * c.layout.head_stride;
  };
  const int64_t count = begin(c.rows - 1) + c.cols + c.layout.stride;
  const double bytes = double(c.rows * c.cols) * (sizeof(X) + sizeof(Y) + 2 * kAdds * sizeof(X));
  const int64_t slots = report.device.cpu ? 1 : std::max<int64_t>(1, std::min<int64_t>(64, kPoolBytes / bytes));

  const Tensor<X> x(count, slots, c.offset, 1), residual(kAdds ? count : 1, slots, c.offset, 2);
  const Tensor<X> residual_out(kAdds ? count : 1, slots, c.offset, 3);
  const Tensor<W> weight(c.cols, 1, c.offset, 4);
  const Tensor<Y> y(count, slots, c.offset, 5);
  const DeviceBuffer workspace(rms_norm::kWorkspaceBytes / sizeof(float));
  CUDA_CHECK(cudaMemset(workspace.data(), 0, rms_norm::kWorkspaceBytes));
  rms_norm::Options options;
  options.eps = kEps;
  options.workspace = workspace.data();
  const auto launch = [&](int64_t i, cudaStream_t stream) {
    if constexpr (kAdds)
      CUDA_CHECK(rms_norm::forward_add(x.slot(i), c.layout, residual.slot(i), c.layout, residual_out.slot(i), c.layout,
                                       weight.slot(0), y.slot(i), c.layout, c.rows, c.cols, options, stream));
    else
      CUDA_CHECK(
          rms_norm::forward(x.slot(i), c.layout, weight.slot(0), y.slot(i), c.layout, c.rows, c.cols, options, stream));
  };

  launch(0, nullptr);
  CUDA_CHECK(cudaDeviceSynchronize());
  // A thread adds up a row alone, or with at least 255 others: so many roundings the float32 sum of squares has at
  // most, and its root has half their error. The result is rounded once more, and with a residual so is the sum.
  const double terms = double(std::min(c.cols, c.cols / 256 + 1024));
  const double tolerance = 4 * rounding<Y>() + kAdds * 4 * rounding<X>() + terms * 0x1p-25;
  for (const int64_t row : {int64_t{0}, c.rows / 2, c.rows - 1}) {
    const auto got = y.download(begin(row), c.cols);
    std::vector<double> in(c.cols);
    double sum = 0;
    for (int64_t i = 0; i < c.cols; ++i) {
      in[i] = x.at(begin(row) + i) + (kAdds ? residual.at(begin(row) + i) : 0.0);
      sum += in[i] * in[i];
    }
    for (int64_t i = 0; i < c.cols; ++i) {
      const double expected = in[i] / std::sqrt(sum / double(c.cols) + kEps) * weight.at(i);
      if (!(std::abs(double(float(got[i])) - expected) <= tolerance * std::max(1.0, std::abs(expected))))
        throw std::runtime_error(ladder::text("%s, %s: row %lld, column %lld is %g, expected %g", c.what, name_of<X>,
                                              static_cast<long long>(row), static_cast<long long>(i),
                                              double(float(got[i])), expected));
    }
  }

  const std::string shape = ladder::shape_text(c.rows, c.cols);
  const std::string types = std::string(name_of<X>) + "," + name_of<W> + "," + name_of<Y>;
  if (report.device.cpu) {
    std::printf("%-12s %-32s %-34s right\n", kAdds ? "forward_add" : "forward", c.what, shape.c_str());
    return;
  }
  const auto timing = ladder::measure(ladder::NumberedLaunch(launch), slots, report.iterations);
  ladder::require_possible(c.what, bytes, timing, report.device);
  const DeviceBuffer from(int64_t(bytes / 8) * slots), to(int64_t(bytes / 8) * slots);
  const int64_t floats = int64_t(bytes / 8) / 4 * 4;
  const auto copy =
      ladder::measure(ladder::NumberedLaunch([&](int64_t i, cudaStream_t stream) {
                        ladder::launch_copy(from.data() + i * floats, to.data() + i * floats, floats, stream);
                      }),
                      slots, report.iterations);
  const double ratio = timing.microseconds / copy.microseconds;
  std::printf("%-12s %-32s %-18s %-28s %9.2f us, copy %9.2f us, %.3f times\n", kAdds ? "forward_add" : "forward",
              c.what, shape.c_str(), types.c_str(), timing.microseconds, copy.microseconds, ratio);
  std::fflush(stdout);
  report.csv += ladder::csv_line(
      {kAdds ? "forward_add" : "forward", c.what, std::to_string(c.rows), std::to_string(c.cols), name_of<X>,
       name_of<W>, name_of<Y>, ladder::text("%.0f", bytes), ladder::text("%.3f", timing.microseconds),
       ladder::text("%.2f", timing.spread_percent), ladder::text("%.3f", copy.microseconds),
       ladder::text("%.3f", ratio), report.device.name, std::to_string(report.device.runtime)});
}

constexpr const char* kHeader =
    "function,shape,rows,cols,x,weight,y,bytes,microseconds,spread_percent,copy_microseconds,times_copy,device,"
    "runtime\n";

void run_all(Report& report) {
  for (const Case& c : {Case{"hidden size 2880", 8192, 2880},
                        Case{"hidden size 5120", 8192, 5120},
                        Case{"hidden size 7168", 8192, 7168},
                        Case{"hidden size 12288", 4096, 12288},
                        Case{"short rows", 262144, 128},
                        Case{"rows of one pack", 4194304, 8},
                        Case{"prime number of rows", 8191, 4096},
                        Case{"long rows", 1024, 131072},
                        Case{"long rows, few", 64, 1048576},
                        Case{"one row", 1, 33554432},
                        Case{"odd", 8192, 4095},
                        Case{"odd", 8191, 8191},
                        Case{"odd, short", 131072, 111},
                        Case{"odd, long", 512, 100001},
                        Case{"even, not of whole packs", 8192, 4098},
                        Case{"rows apart", 8192, 4096, {6144}},
                        Case{"rows apart, odd", 8192, 4096, {4097}},
                        Case{"off by one element", 8192, 4096, {}, 1},
                        Case{"heads of 128", 8192 * 32, 128, {48 * 128, 32, 128}},
                        Case{"heads of 80", 8192 * 32, 80, {48 * 80, 32, 80}}}) {
    run<bf16, bf16, bf16>(c, report);
  }
  for (const Case& c : {Case{"hidden size 5120", 8192, 5120}, Case{"odd", 8192, 4095},
                        Case{"off by one element", 8192, 4096, {}, 1}, Case{"long rows", 512, 131072}})
    run<float, float, float>(c, report);
  for (const Case& c : {Case{"hidden size 5120", 8192, 5120}, Case{"odd", 8192, 4095}}) {
    run<bf16, float, bf16>(c, report);
  }
  for (const Case& c : {Case{"hidden size 2880", 8192, 2880}, Case{"hidden size 7168", 8192, 7168},
                        Case{"odd", 8192, 4095}, Case{"long rows", 1024, 131072}})
    run<bf16, bf16, bf16, true>(c, report);
}

int body(int argc, char** argv) {
  CLI::App app("The production header on shapes outside the peers' tables, beside a copy of the same bytes.", "shapes");
  std::string csv;
  int iterations = 30;
  app.add_option("--csv", csv, "write the times to FILE")->type_name("FILE");
  ladder::add_number(app, "--iterations", iterations, 1, 10000, "a number from 1 to 10000", "samples of each time");
  ladder::parse(app, argc, argv);

  const ladder::CsvFile file(csv);
  ladder::require_device();
  const ladder::Device device = ladder::current_device();
  std::printf("%s\n", device.line().c_str());
  Report report{device, iterations, kHeader};
  run_all(report);
  if (device.cpu)
    std::printf("nothing was timed: that takes a GPU\n");
  else
    file.write(report.csv);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return ladder::guarded("shapes", [&] { return body(argc, argv); });
}
