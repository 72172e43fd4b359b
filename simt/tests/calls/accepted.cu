// What nvcc accepts, and simtcc with it.
#include <algorithm>
#include <array>
#include <cassert>
#include <cstdio>
#include <limits>
#include <new>
#include <vector>

#define BOTH __host__ __device__
#define KERNEL __global__ static

__device__ int declared_on_device(int x);
BOTH int declared_on_both(int x);
int with_overloads(int x) { return x; }
__device__ float with_overloads(float x) { return x; }
constexpr int computed(int x) { return x * x; }
template <class T>
BOTH T for_both(T x) {
  return x + 1;
}
__device__ inline int declared_on_device(int x) { return x; }
int declared_on_both(int x) { return x; }

struct Point {
  int x = 1, y = 2;
};
__device__ int with_default(
    Point point = {}, int (*f)(int) = [](int x) { return x; }) {
  return point.x + f(1);
}
struct Line {
  Point from, to;
  std::array<int, 3> colors{};
};
struct Base {
  BOTH virtual int value() const { return 1; }
  BOTH virtual ~Base() {}
};
struct Derived : Base {
  BOTH int value() const override { return 2; }
};
struct Scale {
  int by;
  BOTH explicit Scale(int by) : by(by) {}
  BOTH int operator()(int x) const { return by * x; }
  __device__ int operator[](int i) const { return by + i; }
  int host_only() const { return by; }
};
struct WithHostMembers {  // its constructors and destructor are not called in the kernel
  explicit WithHostMembers(int x) : x(x) { ++made; }
  WithHostMembers(const WithHostMembers& other) : x(other.x) { ++made; }
  ~WithHostMembers() { --made; }
  static int made;
  int x;
};
int WithHostMembers::made = 0;
__constant__ Point origin;
__device__ Point point;
__device__ int table[4] = {1, 2, 3, 4};
__host__ __device__ auto of_namespace = [](int x) { return x; };

template <class T>
struct Traits {
  static T host_default() { return T(); }
  static BOTH T zero() { return T(0); }
};

namespace kernels {
template <class T, class F>
__global__ void apply(T* a, F f) {
  a[threadIdx.x] = f(a[threadIdx.x]);
}
}  // namespace kernels

KERNEL void everything(int* a, WithHostMembers by_value) {
  Line line;
  Derived derived;
  const Base& base = derived;
  int* memory = static_cast<int*>(malloc(4));
  Point* made = new Point;
  a[0] = declared_on_device(1) + declared_on_both(2) + computed(3) + for_both(4) + line.to.y + by_value.x;
  a[1] = int(with_overloads(1.5f)) + base.value() + Scale(2)(3) + Scale(2)[1] + Traits<int>::zero() + made->x;
  a[7] = with_default();
  a[2] = std::max(1, 2) + std::min(a[0], a[1]) + std::numeric_limits<int>::digits + line.colors[1] + origin.x;
  a[3] = int(sqrtf(2.f) + std::sqrt(2.) + std::abs(-3) + powf(2.f, 3.f) + fabs(-1.)) + of_namespace(1) + point.y;
  auto local = [&](int x) { return x + a[0] + table[0]; };
  struct Inner {
    int twice(int x) { return 2 * x; }
  } inner;
  memcpy(memory, a, 4);
  memset(memory, 0, 4);
  std::swap(a[4], a[5]);
  assert(a[0] != 0);
  printf("%d %d\n", local(1), inner.twice(2));
  if (std::is_same_v<int, float>) a[6] = with_overloads(1);
  delete made;
  free(memory);
}

struct everything_else {};
namespace other {
int everything(int* a) { return *a; }  // not the kernel
struct Member {
  int apply(int x) { return x; }
};
}  // namespace other

template <class F>
int call(F f) {
  return f(1);
}

int main() {
  int* a;
  cudaMalloc(&a, 1024);
  cudaMemset(a, 1, 1024);
  auto launch = [&](int blocks) { everything<<<blocks, 1>>>(a, WithHostMembers(3)); };
  launch(1);
  kernels::apply<<<1, 32>>>(a, Scale(2));
  kernels::apply<<<1, 32>>>(a, [] __device__(int x) { return declared_on_device(x); });
  kernels::apply<<<1, 32>>>(a, [] __host__ __device__(int x) { return x + 1; });
  kernels::apply<int, Scale><<<1, 32>>>(a, Scale(3));
  void (*pointer)(int*, Scale) = kernels::apply<int, Scale>;
  pointer<<<1, 32>>>(a, Scale(1));
  void* arguments[] = {&a};
  cudaLaunchKernel((void*)kernels::apply<int, Scale>, 1, 1, arguments, 0, nullptr);
  std::vector<int> v(3, with_overloads(2));
  int x = 5;
  v[0] = other::everything(&x) + other::Member().apply(2) + call(Scale(2)) + call([](int y) { return y; });
  v[1] = Scale(1).host_only() + Traits<int>::host_default() + computed(2) + for_both(1) + declared_on_both(1);
  return v.size() == 3 && sizeof(everything_else) ? 0 : 1;
}
