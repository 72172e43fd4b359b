// Every way to declare a kernel, and a launch of each.
#include "check.h"

__global__ void declared_first(int* out, int value);
__global__ void declared_first(int*, int);
void early(int* out) { declared_first<<<1, 1>>>(out, 1); }
__global__ void declared_first(int* out, int value) { *out = value; }

static __global__ void static_first(int* out) { *out = 2; }
__global__ static void static_second(int* out) { *out = 3; }
extern "C" __global__ void with_c_linkage(int* out) { *out = 4; }
extern "C" {
__global__ void in_c_block(int* out) { *out = 5; }
}
__launch_bounds__(64) __global__ void bounds_first(int* out) { *out = 6; }
__global__ void __launch_bounds__(64, 2) bounds_last(int* out) { *out = 7; }
__global__ __launch_bounds__(64) void bounds_middle(int* out) { *out = 8; }
[[maybe_unused]] __global__ void attributed(int* out) { *out = 9; }
__global__ void __attribute__((used)) gnu_attributed(int* out) { *out = 10; }
__global__ void unnamed(int*, int = 3) {}
__global__ auto trailing(int* out) -> void { *out = 11; }
// clang-format off
inline __global__ void
on_several_lines(int* out,
                 int value)
{
  *out = value;
}
// clang-format on

__global__ void with_defaults(int* out, int a = 5, float2 b = {1, 2}) { *out = a + int(b.x + b.y); }
__global__ void overloaded(int* out, int a) { *out = a; }
__global__ void overloaded(int* out, float a) { *out = int(2 * a); }
__global__ void overloaded(int* out) { *out = -1; }

template <typename T, int N = 4>
__global__ void deduced(T* out, T value) {
  *out = value + N;
}
template <>
__global__ void deduced<double, 1>(double* out, double value) {
  *out = -value;
}
template __global__ void deduced<int, 2>(int*, int);
extern template __global__ void deduced<int, 3>(int*, int);
template __global__ void deduced<int, 3>(int*, int);

template <int N, typename T>
__global__ void half_deduced(T* out, const T* weight) {
  *out = weight ? *weight : T(N);
}
template <typename... Values>
__global__ void variadic(int* out, Values... values) {
  *out = int((0 + ... + values));
}
template <template <typename, int> class Op, typename T>
__global__ void template_template(T* out) {
  *out = Op<T, 3>::value();
}
template <typename T, int N>
struct Constant {
  static __device__ T value() { return T(N); }
};
template <bool Positive, typename = typename std::enable_if<(Positive > false)>::type>
__global__ void with_comparison(int* out) {
  *out = Positive;
}
template <typename F>
__global__ void apply(int* out, F f) {
  *out = f(*out);
}

namespace outer {
namespace inner {
template <typename T, int N>
__global__ void deep(T* out) {
  *out = N;
}
}  // namespace inner
inline namespace v1 {
__global__ void in_inline(int* out) { *out = 12; }
}  // namespace v1
}  // namespace outer
namespace outer::inner {
__global__ void nested(int* out) { *out = 13; }
}  // namespace outer::inner
namespace alias = outer::inner;
namespace {
__global__ void anonymous(int* out) { *out = 14; }
}  // namespace

struct Holder final : Constant<int, 1> {
  static __global__ void member(int* out) { *out = 15; }
  template <typename T>
  static __global__ void member_template(T* out, T value) {
    *out = value;
  }
  Holder() : a_{1}, b_(2), c_{3, 4} { a_ += b_; }
  void run(int* out) const { member<<<1, 1>>>(out); }
  template <typename T>
  void run_template(T* out) {
    this->template member_template<T><<<1, 1>>>(out, T(16));
  }
  int operator()(int x) const { return x < a_ ? 1 : 2; }
  bool operator<(const Holder& other) const { return a_ < other.a_; }
  int a_, b_;
  struct {
    int x, y;
  } c_;
  friend __global__ void befriended(int* out, const Holder& holder);
};
template <typename T>
struct Generic {
  template <int N>
  static __global__ void kernel(T* out) {
    *out = T(N);
  }
  static void run(T* out) {
    kernel<17><<<1, 1>>>(out);
    Generic<T>::template kernel<18><<<1, 1>>>(out + 1);
  }
};

// A parameter with a kernel's name, as launch helpers have.
template <typename Kernel, typename... Arguments>
void launch_with(Kernel deduced, Arguments... arguments) {
  deduced<<<dim3(1), dim3(1)>>>(arguments...);
  void* pointer = (void*)deduced;
  CHECK(pointer != nullptr);
}
template <typename T>
void dependent(T* out) {
  deduced<T><<<1, 1>>>(out, T(1));
  deduced<T, 7><<<1, 1>>>(out + 1, 1);
  half_deduced<sizeof(T) / 2><<<1, 1>>>(out + 2, (const T*)nullptr);
}

