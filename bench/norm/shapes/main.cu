// The production header on shapes that no peer's table has: other lengths of rows, odd ones, strides, pointers off by
// one element, mixed types. Each answer is compared with float64, timed with a cold cache beside a copy of the same
// bytes, and compared again. Without a GPU the answers of smaller problems are compared, and nothing is timed.
#include <algorithm>
#include <cstdio>

#include "common/command_line.h"
#include "common/csv_file.h"
#include "common/operators/typed_rms_norm.h"
#include "common/program.h"
#include "common/report.h"
#include "common/text.h"
#include "rms_norm/rms_norm.cuh"

namespace bench_shapes {
namespace {

using ladder::text;
using Op = ladder::TypedRmsNorm;
using bf16 = __nv_bfloat16;

template <class T>
constexpr ladder::Type type_of = std::is_same_v<T, float>  ? ladder::Type::float32
                                 : std::is_same_v<T, bf16> ? ladder::Type::bfloat16
                                                           : ladder::Type::float16;

struct Matrix {
  const char* what;
  int64_t rows, cols;
  ladder::Layout layout = {};
  int offset = 0;  // elements by which each tensor begins later
};

class Shapes {
 public:
  Shapes(const ladder::Device& device, int iterations)
      : device_(device), iterations_(iterations), workspace_(ladder::allocate(rms_norm::kWorkspaceBytes)) {
    CUDA_CHECK(rms_norm::init_workspace(workspace_.get()));
    options_.workspace = workspace_.get();
    const auto on_gpu = [&](const char* heading) { return device.cpu ? nullptr : heading; };
    table_.columns = {{"function", "function"},
                      {"shape", "shape"},
                      {"rows", "rows"},
                      {"cols", "cols"},
                      {"x", "x"},
                      {"weight", "weight"},
                      {"y", "y"},
                      {"bytes", nullptr},
                      {"microseconds", on_gpu("us")},
                      {"spread_percent", on_gpu("spread"), "%"},
                      {"copy_microseconds", on_gpu("copy us")},
                      {"times_copy", on_gpu("times copy")},
                      {"device", nullptr},
                      {"runtime", nullptr}};
    if (device.cpu) table_.columns.push_back({"answers", "answers"});
    table_.left = 2;
  }

  template <class X, class W, class Y>
  void forward(Matrix matrix) {
    run(matrix, {type_of<X>, type_of<W>, type_of<Y>}, [=](const ladder::Arguments& a, cudaStream_t stream) {
      const auto tensor = [&](auto* data) { return rms_norm::Tensor{data, layout_of(matrix)}; };
      CUDA_CHECK(rms_norm::forward(tensor(a.tensor<const X>(Op::kX)), a.tensor<const W>(Op::kWeight),
                                   tensor(a.tensor<Y>(Op::kY)), a.shape[0], a.shape[1], options_, stream));
    });
  }

  template <class T>
  void fused_add(Matrix matrix) {
    run(matrix, {type_of<T>, type_of<T>, type_of<T>, type_of<T>}, [=](const ladder::Arguments& a, cudaStream_t stream) {
      const auto tensor = [&](auto* data) { return rms_norm::Tensor{data, layout_of(matrix)}; };
      CUDA_CHECK(rms_norm::fused_add_rms_norm(tensor(a.tensor<const T>(Op::kX)),
                                              tensor(a.tensor<const T>(Op::kResidual)),
                                              tensor(a.tensor<T>(Op::kResidualOut)), a.tensor<const T>(Op::kWeight),
                                              tensor(a.tensor<T>(Op::kY)), a.shape[0], a.shape[1], options_, stream));
    });
  }

  std::string print() const { return table_.print(); }
  std::string csv() const {
    std::vector<std::string> names;
    for (const ladder::Column& column : table_.columns) names.push_back(column.name);
    std::string out = ladder::csv_line(names);
    for (const auto& row : table_.rows) out += ladder::csv_line(row);
    return out;
  }

 private:
  static rms_norm::Layout layout_of(const Matrix& matrix) {
    return {matrix.layout.stride, matrix.layout.heads, matrix.layout.head_stride};
  }

  void run(Matrix matrix, const Op::Types& types, const ladder::Launcher& launch) {
    if (device_.cpu) matrix.rows = std::min<int64_t>(matrix.rows / matrix.layout.heads, 3) * matrix.layout.heads;
    const char* const function = types.residual ? "fused_add_rms_norm" : "forward";
    const ladder::Operator& op = Op::get(types);
    ladder::Variant variant = op.plain();
    for (ladder::Place& place : variant.places) place = {matrix.layout, matrix.offset};
    variant.places[Op::kWeight].layout = {};
    const ladder::Case drawn(op, {{matrix.rows, matrix.cols}}, 1);
    ladder::Problem problem(drawn, variant);
    progress_.show(text("%s, %s: %s", function, matrix.what, problem.context().c_str()));
    require_right(matrix, problem.check(launch, {nullptr}));

    variant.places[Op::kWeight].absent = matrix.rows > 1;  // rows share it, so that it comes from the caches
    const double bytes = op.bytes(drawn.shape, variant);
    std::vector<std::string> row = {function,
                                    matrix.what,
                                    std::to_string(matrix.rows),
                                    text("%lld", static_cast<long long>(matrix.cols)),
                                    name_of(types.x),
                                    name_of(types.weight),
                                    name_of(types.y),
                                    text("%.0f", bytes)};
    if (device_.cpu) {
      row.insert(row.end(), {"", "", "", "", "", "", "right"});
    } else {
      const ladder::Timing timing = time(matrix, problem, launch, bytes);
      const ladder::Timing copy = ladder::measure_copy(bytes, device_, iterations_);
      row.insert(row.end(), {text("%.3f", timing.microseconds), text("%.2f", timing.spread_percent),
                             text("%.3f", copy.microseconds), text("%.3f", timing.microseconds / copy.microseconds),
                             device_.name, std::to_string(device_.runtime)});
    }
    table_.rows.push_back(row);
    progress_.clear();
  }

