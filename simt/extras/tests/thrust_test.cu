// Thrust: every kind of algorithm on device vectors, its iterators, its random numbers, and what a fault becomes.
#include "testing.h"

#include <thrust/adjacent_difference.h>
#include <thrust/binary_search.h>
#include <thrust/copy.h>
#include <thrust/count.h>
#include <thrust/device_ptr.h>
#include <thrust/device_vector.h>
#include <thrust/execution_policy.h>
#include <thrust/extrema.h>
#include <thrust/fill.h>
#include <thrust/find.h>
#include <thrust/functional.h>
#include <thrust/gather.h>
#include <thrust/host_vector.h>
#include <thrust/inner_product.h>
#include <thrust/iterator/constant_iterator.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/discard_iterator.h>
#include <thrust/iterator/permutation_iterator.h>
#include <thrust/iterator/reverse_iterator.h>
#include <thrust/iterator/transform_iterator.h>
#include <thrust/iterator/transform_output_iterator.h>
#include <thrust/iterator/zip_iterator.h>
#include <thrust/logical.h>
#include <thrust/merge.h>
#include <thrust/partition.h>
#include <thrust/random.h>
#include <thrust/reduce.h>
#include <thrust/remove.h>
#include <thrust/replace.h>
#include <thrust/reverse.h>
#include <thrust/scan.h>
#include <thrust/scatter.h>
#include <thrust/sequence.h>
#include <thrust/set_operations.h>
#include <thrust/shuffle.h>
#include <thrust/sort.h>
#include <thrust/system_error.h>
#include <thrust/tabulate.h>
#include <thrust/transform.h>
#include <thrust/transform_reduce.h>
#include <thrust/transform_scan.h>
#include <thrust/tuple.h>
#include <thrust/unique.h>

static_assert(THRUST_VERSION >= 300000, "every header of Thrust knows its version");

#include <list>
#include <set>
#include <string>

using Ints = std::vector<int>;
using DeviceInts = thrust::device_vector<int>;

Ints host(const DeviceInts& v) {
  Ints copy(v.size());
  thrust::copy(v.begin(), v.end(), copy.begin());
  return copy;
}

struct IsOdd {
  __device__ bool operator()(int x) const { return x % 2 != 0; }
};
struct Negated {
  __device__ int operator()(int x) const { return -x; }
};
__global__ void twice(int* x) { x[threadIdx.x] *= 2; }

TEST_CASE("an assignment keeps the memory that suffices") {
  DeviceInts v{1, 2, 3, 4};
  const DeviceInts shorter{5, 6, 7};
  const auto before = v.data();
  v = shorter;
  CHECK(v.data() == before);
  CHECK(host(v) == Ints{5, 6, 7});
}

TEST_CASE("vectors") {
  DeviceInts v(3, 7);
  v.push_back(1);
  v[0] = 5;
  v[1] += 2;
  v.insert(v.begin() + 1, 4);
  CHECK(host(v) == Ints{5, 4, 9, 7, 1});
  twice<<<1, 5>>>(thrust::raw_pointer_cast(v.data()));
  thrust::host_vector<int> h = v;
  CHECK(h == Ints{10, 8, 18, 14, 2});
  v.erase(v.begin(), v.begin() + 2);
  v.resize(4);
  CHECK(host(v) == Ints{18, 14, 2, 0});
  h.assign(2, 6);
  v = h;
  CHECK(v == h);
  const std::list<int> list = {3, 2, 1};
  const DeviceInts of_list(list.begin(), list.end()), from_list{3, 2, 1};
  CHECK(of_list == from_list);
  CHECK(of_list.back() == 1);
  DeviceInts other;
  other.swap(v);
  CHECK(v.empty());
  CHECK(host(other) == Ints{6, 6});
  CHECK(host(DeviceInts(other)) == Ints{6, 6});
  CHECK(thrust::host_vector<std::string>(2, "a string that needs memory of its own")[1].size() == 37);
}