enum class Kind : int { first, second };
enum Plain { plain_first = 1 << 2, plain_second = 3 > 2 };
int table[] = {1, 2, 3};
Holder global_holder{};
auto global_lambda = [](int* out) { static_first<<<1, 1>>>(out); };

int main() {
  Cell<int> out;
  early(out.device);
  CHECK(out.get() == 1);
#define RUN(kernel, expected, ...)             \
  kernel<<<1, 1>>>(out.device, ##__VA_ARGS__); \
  CHECK(out.get() == (expected))
  RUN(static_first, 2);
  RUN(static_second, 3);
  RUN(with_c_linkage, 4);
  RUN(in_c_block, 5);
  RUN(bounds_first, 6);
  RUN(bounds_last, 7);
  RUN(bounds_middle, 8);
  RUN(attributed, 9);
  RUN(gnu_attributed, 10);
  RUN(unnamed, 10);
  RUN(trailing, 11);
  RUN(on_several_lines, 21, 21);
  RUN(with_defaults, 8);
  RUN(with_defaults, 5, 2);
  RUN(with_defaults, 9, 2, {3, 4});
  RUN(overloaded, 3, 3);
  RUN(overloaded, 5, 2.5f);
  RUN(overloaded, -1);
  RUN(deduced, 5, 1);
  RUN(deduced<int>, 5, 1);
  RUN((deduced<int, 2>), 3, 1);
  RUN(half_deduced<9>, 9, (int*)nullptr);
  RUN((half_deduced<9, int>), 9, nullptr);
  RUN((half_deduced<9, int>), 9, NULL);
  RUN((half_deduced<9, int>), 9, 0);
  RUN(variadic, 0);
  RUN(variadic, 6, 1, 2.0, 3u);
  RUN((template_template<Constant, int>), 3);
  RUN(with_comparison<(2 > 1)>, 1);
  RUN(outer::in_inline, 12);
  RUN(outer::inner::nested, 13);
  RUN(alias::nested, 13);
  RUN(::anonymous, 14);
  RUN(Holder::member, 15);
  RUN(Holder::member_template, 16, 16);
  RUN(Holder::member_template<int>, 17, 17);

  Cell<double> real;
  deduced<double, 1><<<1, 1>>>(real.device, 2.0);
  CHECK(real.get() == -2.0);
  outer::inner::deep<double, 256><<<1, 1>>>(real.device);
  CHECK(real.get() == 256);
  using namespace outer;
  inner::deep<int, 1 + 2 * 3><<<1, 1>>>(out.device);
  CHECK(out.get() == 7);
  dependent(out.device);
  CHECK(out.get(0) == 5 && out.get(1) == 8 && out.get(2) == 2);
  Generic<int>::run(out.device);
  CHECK(out.get(0) == 17 && out.get(1) == 18);
  global_holder.run(out.device);
  CHECK(out.get() == 15);
  global_holder.run_template(out.device);
  CHECK(out.get() == 16);
  global_lambda(out.device);
  CHECK(out.get() == 2);
  launch_with(static_second, out.device);
  CHECK(out.get() == 3);
  apply<<<1, 1>>>(out.device, [] __device__(int x) { return x < 4 ? x * 10 : 0; });
  CHECK(out.get() == 30);

  void (*pointer)(int*) = static_first;
  void (*kernels[2])(int*) = {static_first, static_second};
  auto* specialized = &deduced<int, 2>;
  pointer<<<1, 1>>>(out.device);
  CHECK(out.get() == 2);
  (*pointer)<<<1, 1>>>(out.device);
  kernels[1]<<<1, 1>>>(out.device);
  CHECK(out.get() == 3);
  if (pointer) (*kernels[0])<<<1, 1>>>(out.device);
  CHECK(out.get() == 2);
  specialized<<<1, 1>>>(out.device, 40);
  CHECK(out.get() == 42);
  struct {
    void (*kernel)(int*);
  } entry = {static_second}, *entries = &entry;
  entry.kernel<<<1, 1>>>(out.device);
  CHECK(out.get() == 3);
  entries[0].kernel<<<1, 1>>>(out.device);
  entries->kernel<<<1, 1>>>(out.device);
  auto choose = [&](int i) { return kernels[i]; };
  choose(0)<<<1, 1>>>(out.device);
  CHECK(out.get() == 2);

  const void* address = (void*)static_first;
  CHECK((const void*)&static_first == address && address != nullptr);
  CHECK(reinterpret_cast<void*>(deduced<int, 2>) != reinterpret_cast<const void*>(&deduced<int, 3>));
  void* local_pointer = (void*)pointer;
  CHECK(local_pointer != nullptr);
  return 0;
}
