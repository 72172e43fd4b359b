// CUB's device-wide algorithms: every kind, on plain pointers and on Thrust's iterators.
#include "testing.h"

#include <thrust/device_vector.h>
#include <thrust/iterator/transform_iterator.h>
#include <cub/cub.cuh>

template <class T>
using Vector = thrust::device_vector<T>;
template <class T>
T* raw(Vector<T>& v) {
  return thrust::raw_pointer_cast(v.data());
}
template <class T>
std::vector<T> host(const Vector<T>& v, size_t n) {
  std::vector<T> copy(n);
  thrust::copy(v.begin(), v.begin() + std::ptrdiff_t(n), copy.begin());
  return copy;
}

// Asks for the size, and does the work in memory of this size.
template <class Algorithm>
void two_calls(Algorithm algorithm) {
  size_t bytes = 0;
  REQUIRE(algorithm(nullptr, bytes) == cudaSuccess);
  Vector<char> temporary(bytes);
  CHECK(algorithm(raw(temporary), bytes) == cudaSuccess);
  size_t too_few = bytes - 1;
  CHECK(algorithm(raw(temporary), too_few) == cudaErrorInvalidValue);
}

struct Square {
  __host__ __device__ int operator()(int x) const { return x * x; }
};
struct IsNegative {
  __device__ bool operator()(float x) const { return x < 0; }
};

TEST_CASE("reductions") {
  Vector<int> in{3, -1, 4, -1, 5}, out(1), ends{0, 2, 5}, sums(2);
  two_calls([&](void* t, size_t& b) { return cub::DeviceReduce::Sum(t, b, raw(in), raw(out), 5); });
  CHECK(out[0] == 10);
  two_calls([&](void* t, size_t& b) { return cub::DeviceReduce::Min(t, b, in.begin(), out.begin(), 5); });
  CHECK(out[0] == -1);
  const auto squares = thrust::make_transform_iterator(in.begin(), Square());
  two_calls([&](void* t, size_t& b) { return cub::DeviceReduce::Max(t, b, squares, raw(out), 5); });
  CHECK(out[0] == 25);
  two_calls([&](void* t, size_t& b) {
    return cub::DeviceReduce::Reduce(t, b, raw(in), raw(out), 5, cuda::std::multiplies<>(), 2);
  });
  CHECK(out[0] == 120);
  Vector<cub::KeyValuePair<int, int>> best(1);
  two_calls([&](void* t, size_t& b) { return cub::DeviceReduce::ArgMin(t, b, raw(in), raw(best), 5); });
  const cub::KeyValuePair<int, int> least = best[0];
  CHECK(least.key == 1);
  CHECK(least.value == -1);
  two_calls([&](void* t, size_t& b) { return cub::DeviceReduce::ArgMax(t, b, raw(in), raw(out), raw(sums), 5); });
  CHECK(out[0] == 5);
  CHECK(sums[0] == 4);
  two_calls([&](void* t, size_t& b) {
    return cub::DeviceSegmentedReduce::Sum(t, b, raw(in), raw(sums), 2, raw(ends), raw(ends) + 1);
  });
  CHECK(host(sums, 2) == std::vector<int>{2, 8});
}

TEST_CASE("scans") {
  Vector<int> in{3, 1, 4, 1}, keys{7, 7, 8, 8}, out(4);
  two_calls([&](void* t, size_t& b) { return cub::DeviceScan::ExclusiveSum(t, b, raw(in), raw(out), 4); });
  CHECK(host(out, 4) == std::vector<int>{0, 3, 4, 8});
  two_calls([&](void* t, size_t& b) { return cub::DeviceScan::InclusiveSum(t, b, raw(out), 4); });
  CHECK(host(out, 4) == std::vector<int>{0, 3, 7, 15});
  two_calls([&](void* t, size_t& b) {
    return cub::DeviceScan::ExclusiveScan(t, b, raw(in), raw(out), cuda::maximum<>(), 2, 4);
  });
  CHECK(host(out, 4) == std::vector<int>{2, 3, 3, 4});
  two_calls(
      [&](void* t, size_t& b) { return cub::DeviceScan::InclusiveSumByKey(t, b, raw(keys), raw(in), raw(out), 4); });
  CHECK(host(out, 4) == std::vector<int>{3, 4, 4, 5});
}