TEST_CASE("transformations, filling and copies") {
  DeviceInts v(4), out(4);
  thrust::sequence(v.begin(), v.end(), 1);
  thrust::transform(v.begin(), v.end(), out.begin(), Negated());
  CHECK(host(out) == Ints{-1, -2, -3, -4});
  thrust::transform(v.begin(), v.end(), out.begin(), out.begin(), thrust::multiplies<int>());
  CHECK(host(out) == Ints{-1, -4, -9, -16});
  const int a = 10;
  thrust::transform(v.begin(), v.end(), out.begin(), [=] __device__(int x) { return a * x; });
  CHECK(host(out) == Ints{10, 20, 30, 40});
  using namespace thrust::placeholders;
  thrust::transform(v.begin(), v.end(), out.begin(), out.begin(), 2 * _1 + _2 % 7);
  CHECK(host(out) == Ints{5, 10, 8, 13});
  thrust::replace_if(v.begin(), v.end(), IsOdd(), 0);
  CHECK(host(v) == Ints{0, 2, 0, 4});
  thrust::tabulate(v.begin(), v.end(), thrust::square<int>());
  CHECK(host(v) == Ints{0, 1, 4, 9});
  thrust::fill_n(v.begin() + 1, 2, 3);
  CHECK(host(v) == Ints{0, 3, 3, 9});
  thrust::adjacent_difference(v.begin(), v.end(), v.begin());
  CHECK(host(v) == Ints{0, 3, 0, 6});
  const DeviceInts map{2, 0, 3, 1}, from{10, 11, 12, 13};
  thrust::gather(map.begin(), map.end(), from.begin(), v.begin());
  CHECK(host(v) == Ints{12, 10, 13, 11});
  thrust::scatter(from.begin(), from.end(), map.begin(), v.begin());
  CHECK(host(v) == Ints{11, 13, 10, 12});
  thrust::reverse(v.begin(), v.end());
  CHECK(host(v) == Ints{12, 10, 13, 11});
  thrust::shuffle_copy(v.begin(), v.end(), out.begin(), thrust::default_random_engine(3));
  CHECK(host(out) != host(v));
  thrust::sort(out.begin(), out.end());
  CHECK(host(out) == host(from));
  thrust::replace_copy(from.begin(), from.end(), out.begin(), 12, 0);
  CHECK(host(out) == Ints{10, 11, 0, 13});
  const auto end = thrust::copy_if(from.begin(), from.end(), v.begin(), IsOdd());
  CHECK(end - v.begin() == 2);
  CHECK(host(v) == Ints{11, 13, 13, 11});
}

TEST_CASE("reductions and searches") {
  const DeviceInts v{3, -5, 4, 4, 1};
  CHECK(thrust::reduce(v.begin(), v.end()) == 7);
  CHECK(thrust::reduce(v.begin(), v.end(), 0, thrust::maximum<int>()) == 4);
  CHECK(thrust::transform_reduce(v.begin(), v.end(), Negated(), 0, thrust::plus<int>()) == -7);
  CHECK(thrust::inner_product(v.begin(), v.end(), v.begin(), 0) == 67);
  CHECK(thrust::count(v.begin(), v.end(), 4) == 2);
  CHECK(thrust::count_if(v.begin(), v.end(), IsOdd()) == 3);
  CHECK(thrust::max_element(v.begin(), v.end()) - v.begin() == 2);
  const auto both = thrust::minmax_element(v.begin(), v.end());
  CHECK(*both.first == -5);
  CHECK(both.second - v.begin() == 2);
  CHECK(thrust::find(v.begin(), v.end(), 1) - v.begin() == 4);
  CHECK(thrust::any_of(v.begin(), v.end(), IsOdd()));
  CHECK_FALSE(thrust::all_of(v.begin(), v.end(), IsOdd()));
  const DeviceInts sorted{1, 3, 3, 8}, wanted{0, 3, 9};
  CHECK(thrust::is_sorted(sorted.begin(), sorted.end()));
  CHECK_FALSE(thrust::is_sorted(v.begin(), v.end()));
  CHECK(thrust::upper_bound(sorted.begin(), sorted.end(), 3) - sorted.begin() == 3);
  DeviceInts found(3);
  thrust::lower_bound(sorted.begin(), sorted.end(), wanted.begin(), wanted.end(), found.begin());
  CHECK(host(found) == Ints{0, 1, 4});
  thrust::binary_search(sorted.begin(), sorted.end(), wanted.begin(), wanted.end(), found.begin());
  CHECK(host(found) == Ints{0, 1, 0});
}

