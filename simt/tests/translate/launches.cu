// Every way to write a launch.
#include "check.h"

template <typename T>
struct Type {
  using type = T;
  static constexpr int value = 2;
  template <typename U>
  static int make(U) {
    return 2;
  }
};
template <typename T, int N>
struct Sized {
  static constexpr int value = N;
  int n = N;
  operator dim3() const { return dim3(n); }
};
struct Pair {
  int a, b;
};

__global__ void add(int* out, int value) { atomicAdd(out, value); }
__global__ void take(int* out, Pair pair, const int* optional) { *out = pair.a + pair.b + (optional ? 100 : 0); }
template <typename T>
__global__ void add_template(T* out, T value) {
  atomicAdd(out, value);
}
__global__ void dynamic(int* out) {
  extern __shared__ int words[];
  words[0] = 7;
  *out = words[0];
}

#define LAUNCH(kernel, grid, block, ...) kernel<<<grid, block>>>(__VA_ARGS__)
#define CONFIGURED(kernel, ...) kernel<<<__VA_ARGS__>>>
#define TWICE(statement) \
  do {                   \
    statement;           \
    statement;           \
  } while (0)

int* counted(int* pointer, int& calls) {
  ++calls;
  return pointer;
}
void either(bool first, int* out) {
  if (first)
    add<<<1, 1>>>(out, 1);
  else
    add<<<1, 1>>>(out, 2);
}
void in_expressions(int* out) {
  true ? add<<<1, 1>>>(out, 1) : add<<<1, 1>>>(out, 2);
  add<<<1, 1>>>(out, 4), add<<<1, 1>>>(out, 8);
  return add<<<1, 1>>>(out, 16);
}
template <int... Ns>
void folded(int* out) {
  (add<<<1, 1>>>(out, Ns), ...);
}

int main() {
  Cell<int> out;
  int sum = 0, n = 2;
  cudaStream_t stream = nullptr;
#define EXPECT(amount) CHECK(out.get() == (sum += (amount)))
  add<<<1, 2>>>(out.device, 1);
  EXPECT(2);
  // clang-format off
  add <<< 1, 2 >>> (out.device, 1);
  EXPECT(2);
  add<<<dim3(2, 1), dim3(1, 1, 2), 0, stream>>>(out.device, 1);
  EXPECT(4);
  add<<<{2, 1}, {1, 1, 2}>>>(out.device, 1);
  EXPECT(4);
  add<<<
      n < 4 ? 1 : 2,  // not a template
      (n > 1) ? 2 : 1 /* nor >>> this */
      >>>(
      out.device,
      1);
  EXPECT(2);
  add<<<n >> 1, n << 1>>>(out.device, 1);
  EXPECT(4);
  // clang-format on
  add<<<(n + 1 - 1) / n, n>>>(out.device, 1);
  EXPECT(2);
  add<<<Type<Type<Type<int>>>::value, 1>>>(out.device, 1);
  EXPECT(2);
  add<<<1, Type<Type<int>>::make<Type<Type<Type<int>>>>({})>>>(out.device, 1);
  EXPECT(2);
  add<<<1, Sized<int, 3>{}>>>(out.device, 1);
  EXPECT(3);
  add<<<1, Sized<Sized<Sized<int, 1>, 2>, 3>::value>>>(out.device, 1);
  EXPECT(3);
  add<<<1, [&] { return n > 1 ? 2 : 1; }()>>>(out.device, 1);
  EXPECT(2);
  add_template<Type<Type<int>::type>::type><<<1, 1>>>(out.device, 1);
  EXPECT(1);
  add_template<typename Type<int>::type><<<1, 2>>>(out.device, [](int x) { return x < 1 ? 2 : x; }(0));
  EXPECT(4);
  LAUNCH(add, 1, 2, out.device, 1);
  EXPECT(2);
  LAUNCH(add_template<int>, (1), dim3(2, 1), out.device, 1);
  EXPECT(2);
  CONFIGURED(add, 1, 2)(out.device, 1);
  EXPECT(2);
  CONFIGURED((add_template<int>), 1, 2)(out.device, 1);
  EXPECT(2);
  TWICE((add<<<1, 1>>>(out.device, 1)));
  EXPECT(2);
  TWICE(LAUNCH(add, 1, 1, out.device, 1));
  EXPECT(2);
  either(true, out.device);
  either(false, out.device);
  EXPECT(3);
  in_expressions(out.device);
  EXPECT(29);
  folded<1, 2, 3>(out.device);
  EXPECT(6);
  int calls = 0;
  add<<<1, 4>>>(counted(out.device, calls), 1);
  EXPECT(4);
  CHECK(calls == 1);
  auto twice = [&](auto f) { f(), f(); };
  twice([&] { add<<<1, 1>>>(out.device, 1); });
  EXPECT(2);
  for (int i = 0; i < 2; ++i) add<<<1, 1>>>(out.device, i);
  EXPECT(1);
  switch (n) {
    case 2:
      add<<<1, 1>>>(out.device, 1);
      break;
    default:
      add<<<1, 1>>>(out.device, 100);
  }
  EXPECT(1);
label:
  add<<<1, 1>>>(out.device, 1);
  if (n++ < 3) goto label;
  EXPECT(2);

  take<<<1, 1>>>(out.device, {1, 2}, nullptr);
  CHECK(out.get() == 3);
  take<<<1, 1>>>(out.device, Pair{1, 2}, 0);
  CHECK(out.get() == 3);
  dynamic<<<1, 1, sizeof(int)>>>(out.device);
  CHECK(out.get() == 7);
  bool shifted = 16 >> 2 < 5 && n << 1 > 2;
  CHECK(shifted);
  return 0;
}