TEST_CASE("sorts") {
  const std::vector<float> given = {2.5f, -1, 0, -7, 1e30f, -0.0f};
  Vector<float> in(given), out(6);
  Vector<int> values{0, 1, 2, 3, 4, 5}, values_out(6);
  two_calls([&](void* t, size_t& b) {
    return cub::DeviceRadixSort::SortPairs(t, b, raw(in), raw(out), raw(values), raw(values_out), 6);
  });
  CHECK(host(values_out, 6) == std::vector<int>{3, 1, 2, 5, 0, 4});  // the zeros keep their order
  CHECK(host(in, 6) == given);
  two_calls([&](void* t, size_t& b) { return cub::DeviceRadixSort::SortKeysDescending(t, b, raw(in), raw(out), 6); });
  CHECK(host(out, 6) == std::vector<float>{1e30f, 2.5f, 0, -0.0f, -1, -7});
  Vector<int> keys{0x31, -1, 0x22, 0x13}, other(4);
  cub::DoubleBuffer<int> buffers(raw(keys), raw(other));
  size_t bytes = 0;
  void* temporary = nullptr;
  cub::CachingDeviceAllocator allocator(true);
  CHECK(CubDebug(cub::DeviceRadixSort::SortKeys(temporary, bytes, buffers, 4)) == cudaSuccess);
  CHECK(allocator.DeviceAllocate(&temporary, bytes) == cudaSuccess);
  CHECK(cub::DeviceRadixSort::SortKeys(temporary, bytes, buffers, 4, 0, 4) == cudaSuccess);
  CHECK(allocator.DeviceFree(temporary) == cudaSuccess);
  CHECK(buffers.Current() == raw(other));
  CHECK(host(other, 4) == std::vector<int>{0x31, 0x22, 0x13, -1});  // by the lowest four bits
  two_calls([&](void* t, size_t& b) { return cub::DeviceMergeSort::SortKeys(t, b, raw(keys), 4, std::greater<>()); });
  CHECK(host(keys, 4) == std::vector<int>{0x31, 0x22, 0x13, -1});
}

TEST_CASE("selections, runs and histograms") {
  Vector<float> in{-1, 2, 2, -3, -3}, out(5);
  Vector<int> count(1), lengths(5), flags{0, 1, 0, 0, 1}, bins(3);
  two_calls(
      [&](void* t, size_t& b) { return cub::DeviceSelect::If(t, b, raw(in), raw(out), raw(count), 5, IsNegative()); });
  CHECK(count[0] == 3);
  CHECK(host(out, 3) == std::vector<float>{-1, -3, -3});
  two_calls([&](void* t, size_t& b) {
    return cub::DeviceSelect::Flagged(t, b, raw(in), raw(flags), raw(out), raw(count), 5);
  });
  CHECK(host(out, 2) == std::vector<float>{2, -3});
  two_calls([&](void* t, size_t& b) {
    return cub::DeviceRunLengthEncode::Encode(t, b, raw(in), raw(out), raw(lengths), raw(count), 5);
  });
  CHECK(count[0] == 3);
  CHECK(host(lengths, 3) == std::vector<int>{1, 2, 2});
  two_calls([&](void* t, size_t& b) {
    return cub::DeviceHistogram::HistogramEven(t, b, raw(in), raw(bins), 4, -3.0f, 3.0f, 5);
  });
  CHECK(host(bins, 3) == std::vector<int>{2, 1, 2});
  cub::DeviceFor::Bulk(3, [at = raw(bins)] __device__(int i) { at[i] += i; });
  CHECK(host(bins, 3) == std::vector<int>{2, 2, 4});
}

struct Faults {
  __device__ int operator()(int a, const int& b) const { return a + (&b)[1 << 28]; }
};
TEST_CASE("a fault is one of a kernel") {
  Vector<int> in(4), out(1);
  size_t bytes = 1024;
  const std::string said = fault_of(
      cudaErrorIllegalAddress, [&] { cub::DeviceReduce::Reduce(raw(in), bytes, raw(in), raw(out), 4, Faults(), 0); });
  CHECK(contains(said, "kernel cub::DeviceReduce"));
}
