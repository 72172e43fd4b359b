#include "tests/header/trial.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "common/text.h"
#include "tests/header/oracle.h"

namespace header_test {
namespace {

using ladder::text;

constexpr uint32_t kGuard[] = {0, ladder::kGuard, 0x7d5a7d5au, 0x7fa57fa5u};    // by type: signalling NaNs, so that
constexpr uint32_t kPoison[] = {0, ladder::kPoison, 0x7dbe7dbeu, 0x7fad7fadu};  // no arithmetic makes them

void put_pattern(const uint32_t* patterns, Type type, char* to, int64_t count) {
  const size_t size = size_of(type);
  for (int64_t i = 0; i < count; ++i) std::memcpy(to + i * size, &patterns[static_cast<int>(type)], size);
}

uint64_t mix(uint64_t x) {  // the finalizer of SplitMix64 (Steele, Lea, Flood 2014)
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

int64_t guard_of(int64_t cols) { return std::clamp<int64_t>(cols, 1024, 1 << 16); }

Layout resolved(Layout layout, int64_t cols) {
  if (layout.stride == kContiguous) layout.stride = cols;
  return layout;
}

}  // namespace

Rows::Rows(Type t, const Place& place, int64_t r, int64_t c)
    : type(t), layout(resolved(place.layout, c)), rows(r), cols(c) {
  const int64_t outer = rows == 0 ? 0 : (rows - 1) / layout.heads * layout.stride;
  const int64_t inner = rows == 0 ? 0 : (layout.heads - 1) * layout.head_stride;
  const int64_t low = std::min<int64_t>(outer, 0) + std::min<int64_t>(inner, 0);
  const int64_t high = std::max<int64_t>(outer, 0) + std::max<int64_t>(inner, 0) + (rows == 0 ? 0 : cols);
  const int64_t guard = guard_of(cols);
  first_ = (guard - low + 127) / 128 * 128 + place.offset;
  before.resize((first_ + high + guard) * size_of(type));
  put_pattern(kGuard, type, before.data(), first_ + high + guard);
  char* base = nullptr;
  CUDA_CHECK(cudaMalloc(reinterpret_cast<void**>(&base), before.size()));
  device_.reset(base);
}

int64_t Rows::place_of(int64_t row) const {
  return first_ + row / layout.heads * layout.stride + row % layout.heads * layout.head_stride;
}

// Uniform in ±1 about 0.1, with three columns of up to 16 times that, the last one among them, so that a sum that lacks
// one is visibly wrong. Rows differ in scale; where mean(x²) is near 1e-6 eps counts.
void Rows::fill(uint64_t seed, bool zero_rows) {
  constexpr float scales[] = {1.0f, 1e-3f, 30.0f, 0.25f, 2.0f, 0.0f, 3.0f};
  for (int64_t row = 0; row < rows; ++row) {
    const uint64_t key = mix(mix(seed) + static_cast<uint64_t>(row));
    const float scale = scales[row % 7] == 0.0f && !zero_rows ? 1.0f : scales[row % 7];
    const int64_t heavy[] = {0, static_cast<int64_t>(key % static_cast<uint64_t>(cols)), cols - 1};
    for (int64_t col = 0; col < cols; ++col) {
      const auto bits = static_cast<int32_t>(mix(key + static_cast<uint64_t>(col)) >> 32);
      set(row, col, (static_cast<float>(bits) * 0x1p-31f + 0.1f) * scale);
    }
    for (const int64_t col : heavy) set(row, col, (key >> 40 & 1 ? 8.0f : -16.0f) * scale);
  }
}

void Rows::set(int64_t row, int64_t col, float value) { write(type, before.data(), place_of(row) + col, value); }

void Rows::poison() {
  for (int64_t row = 0; row < rows; ++row) put_pattern(kPoison, type, before.data() + bytes_to(row), cols);
}

bool Rows::is_poison(int64_t row, int64_t col) const {
  const size_t size = size_of(type);
  return std::memcmp(now.data() + bytes_to(row) + col * size, &kPoison[static_cast<int>(type)], size) == 0;
}

void Rows::upload() const {
  CUDA_CHECK(cudaMemcpy(device_.get(), before.data(), before.size(), cudaMemcpyHostToDevice));
}

void Rows::download() {
  now.resize(before.size());
  CUDA_CHECK(cudaMemcpy(now.data(), device_.get(), now.size(), cudaMemcpyDeviceToHost));
}

std::string Rows::outside(bool output) const {
  std::vector<char> image = now;
  if (output)
    for (int64_t row = 0; row < rows; ++row)
      std::memcpy(image.data() + bytes_to(row), before.data() + bytes_to(row), cols * size_of(type));
  if (image == before) return "";
  const auto at = std::mismatch(image.begin(), image.end(), before.begin()).first - image.begin();
  return text("%s was written, %lld elements from the begin of row 0", output ? "memory outside the rows" : "an input",
              static_cast<long long>(at / static_cast<int64_t>(size_of(type)) - first_));
}

Workspace::Workspace() : buffer_(static_cast<int64_t>(workspace_bytes() / sizeof(float))) {
  CUDA_CHECK(cudaMemset(data(), 0, workspace_bytes()));
}
void* Workspace::data() const { return buffer_.data(); }
bool Workspace::is_overrun() { return !buffer_.overrun().empty(); }

Trial::Trial(const Combination& combination, const Problem& p) : combination_(combination), problem_(p) {
  const auto make = [&](Type type, const Place& place) { return std::make_shared<Rows>(type, place, p.rows, p.cols); };
  const auto same = [&](Is is) { return is == Is::x ? x : residual; };
  x = make(combination.x, p.x);
  x->fill(p.seed, p.zero_rows);
  if (combination.adds()) {
    residual = make(combination.r, p.residual);
    residual->fill(p.seed + 1000, p.zero_rows);
    residual_out = p.residual_out_is == Is::apart ? make(combination.r, p.residual_out) : same(p.residual_out_is);
    if (p.residual_out_is == Is::apart) residual_out->poison();
  }
  y = p.y_is == Is::apart ? make(combination.y, p.y) : same(p.y_is);
  if (p.y_is == Is::apart) y->poison();

  weight = std::make_shared<Rows>(combination.w, Place{{kContiguous}, p.weight_offset}, 1, p.cols);
  for (int64_t col = 0; col < p.cols; ++col) {
    const uint64_t hash = mix(mix(p.seed ^ 0x5eed) + static_cast<uint64_t>(col));
    const float magnitude = 0.5f + static_cast<float>(hash >> 40) * 0x1p-24f;
    weight->set(0, col, hash & 1 ? magnitude : -magnitude);
  }
  connect();
}

void Trial::connect() {
  call_.x = x->device();
  call_.x_layout = x->layout;
  if (combination_.adds()) {
    call_.residual = residual->device();
    call_.residual_layout = residual->layout;
    call_.residual_out = residual_out->device();
    call_.residual_out_layout = residual_out->layout;
  }
  call_.weight = problem_.weight ? weight->device() : nullptr;
  call_.y = y->device();
  call_.y_layout = y->layout;
  call_.rows = problem_.rows;
  call_.cols = problem_.cols;
  call_.options = problem_.options;
}

std::vector<std::shared_ptr<Rows>> Trial::all() const {
  std::vector<std::shared_ptr<Rows>> result = {x, weight};
  for (const auto& rows : {residual, residual_out, y})
    if (rows && std::find(result.begin(), result.end(), rows) == result.end()) result.push_back(rows);
  return result;
}

void Trial::reset() {
  for (const auto& rows : all()) rows->upload();
}

std::string Trial::run(cudaStream_t stream) {
  reset();
  CUDA_CHECK(cudaDeviceSynchronize());
  if (const cudaError_t error = launch(stream)) return in_words(error);
  return check();
}

bool Trial::untouched() {
  CUDA_CHECK(cudaDeviceSynchronize());
  for (const auto& rows : all()) {
    rows->download();
    if (rows->now != rows->before) return false;
  }
  return true;
}

std::string Trial::check() {
  CUDA_CHECK(cudaDeviceSynchronize());
  for (const auto& rows : all()) rows->download();
  std::string failure;
  int64_t wrong = 0;
  std::vector<char> kept(problem_.cols * size_of(combination_.kept()));
  for (int64_t row = 0; row < problem_.rows; ++row) {
    const std::string found = check_row(row, kept, wrong);
    if (failure.empty()) failure = found;
  }
  if (wrong > 1) failure += text("; %lld elements are wrong", static_cast<long long>(wrong));
  for (const auto& rows : all()) {
    if (!failure.empty()) break;
    failure = rows->outside(rows == y || rows == residual_out);
  }
  return failure.empty() ? "" : name() + ": " + failure;
}

std::string Trial::check_row(int64_t row, std::vector<char>& kept, int64_t& wrong) const {
  const Combination& c = combination_;
  const int64_t cols = problem_.cols;
  std::string failure;
  const auto report = [&](const Rows& rows, const char* tensor, int64_t col, double low, double high) {
    ++wrong;
    if (!failure.empty()) return;
    const double got = read(rows.type, rows.at(rows.now, row), col);
    failure = text("%s (%lld, %lld) is ", tensor, static_cast<long long>(row), static_cast<long long>(col));
    failure += rows.is_poison(row, col) ? "not written" : text("%.9g", got);
    failure += low == high || low != low ? text(", not %.9g", low) : text(", not in %.9g to %.9g", low, high);
  };

  const void* input = x->at(x->before, row);
  if (c.adds()) {  // in float32, then rounded to R
    const void* addend = residual->at(residual->before, row);
    for (int64_t col = 0; col < cols; ++col)
      write(c.r, kept.data(), col,
            static_cast<float>(read(c.x, input, col)) + static_cast<float>(read(c.r, addend, col)));
    input = kept.data();
    const void* got = residual_out->at(residual_out->now, row);
    if (std::memcmp(got, input, kept.size()) != 0)
      for (int64_t col = 0; col < cols; ++col) {
        const double expected = read(c.r, input, col), value = read(c.r, got, col);
        const bool right = std::isnan(expected) ? std::isnan(value) && !residual_out->is_poison(row, col)
                                                : value == expected && std::signbit(value) == std::signbit(expected);
        if (!right) report(*residual_out, "residual_out", col, expected, expected);
      }
  }

  const double rstd = rstd_of(c.kept(), input, cols, problem_.options.eps);
  const double error = float_error(cols);
  const void* got = y->at(y->now, row);
  const void* factors = weight->at(weight->before, 0);
  for (int64_t col = 0; col < cols; ++col) {
    const double factor = problem_.weight ? read(c.w, factors, col) : 1.0;
    const Bounds bounds =
        bounds_of(read(c.kept(), input, col) * rstd, problem_.weight ? &factor : nullptr, c.y, problem_.options, error);
    if (!bounds.hold(read(c.y, got, col)) || y->is_poison(row, col)) report(*y, "y", col, bounds.low, bounds.high);
  }
  return failure;
}

std::string Trial::in_words(cudaError_t error) const {
  static_cast<void>(cudaGetLastError());
  return name() + ": the call returned " + cudaGetErrorName(error);
}

std::string Trial::name() const {
  const Problem& p = problem_;
  std::string result = text("%lld x %lld", static_cast<long long>(p.rows), static_cast<long long>(p.cols));
  const auto place = [&](const char* tensor, const Rows* rows, int offset) {
    if (!rows) return;
    const Layout& l = rows->layout;
    const auto wide = [](int64_t value) { return static_cast<long long>(value); };
    if (l.stride != p.cols || l.heads != 1)
      result += text(", %s {%lld, %lld, %lld}", tensor, wide(l.stride), wide(l.heads), wide(l.head_stride));
    if (offset) result += text(", %s off by %d", tensor, offset);
  };
  place("x", x.get(), p.x.offset);
  place("residual", residual.get(), p.residual.offset);
  if (p.residual_out_is == Is::apart) place("residual_out", residual_out.get(), p.residual_out.offset);
  if (p.y_is == Is::apart) place("y", y.get(), p.y.offset);
  if (p.residual_out_is != Is::apart)
    result += p.residual_out_is == Is::x ? ", residual_out is x" : ", residual_out is residual";
  if (p.y_is != Is::apart) result += p.y_is == Is::x ? ", y is x" : ", y is residual";
  if (p.weight_offset) result += text(", weight off by %d", p.weight_offset);
  const Options& o = p.options;
  result += p.weight ? text(", %s, weight offset %g", o.llama ? "llama" : "gemma", static_cast<double>(o.weight_offset))
                     : std::string(", no weight");
  result += text(", eps %g", static_cast<double>(o.eps));
  if (o.workspace) result += ", workspace";
  if (o.dependent_launch) result += ", dependent launch";
  return result;
}

}  // namespace header_test