  ladder::Timing time(const Matrix& matrix, ladder::Problem& problem, const ladder::Launcher& launch, double bytes) {
    ladder::Pool pool(problem, device_);
    pool.prepare();
    const ladder::Timing timing = ladder::measure(launch, problem, pool, iterations_);
    require_right(matrix, pool.verify(launch));
    if (pool.larger_than_cache()) ladder::require_possible(matrix.what, bytes, timing, device_);
    return timing;
  }

  static void require_right(const Matrix& matrix, const ladder::Outcome& outcome) {
    if (!outcome.failure.empty()) throw std::runtime_error(std::string(matrix.what) + ": " + outcome.failure);
  }

  const ladder::Device& device_;
  int iterations_;
  ladder::DeviceMemory<> workspace_;
  rms_norm::Options options_;
  ladder::Table table_;
  ladder::Progress progress_;
};

void run_all(Shapes& shapes) {
  for (const Matrix& m : {Matrix{"hidden size 2880", 8192, 2880},
                          Matrix{"hidden size 5120", 8192, 5120},
                          Matrix{"hidden size 7168", 8192, 7168},
                          Matrix{"hidden size 12288", 4096, 12288},
                          Matrix{"short rows", 262144, 128},
                          Matrix{"rows of one pack", 4194304, 8},
                          Matrix{"prime number of rows", 8191, 4096},
                          Matrix{"just over 128 KB", 1821, 73728},
                          Matrix{"long rows", 1024, 131072},
                          Matrix{"long rows, few", 64, 1048576},
                          Matrix{"long rows, 32 MB", 128, 131072},
                          Matrix{"one row", 1, 33554432},
                          Matrix{"odd", 8192, 4095},
                          Matrix{"odd", 8191, 8191},
                          Matrix{"odd, short", 131072, 111},
                          Matrix{"odd, 24 KB", 4096, 12001},
                          Matrix{"odd, 70 KB", 1864, 36001},
                          Matrix{"odd, long", 512, 100001},
                          Matrix{"even, not of whole packs", 8192, 4098},
                          Matrix{"rows apart", 8192, 4096, {6144}},
                          Matrix{"rows apart, odd", 8192, 4096, {4097}},
                          Matrix{"off by one element", 8192, 4096, {}, 1},
                          Matrix{"heads of 128", 8192 * 32, 128, {48 * 128, 32, 128}},
                          Matrix{"heads of 80", 8192 * 32, 80, {48 * 80, 32, 80}}})
    shapes.forward<bf16, bf16, bf16>(m);
  for (const Matrix& m : {Matrix{"hidden size 5120", 8192, 5120}, Matrix{"odd", 8192, 4095},
                          Matrix{"off by one element", 8192, 4096, {}, 1}, Matrix{"long rows", 512, 131072},
                          Matrix{"odd, 24 KB", 8192, 6001}})
    shapes.forward<float, float, float>(m);
  for (const Matrix& m : {Matrix{"hidden size 5120", 8192, 5120}, Matrix{"odd", 8192, 4095}})
    shapes.forward<bf16, float, bf16>(m);
  for (const Matrix& m : {Matrix{"hidden size 2880", 8192, 2880}, Matrix{"hidden size 7168", 8192, 7168},
                          Matrix{"odd", 8192, 4095}, Matrix{"long rows", 1024, 131072}})
    shapes.fused_add<bf16>(m);
}

int body(int argc, char** argv) {
  ladder::CommandLine line(
      "The production header on shapes outside the peers' tables, beside a copy of the same bytes.");
  std::string csv;
  int iterations = 30;
  line.add_text("--csv", csv, "FILE", "write the times to FILE");
  line.add_number("--iterations", iterations, 1, 10000, "a number from 1 to 10000", "samples of each time");
  line.parse(argc, argv);

  const ladder::CsvFile file(csv);
  ladder::require_device();
  const ladder::Device device = ladder::current_device();
  std::printf("%s\n", device.line().c_str());
  Shapes shapes(device, iterations);
  run_all(shapes);
  std::printf("%s", shapes.print().c_str());
  if (device.cpu)
    std::printf("nothing was timed: that takes a GPU\n");
  else
    file.write(shapes.csv());
  return 0;
}

}  // namespace
}  // namespace bench_shapes

int main(int argc, char** argv) {
  return ladder::guarded("shapes", [&] { return bench_shapes::body(argc, argv); });
}
