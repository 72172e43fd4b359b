#include "common/check.h"

#include <algorithm>
#include <cstdlib>

#include "common/inputs.h"
#include "common/text.h"

namespace ladder {
namespace {

constexpr int64_t kStagingCount = 1 << 20;

// A row or 1024 elements, whichever is more, on each side; long rows do not need a guard of their own length.
int64_t guard_count(const Shape& shape) { return std::clamp<int64_t>(shape.cols, 1024, 1 << 16); }

// Both orders show on one CPU what a race would do on a GPU; a GPU is asked twice instead.
std::vector<const char*> orders_for(bool cpu_device) {
  if (cpu_device) return {"forward", "reversed"};
  return {nullptr, nullptr};
}

// Sets the CPU device's thread order and puts the user's choice back.
class ThreadOrder {
 public:
  explicit ThreadOrder(const char* order) : changed_(order != nullptr) {
    if (!changed_) return;
    if (const char* users = std::getenv("SIMT_ORDER")) users_ = users;
    setenv("SIMT_ORDER", order, 1);
  }
  ~ThreadOrder() {
    if (!changed_) return;
    if (users_.empty())
      unsetenv("SIMT_ORDER");
    else
      setenv("SIMT_ORDER", users_.c_str(), 1);
  }
  ThreadOrder(const ThreadOrder&) = delete;
  ThreadOrder& operator=(const ThreadOrder&) = delete;