TEST_CASE("scans, and everything by key") {
  DeviceInts v{1, 2, 3, 4}, out(4);
  thrust::inclusive_scan(v.begin(), v.end(), out.begin());
  CHECK(host(out) == Ints{1, 3, 6, 10});
  thrust::exclusive_scan(v.begin(), v.end(), v.begin(), 100);
  CHECK(host(v) == Ints{100, 101, 103, 106});
  thrust::transform_inclusive_scan(out.begin(), out.end(), out.begin(), Negated(), thrust::minimum<int>());
  CHECK(host(out) == Ints{-1, -3, -6, -10});

  const DeviceInts keys{1, 1, 2, 1}, values{10, 20, 30, 40};
  DeviceInts keys_out(4), values_out(4);
  const auto ends =
      thrust::reduce_by_key(keys.begin(), keys.end(), values.begin(), keys_out.begin(), values_out.begin());
  CHECK(ends.first - keys_out.begin() == 3);
  CHECK(ends.second - values_out.begin() == 3);
  CHECK(host(values_out) == Ints{30, 30, 40, 0});
  thrust::inclusive_scan_by_key(keys.begin(), keys.end(), values.begin(), out.begin());
  CHECK(host(out) == Ints{10, 30, 30, 40});
  thrust::exclusive_scan_by_key(keys.begin(), keys.end(), values.begin(), out.begin(), 5);
  CHECK(host(out) == Ints{5, 15, 5, 5});

  DeviceInts k{3, 1, 2, 1}, w{0, 1, 2, 3};
  thrust::sort_by_key(k.begin(), k.end(), w.begin());
  CHECK(host(k) == Ints{1, 1, 2, 3});
  CHECK(host(w) == Ints{1, 3, 2, 0});  // stable
  thrust::sort(k.begin(), k.end(), thrust::greater<int>());
  CHECK(host(k) == Ints{3, 2, 1, 1});
  const auto unique = thrust::unique_by_key(k.begin(), k.end(), w.begin());
  CHECK(unique.first - k.begin() == 3);
  CHECK(host(w)[2] == 2);
}

TEST_CASE("selections and sets") {
  DeviceInts v{1, 1, 2, 3, 3, 3, 4};
  v.erase(thrust::unique(v.begin(), v.end()), v.end());
  CHECK(host(v) == Ints{1, 2, 3, 4});
  v.resize(static_cast<size_t>(thrust::remove_if(v.begin(), v.end(), IsOdd()) - v.begin()));
  CHECK(host(v) == Ints{2, 4});
  DeviceInts p{1, 2, 3, 4, 5};
  CHECK(thrust::stable_partition(p.begin(), p.end(), IsOdd()) - p.begin() == 3);
  CHECK(host(p) == Ints{1, 3, 5, 2, 4});
  const DeviceInts a{1, 3, 5}, b{2, 3, 9};
  DeviceInts out(6);
  thrust::merge(a.begin(), a.end(), b.begin(), b.end(), out.begin());
  CHECK(host(out) == Ints{1, 2, 3, 3, 5, 9});
  out.resize(static_cast<size_t>(thrust::set_union(a.begin(), a.end(), b.begin(), b.end(), out.begin()) - out.begin()));
  CHECK(host(out) == Ints{1, 2, 3, 5, 9});
  out.erase(thrust::set_difference(a.begin(), a.end(), b.begin(), b.end(), out.begin()), out.end());
  CHECK(host(out) == Ints{1, 5});
}

struct Saxpy {
  template <class Tuple>
  __device__ void operator()(Tuple t) const {
    thrust::get<2>(t) = 2 * thrust::get<0>(t) + thrust::get<1>(t);
  }
};
struct ByReference {
  __device__ int operator()(const thrust::tuple<int&, int&>& t) const { return thrust::get<0>(t) - thrust::get<1>(t); }
};

TEST_CASE("iterators") {
  DeviceInts x{1, 2, 3}, y{10, 20, 30}, z(3);
  const auto first = thrust::make_zip_iterator(thrust::make_tuple(x.begin(), y.begin(), z.begin()));
  thrust::for_each(first, first + 3, Saxpy());
  CHECK(host(z) == Ints{12, 24, 36});
  const auto pairs = thrust::make_zip_iterator(x.begin(), y.begin());
  thrust::transform(pairs, pairs + 3, z.begin(), ByReference());
  CHECK(host(z) == Ints{-9, -18, -27});
  auto keys = thrust::make_zip_iterator(thrust::make_tuple(y.begin(), x.begin()));
  thrust::sort(keys, keys + 3,
               [] __device__(const auto& a, const auto& b) { return thrust::get<1>(a) > thrust::get<1>(b); });
  CHECK(host(y) == Ints{30, 20, 10});
  CHECK(host(x) == Ints{3, 2, 1});

  const auto squares = thrust::make_transform_iterator(thrust::counting_iterator<int>(1), thrust::square<int>());
  CHECK(thrust::reduce(squares, squares + 3) == 14);
  const DeviceInts map{2, 0};
  CHECK(thrust::reduce(thrust::make_permutation_iterator(y.begin(), map.begin()),
                       thrust::make_permutation_iterator(y.begin(), map.end())) == 40);
  thrust::copy(thrust::make_reverse_iterator(y.end()), thrust::make_reverse_iterator(y.begin()), z.begin());
  CHECK(host(z) == Ints{10, 20, 30});
  thrust::copy(y.begin(), y.end(), thrust::make_transform_output_iterator(z.begin(), Negated()));
  CHECK(host(z) == Ints{-30, -20, -10});
  const auto ends = thrust::reduce_by_key(map.begin(), map.end(), thrust::constant_iterator<int>(1),
                                          thrust::make_discard_iterator(), z.begin());
  CHECK(ends.second - z.begin() == 2);
  CHECK(host(z) == Ints{1, 1, -10});
}

