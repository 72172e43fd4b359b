// More elements than 2^31, of which a 32-bit offset would lose the upper half: float16, because that takes the least
// memory, 9 GB. The tensors repeat a pattern, so that the oracle needs no copy of them. Every element must be written;
// what is in it is looked at in some rows, those about element 2^31 and the last one among them.
#include <algorithm>
#include <cmath>

#include "common/text.h"
#include "tests/headers/rms_norm/groups.h"
#include "tests/headers/rms_norm/instance.cuh"

namespace header_test {
namespace {

using ladder::text;

constexpr int64_t kPeriod = 4099;  // a prime: no row begins as the one before
constexpr int64_t kElements = (int64_t{1} << 31) + (1 << 20);
constexpr uint16_t kUnwritten = 0xffff;

__global__ void repeat(const uint16_t* pattern, uint16_t* to, int64_t count) {
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += int64_t{gridDim.x} * blockDim.x)
    to[i] = pattern[i % kPeriod];
}

__global__ void count_unwritten(const uint16_t* from, int64_t count, unsigned long long* total) {
  unsigned long long mine = 0;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += int64_t{gridDim.x} * blockDim.x)
    mine += from[i] == kUnwritten;
  if (mine > 0) atomicAdd(total, mine);
}

// A pattern of float16 numbers, with the sums of the squares before each.
struct Pattern {
  std::vector<uint16_t> bits = std::vector<uint16_t>(kPeriod);
  std::vector<double> squares = std::vector<double>(kPeriod + 1);

  void set(int64_t i, float value) { bits[i] = ladder::Float16::from(value); }
  double at(int64_t i) const { return ladder::Float16::value(bits[i % kPeriod]); }
  void add_up() {
    for (int64_t i = 0; i < kPeriod; ++i) squares[i + 1] = squares[i] + at(i) * at(i);
  }
  double sum_to(int64_t i) const { return static_cast<double>(i / kPeriod) * squares[kPeriod] + squares[i % kPeriod]; }
};

struct Memory {
  using Elements = ladder::DeviceMemory<uint16_t>;
  Elements x = ladder::allocate<uint16_t>(kElements), y = ladder::allocate<uint16_t>(kElements),
           weight = ladder::allocate<uint16_t>(kElements), pattern = ladder::allocate<uint16_t>(kPeriod);
  ladder::DeviceMemory<unsigned long long> total = ladder::allocate<unsigned long long>(1);

  void fill(uint16_t* to, const Pattern& from) {
    CUDA_CHECK(cudaMemcpy(pattern.get(), from.bits.data(), kPeriod * 2, cudaMemcpyHostToDevice));
    repeat<<<1024, 256>>>(pattern.get(), to, kElements);
    CUDA_CHECK(cudaDeviceSynchronize());
  }
  int64_t unwritten(const uint16_t* from, int64_t count) {
    unsigned long long result = 0;
    CUDA_CHECK(cudaMemcpy(total.get(), &result, sizeof result, cudaMemcpyHostToDevice));
    count_unwritten<<<1024, 256>>>(from, count, total.get());
    CUDA_CHECK(cudaMemcpy(&result, total.get(), sizeof result, cudaMemcpyDeviceToHost));
    return static_cast<int64_t>(result);
  }
};

struct Size {
  int64_t rows, cols, stride;
  bool weight;
};

std::string check_row(const Size& size, int64_t row, const Pattern& kept, const Pattern& weight, const uint16_t* y) {
  const int64_t begin = row * size.stride;
  const double mean = (kept.sum_to(begin + size.cols) - kept.sum_to(begin)) / static_cast<double>(size.cols);
  const double rstd = 1.0 / std::sqrt(mean + static_cast<double>(Options().eps)), error = Op::float_error(size.cols);
  constexpr int64_t kWindow = 1 << 14;
  std::vector<uint16_t> got(std::min(size.cols, kWindow));
  std::vector<float> inputs(got.size()), factors(got.size());
  std::vector<double> expected(got.size()), low(got.size()), high(got.size());
  for (const int64_t first : {int64_t{0}, (int64_t{1} << 31) - begin - kWindow / 2, size.cols - kWindow}) {
    const int64_t window = std::clamp<int64_t>(first, 0, size.cols - static_cast<int64_t>(got.size()));
    CUDA_CHECK(cudaMemcpy(got.data(), y + begin + window, got.size() * 2, cudaMemcpyDeviceToHost));
    for (size_t i = 0; i < got.size(); ++i) {
      const int64_t col = window + static_cast<int64_t>(i);
      inputs[i] = static_cast<float>(kept.at(begin + col));
      factors[i] = static_cast<float>(weight.at(col));
    }
    constexpr double kScalars[3] = {};
    Op::answers(Type::float16, static_cast<int64_t>(got.size()), inputs.data(), rstd,
                size.weight ? factors.data() : nullptr, kScalars, error, {expected.data(), low.data(), high.data()});
    for (size_t i = 0; i < got.size(); ++i) {
      const double value = ladder::Float16::value(got[i]);
      if (!(value >= low[i] && value <= high[i]))
        return text("y (%lld, %lld) is %g, not in %g to %g", static_cast<long long>(row),
                    static_cast<long long>(window) + static_cast<long long>(i), value, low[i], high[i]);
    }
  }
  return "";
}