 private:
  bool changed_;
  std::string users_;
};

std::vector<Variant> variants(const Shape& shape) {
  const float eps = 1e-6f, other_eps = 1e-5f;  // a kernel with its own eps fails one of them
  if (shape.rows * shape.cols > 1 << 16) return {{false, 0, 0, 0, eps}, {true, 1, 1, 1, other_eps}};
  return {{false, 0, 0, 0, eps},      {true, 0, 0, 0, other_eps}, {false, 1, 0, 0, other_eps}, {false, 0, 1, 0, eps},
          {false, 1, 1, 0, eps},      {true, 1, 0, 0, eps},       {true, 0, 1, 0, other_eps},  {true, 0, 0, 1, eps},
          {true, 1, 1, 0, other_eps}, {true, 1, 1, 1, other_eps}};
}

std::string overrun_text(const char* what, DeviceBuffer& buffer) {
  const std::vector<int64_t> positions = buffer.overrun();
  if (positions.empty()) return "";
  const int64_t at = positions.front();
  const int64_t distance = at < 0 ? -at : at - buffer.size() + 1;
  return text("; wrote outside its %s: %zu guard element%s overwritten, first %lld %s", what, positions.size(),
              positions.size() == 1 ? "" : "s", static_cast<long long>(distance),
              at < 0 ? "before its start" : "past its end");
}

}  // namespace

std::vector<Shape> hurtful_shapes(bool cpu_device) {
  std::vector<Shape> shapes = {{0, 1024}};
  for (int64_t cols : {1, 7, 31, 32, 33, 1000, 1023, 1024, 1025, 4095, 8191, 8193})
    for (int64_t rows : {1, 3}) shapes.push_back({rows, cols});
  shapes.push_back({989, 111});
  shapes.push_back({1, 1048577});
  // More rows than gridDim.y can count. On the CPU device it would cost more than all the others together.
  if (!cpu_device) shapes.push_back({65537, 33});
  return shapes;
}

Case::Case(Shape s, uint64_t seed) : shape(s), input(s.rows * s.cols), weight(s.cols) {
  seed = seed * 0x9e3779b97f4a7c15u + static_cast<uint64_t>(s.rows) * 0x100000001b3u + static_cast<uint64_t>(s.cols);
  fill_input(input.data(), s.rows, s.cols, seed);
  fill_weight(weight.data(), s.cols, seed);
  mean_square = mean_squares(input.data(), s.rows, s.cols);
}

Problem::Problem(const Case& c, const Variant& variant)
    : input(c.input.size(), guard_count(c.shape), variant.input_offset),
      weight(variant.weight ? c.shape.cols : 0, guard_count(c.shape), variant.weight_offset),
      output(c.input.size(), guard_count(c.shape), variant.output_offset),
      case_(c),
      variant_(variant),
      reference_{c.input.data(),       variant.weight ? c.weight.data() : nullptr,
                 c.mean_square.data(), c.shape.rows,
                 c.shape.cols,         variant.eps},
      got_(c.input.size()),
      staging_(std::min<int64_t>(std::max(c.input.size(), c.shape.cols), kStagingCount)) {
  input.upload(c.input.data());
  if (variant.weight) weight.upload(c.weight.data());
}

std::string Problem::context() const {
  std::string result = shape_text(case_.shape.rows, case_.shape.cols);
  result += variant_.weight ? ", weight" : ", no weight";
  result += text(", eps %g", static_cast<double>(variant_.eps));
  std::string off;
  const auto add = [&](int offset, const char* name) {
    if (offset) off += (off.empty() ? ", " : " and ") + std::string(name);
  };
  add(variant_.input_offset, "input");
  add(variant_.output_offset, "output");
  add(variant_.weight_offset, "weight");
  return off.empty() ? result : result + off + " off by one element";
}

void Problem::launch(Launch kernel, const float* from, float* to, cudaStream_t stream) const {
  kernel(from, variant_.weight ? weight.data() : nullptr, to, case_.shape.rows, case_.shape.cols, variant_.eps, stream);
  cuda_check(cudaGetLastError(), "the kernel's launch", __FILE__, __LINE__);
}

bool Problem::same_bits(const DeviceBuffer& buffer, const float* host) {
  for (int64_t first = 0; first < buffer.size(); first += staging_.size()) {
    const int64_t count = std::min(staging_.size(), buffer.size() - first);
    buffer.download(staging_.data(), first, count);
    if (std::memcmp(staging_.data(), host + first, count * sizeof(float)) != 0) return false;
  }
  return true;
}

Outcome Problem::verify(const DeviceBuffer& result) {
  result.download(got_.data(), 0, result.size());
  const Comparison comparison = compare(reference_, got_.data());
  Outcome outcome{"", comparison.worst_error, comparison.tolerance};
  if (comparison.wrong > 0) outcome.failure = describe(comparison, reference_, got_.data());
  return outcome;
}

std::string Problem::side_effects() {
  std::string found = overrun_text("output", output) + overrun_text("input", input) + overrun_text("weight", weight);
  if (!same_bits(input, case_.input.data())) {
    found += "; changed its input, which it may only read";
    input.upload(case_.input.data());
  }
  if (variant_.weight && !same_bits(weight, case_.weight.data())) {
    found += "; changed the weight, which it may only read";
    weight.upload(case_.weight.data());
  }
  return found;
}

Outcome Problem::check(Launch kernel, const std::vector<const char*>& orders) {
  Outcome outcome;
  for (size_t run = 0; run < orders.size(); ++run) {
    const ThreadOrder thread_order(orders[run]);
    const auto where = [&] {
      return context() + (orders[run] ? ", thread order " + std::string(orders[run]) : std::string()) + ": ";
    };
    try {
      output.poison();
      launch(kernel, input.data(), output.data(), cudaStreamPerThread);
      cuda_check(cudaDeviceSynchronize(), "the kernel's run", __FILE__, __LINE__);
      // A later run need only equal the first, which was right.
      const bool repeated = run > 0 && same_bits(output, got_.data());
      std::string failure;
      if (!repeated) {
        outcome = verify(output);
        failure = outcome.failure;
        if (run > 0 && failure.empty()) failure = "not deterministic: right, but not the first run's bits";
      }
      failure += side_effects();
      if (failure.empty()) continue;
      outcome.failure = where() + (failure[0] == ';' ? failure.substr(2) : failure);
    } catch (const CudaError& error) {
      outcome.failure = where() + error.what();
    }
    return outcome;
  }
  return outcome;
}

HurtfulChecks::HurtfulChecks(bool cpu_device, uint64_t seed) : cpu_device_(cpu_device) {
  for (const Shape& shape : hurtful_shapes(cpu_device)) cases_.emplace_back(shape, seed);
}

int HurtfulChecks::count() const {
  int result = 0;
  for (const Case& c : cases_) result += static_cast<int>(variants(c.shape).size());
  return result;
}

Outcome HurtfulChecks::check(Launch launch) const {
  for (const Case& c : cases_)
    for (const Variant& variant : variants(c.shape)) {
      Outcome outcome = Problem(c, variant).check(launch, orders_for(cpu_device_));
      if (!outcome.failure.empty()) return outcome;
    }
  return {};
}

Outcome check_shape(Launch launch, Shape shape, bool weight, uint64_t seed, bool cpu_device) {
  const Case c(shape, seed);
  Variant variant;
  variant.weight = weight;
  return Problem(c, variant).check(launch, orders_for(cpu_device));
}

}  // namespace ladder