TEST_CASE("policies and pointers") {
  int* raw = nullptr;
  REQUIRE(cudaMalloc(&raw, 12) == cudaSuccess);
  cudaStream_t stream;
  REQUIRE(cudaStreamCreate(&stream) == cudaSuccess);
  thrust::fill(thrust::device, raw, raw + 3, 4);
  thrust::transform(thrust::cuda::par.on(stream), raw, raw + 3, raw, Negated());
  CHECK(thrust::reduce(thrust::device, raw, raw + 3) == -12);
  const thrust::device_ptr<int> pointer(raw);
  pointer[1] = 9;
  CHECK(thrust::max_element(pointer, pointer + 3) == pointer + 1);
  CHECK(thrust::max_element(thrust::device, raw, raw + 3) == raw + 1);
  Ints on_host = {3, 1, 2};
  thrust::sort(on_host.begin(), on_host.end());
  thrust::transform(thrust::host, on_host.begin(), on_host.end(), on_host.begin(), [](int x) { return x + 1; });
  CHECK(on_host == Ints{2, 3, 4});
  cudaStreamDestroy(stream);
  cudaFree(raw);
}

__global__ void doubles(thrust::device_ptr<const int> from, thrust::device_ptr<int> to) {
  to[threadIdx.x] = 2 * from[threadIdx.x];
}
__global__ void sorts(int* x) { thrust::sort(thrust::seq, x, x + 3); }
struct Faults {
  __device__ void operator()(int& x) const { (&x)[1 << 28] = 1; }
};

TEST_CASE("in a kernel, and faults") {
  DeviceInts v{3, 1, 2};
  sorts<<<1, 1>>>(thrust::raw_pointer_cast(v.data()));
  CHECK(host(v) == Ints{1, 2, 3});
  doubles<<<1, 3>>>(v.data(), v.data());
  CHECK(host(v) == Ints{2, 4, 6});
  std::string what;
  const std::string said = fault_of(cudaErrorIllegalAddress, [&] {
    try {
      thrust::for_each(v.begin(), v.end(), Faults());
    } catch (const thrust::system_error& error) {
      what = error.what();
    }
  });
  CHECK(contains(what, "thrust::for_each: an illegal memory access"));
  CHECK(contains(said, "kernel thrust::for_each"));
}

TEST_CASE("random numbers are Thrust's") {
  thrust::default_random_engine engine(1234);
  thrust::minstd_rand far(1234);
  for (int i = 0; i < 1000; ++i) engine();
  far.discard(1000);
  CHECK(engine == far);
  thrust::default_random_engine standard;
  standard.discard(9999);
  CHECK(standard() == 399268537);  // the C++ standard's value of the 10,000th
  thrust::uniform_real_distribution<float> real(2, 4);
  thrust::uniform_int_distribution<int> dice(1, 6);
  thrust::normal_distribution<float> normal(1, 2);
  std::set<int> seen;
  double sum = 0, squares = 0;
  for (int i = 0; i < 10000; ++i) {
    const float x = real(engine);
    CHECK_UNARY(x >= 2 && x < 4);
    seen.insert(dice(engine));
    const double n = normal(engine);
    sum += n, squares += (n - 1) * (n - 1);
  }
  CHECK(seen == std::set<int>{1, 2, 3, 4, 5, 6});
  CHECK(sum / 10000 == doctest::Approx(1).epsilon(0.1));  // 5 standard errors of 0.02
  CHECK(squares / 10000 == doctest::Approx(4).epsilon(0.07));
}