std::string check(Memory& memory, const Size& size, bool adds) {
  Pattern x, residual, kept, weight;
  for (int64_t i = 0; i < kPeriod; ++i) {
    x.set(i, static_cast<float>(i * 7919 % kPeriod - kPeriod / 2) / 512.0f);
    residual.set(i, static_cast<float>(i * 104729 % kPeriod - 1000) / 256.0f);
    kept.set(i, static_cast<float>(x.at(i) + (adds ? residual.at(i) : 0.0)));
    weight.set(i, 0.5f + static_cast<float>(i * 31 % kPeriod) / kPeriod);
  }
  kept.add_up();
  memory.fill(memory.x.get(), x);
  if (size.weight) memory.fill(memory.weight.get(), weight);
  adds ? memory.fill(memory.y.get(), residual) : CUDA_CHECK(cudaMemset(memory.y.get(), 0xff, kElements * 2));

  Call call;
  call.x = memory.x.get();
  call.y = adds ? memory.x.get() : memory.y.get();
  call.residual = call.residual_out = memory.y.get();  // in place
  call.weight = size.weight ? memory.weight.get() : nullptr;
  call.rows = size.rows;
  call.cols = size.cols;
  call.x_layout = call.y_layout = call.residual_layout = call.residual_out_layout = {size.stride};
  cudaError_t error = cudaErrorUnknown;
  for (const Combination& c : combinations())
    if (c.types.x == Type::float16 && c.uniform() && c.adds() == adds) error = c.run(call, nullptr);
  const std::string name =
      text("%lld x %lld, stride %lld%s", static_cast<long long>(size.rows), static_cast<long long>(size.cols),
           static_cast<long long>(size.stride), adds ? ", with a residual, in place: " : ": ");
  if (error) return name + cudaGetErrorName(error);
  CUDA_CHECK(cudaDeviceSynchronize());

  const auto* y = static_cast<const uint16_t*>(call.y);
  const int64_t end = (size.rows - 1) * size.stride + size.cols;
  if (!adds) {
    const int64_t gaps = (size.rows - 1) * (size.stride - size.cols), missing = memory.unwritten(y, end) - gaps;
    if (missing > 0) return name + text("%lld elements were not written", static_cast<long long>(missing));
    if (missing < 0)
      return name + text("%lld elements between the rows were written", static_cast<long long>(-missing));
    if (memory.unwritten(y + end, kElements - end) != kElements - end) return name + "wrote past the last row";
  }
  const int64_t middle = std::min((int64_t{1} << 31) / size.stride, size.rows - 1);
  for (const int64_t row :
       {int64_t{0}, int64_t{1}, size.rows / 2, middle - 1, middle, middle + 1, size.rows - 2, size.rows - 1})
    if (row >= 0 && row < size.rows) {
      const std::string failure = check_row(size, row, kept, weight, y);
      if (!failure.empty()) return name + failure;
    }
  return "";
}

bool is_gpu_with(int64_t bytes, std::string& why_not) {
#ifdef __SIMT__
  static_cast<void>(bytes);
  why_not = "takes a GPU";
  return false;
#else
  size_t available = 0, total = 0;
  CUDA_CHECK(cudaMemGetInfo(&available, &total));
  why_not = text("takes %.0f GB of free GPU memory; %.0f are free", static_cast<double>(bytes) / 1e9,
                 static_cast<double>(available) / 1e9);
  return available > static_cast<size_t>(bytes);
#endif
}

}  // namespace

size_t workspace_bytes() { return rms_norm::kWorkspaceBytes; }

Group large(bool quick) {
  const auto run = [quick](Tally& tally) {
    std::string why_not;
    if (quick) return tally.skip("left out by --quick");
    if (!is_gpu_with(3 * kElements * 2 + (256 << 20), why_not)) return tally.skip(why_not);
    Memory memory;
    constexpr int64_t kHalf = int64_t{1} << 31;
    const Size sizes[] = {
        {kHalf / 4096 + 3, 4096, 4096, true},  // many rows
        {kHalf / 33 + 3, 33, 33, true},        // short ones
        {kHalf / 40 + 3, 32, 40, true},        // with gaps
        {kHalf + 5, 1, 1, false},              // more rows than an int counts
        {3, 1000, kHalf / 2 + 8, true},        // a stride of its own
        {2, kHalf / 2 + 24, kHalf / 2 + 24, true},
        {1, kHalf + 8, kHalf + 8, true},  // one row
        {1, kHalf + 7, kHalf + 7, true},  // one odd row
    };
    for (const Size& size : sizes) {
      tally.expect(check(memory, size, false));
      tally.expect(check(memory, size, true));
    }
  };
  return {"more than 2^31 elements", run};
}

}  // namespace header_test
