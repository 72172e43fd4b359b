// Text that must not be read as CUDA, and CUDA that is easily missed.
#include <cassert>
#include <cstring>
#include <iostream>
#include <string>
#include <type_traits>
#include "check.h"

__global__ void set(int* out, int value) { *out = value; }

// set<<<1, 1>>>(nullptr, 0); __shared__ int commented;
/* __global__ set<<<1, 1>>>( */
const char* kString = "set<<<1, 1>>>(x); __shared__ \" asm(\"nop\") /* ";
const char* kRaw = R"(
# 1 "not_a_marker.cu" 1 3
set<<<1, 1>>>(x); __shared__ int x; ")";
const char* kDelimited = u8R"delimiter(a)" __global__ )delimiter";
const wchar_t* kWide = L"<<<";
constexpr long kBig = 1'000'000 + 0x1'f + 0b1'0;
constexpr double kReal = 1.5e+3 + .5e-1 + 0x1p-3 + 1'0.0'1f;
constexpr char kQuote = '"', kApostrophe = '\'', kBrace = '{', kLess = '<';
std::string operator""_text(const char* text, std::size_t size) { return std::string(text, size); }

template <typename T>
struct Box {
  T value;
  template <typename U>
  friend std::ostream& operator<<(std::ostream& stream, const Box<U>& box);
  friend bool operator<(const Box& a, const Box& b) { return a.value < b.value; }
  template <typename U>
  T operator<<(U shift) const {
    return value << shift;
  }
  int operator()(int x) const { return x; }
  int operator[](int x) const { return x; }
};
template <typename T>
bool operator>(const Box<T>& a, const Box<T>& b) {
  return b.value < a.value;
}
template <typename A, typename B = Box<Box<Box<A>>>>
using Alias = B;
Alias<int, Box<Box<Box<int>>>> boxed;
template <int N, bool = (N > 1)>
struct Value {
  static constexpr int value = N;
};

__device__ __noinline__ int outlined(int x) { return x + 1; }
__noinline__ __device__ int outlined_first(int x) { return x + 2; }
__device__ int __attribute__((__noinline__)) gnu_outlined(int x) { return x + 3; }
[[gnu::__noinline__]] __device__ int standard_outlined(int x) { return x + 4; }

#pragma nv_diag_suppress 177
#pragma hd_warning_disable
__global__ void with_pragmas(int* out) {
  int sum = 0;
#pragma unroll
  for (int i = 0; i < 4; ++i) sum += i;
#pragma unroll 4
  for (int i = 0; i < 4; ++i) sum += i;
  _Pragma("unroll") for (int i = 0; i < 4; ++i) sum += i;
#pragma nounroll
  while (sum < 20) ++sum;
  assert(sum > 0 && out != NULL);
  asm volatile("" ::: "memory");
  __asm__ __volatile__("");
  *out = outlined(outlined_first(gnu_outlined(standard_outlined(sum))));
}
__global__ void größe(int* out) {
  __shared__ int größer[2];
  größer[1] = 50;
  *out = größer[1];
}
__global__ void ptx(int* out, unsigned long long* clock) {
  int lane, warp;
  asm volatile("mov.u32 %0, %%laneid;" : "=r"(lane));
  asm("mov.u32 %0, %%warpid;\n" : "=r"(warp));
  asm volatile("membar.gl;" ::: "memory");
  asm volatile("bar.sync 0;");
  asm volatile("mov.u64 %0, %%clock64;" : "=l"(*clock)::"memory");
  out[threadIdx.x] = warp * 32 + lane;
}

int main() {
  Cell<int> out;
  int value = 40, a = 1, b = 3, c = 1;
  bool less = a < b && b > c;
  CHECK(less && (a < b) == true && (b >> a) == 1);
  CHECK(std::strstr(kString, "asm(\"nop\")") && std::strstr(kRaw, "not_a_marker") && std::strlen(kDelimited) == 15);
  CHECK(kWide[2] == L'<' && kBig == 1000033 && kReal > 1500 && kQuote == '"' && kApostrophe == '\'' && kBrace == '{');
  CHECK(kLess == '<' && "<<<"_text.size() == 3 && Value<(3 > 2 ? 4 : 5)>::value == 4);
  Box<int> box{3};
  CHECK((box << 2) == 12 && box < Box<int>{4} && Box<int>{5} > box && box(3) == box[3]);
  // clang-format off
  CHECK(box.operator<<<int>(1) == 6);
  set<<<1, 1>>>(out.device, value /* >>>( */); CHECK(out.get() == 40);
  // clang-format on
  auto nested = [&](auto f) { return [&, f](int x) { set<<<1, 1>>>(out.device, f(x)); }; };
  nested([](int x) { return x < 2 ? x : 2; })(7);
  CHECK(out.get() == 2);
  with_pragmas<<<1, 1>>>(out.device);
  CHECK(out.get() == 30);
  größe<<<1, 1>>>(out.device);
  CHECK(out.get() == 50);
  Cell<unsigned long long> clock;
  ptx<<<1, 40>>>(out.device, clock.device);
  for (int i = 0; i < 40; ++i) CHECK(out.get(i) == i);
  return 0;
}
