// Shared variables are static: lambdas name them without capturing them, and see every later change.
#include <type_traits>
#include "check.h"

__shared__ int in_namespace[4];
extern __shared__ int words[];

template <typename T>
__global__ void lambdas(T* out) {
  __shared__ T values[8], single;
  __shared__ union {
    T member;
    int other;
  };
  auto by_copy = [=](int i) { return values[i] + single; };
  auto without_capture = [](int i) { return values[i]; };
  auto by_reference = [&](int i) -> T& { return values[i]; };
  auto of_namespace = [=](int i) mutable noexcept { return in_namespace[i] + words[i]; };
  auto generic = [](auto i) { return values[i] + T(member); };
  auto nested = [=](int i) { return [=] { return values[i] + [] { return single; }(); }(); };
  auto hidden = [](T* values) { return values[0]; };
  auto own = [=] {
    T values[1] = {T(40)};
    return values[0];
  };
  auto with_result = [](int i) -> std::remove_reference_t<decltype(values[0])> { return values[i]; };
  for (int i = 0; i < 8; ++i) values[i] = T(i);
  single = T(100);
  member = T(7);
  for (int i = 0; i < 4; ++i) in_namespace[i] = 10 * i;
  words[2] = 5;
  static_assert(std::is_same<decltype(values), T[8]>::value, "decltype gives the declared type");
  static_assert(std::extent<decltype(values)>::value == 8, "an array's type has its extent");
  out[0] = by_copy(3);
  out[1] = without_capture(4);
  by_reference(5) = T(50);
  out[2] = values[5];
  out[3] = T(of_namespace(2));
  out[4] = generic(2);
  out[5] = nested(1);
  T local[1] = {T(30)};
  out[6] = hidden(local) + own();
  out[7] = with_result(6);
  int subscripts[2][2] = {{1, 2}, {3, 4}}, index[] = {0, 1};
  out[8] = T(subscripts[index[1]][index[0]] + values[subscripts[0][1]]);
  {
    __shared__ T values[2];
    values[0] = T(60);
    out[9] = [=] { return values[0]; }();
  }
  out[10] = [=] { return values[7]; }();
}

int main() {
  Cell<float> out;
  lambdas<<<1, 1, 64>>>(out.device);
  const float expected[] = {103, 4, 50, 25, 9, 101, 70, 6, 5, 60, 7};
  for (int i = 0; i < 11; ++i) CHECK(out.get(i) == expected[i]);
  return 0;
}
