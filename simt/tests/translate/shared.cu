// Every way to declare static shared memory.
#include <cstdint>
#include <type_traits>
#include "check.h"

#define TILE 4
constexpr int kRows = 3;
struct Point {
  float x, y;
};
struct Constructed {
  Constructed() : value(99) {}
  int value;
};
template <typename T>
struct Reduce {
  union Storage {
    T values[4];
    int flag;
    Constructed constructed;
  };
};
template <typename T>
struct Vector {
  T values[2];
  template <int I>
  __device__ T get() const {
    return values[I];
  }
};
namespace types {
struct Inner {
  int value;
};
}  // namespace types
typedef float Row[TILE];

template <typename T, int N>
__global__ void forms(T* out, int* aligned) {
  __shared__ float plain[TILE];
  __shared__ float matrix[TILE][TILE + 1], vector[N * 2 + (N > 2)], scalar, *pointer;
  __shared__ T dependent[N][kRows];
  static __shared__ int static_first;
  __shared__ static int static_second;
  volatile __shared__ int volatile_first;
  __shared__ volatile int volatile_second[2];
  __shared__ unsigned long long int wide;
  float __shared__ type_first;
  const __shared__ int* pointer_to_const;
  __shared__ __align__(16) unsigned char aligned_before[24];
  __shared__ unsigned char __align__(32) aligned_after[24];
  __shared__ alignas(64) char aligned_as[3];
  alignas(128) __shared__ char aligned_first;
  __shared__ alignas(double) char aligned_type[1], behind[1] __attribute__((aligned(32)));
  __shared__ struct Point point;
  __shared__ types::Inner inner;
  __shared__ ::types::Inner absolute;
  __shared__ typename Reduce<T>::Storage storage;
  __shared__ Constructed constructed[2];
  __shared__ struct {
    int a;
    float b[2];
  } unnamed, unnamed_array[2];
  __shared__ struct Named { int a; } named;
  __shared__ union {
    T as_t[2];
    unsigned bits[4];
  } punned;
  __shared__ union {
    float shared_float[4];
    int shared_int[4], *shared_pointer;
    struct {
      int first, second;
    };
  };
  __shared__ Vector<int> known_type;
  __shared__ Vector<T> type_of_arguments;
  __shared__ Row row;
  __shared__ float(*pointer_to_row)[TILE];
  __shared__ T (*function)(T);
  __shared__ std::conditional_t<(N > 2), int, float> conditional;
  __shared__ decltype(T() + 1) deduced;
  [[maybe_unused]] __shared__ int attributed;
  {
    __shared__ int plain;
    plain = 5;
    out[16] = plain;
  }

  auto& reference = matrix;
  static_assert(sizeof(matrix) == sizeof(float) * TILE * (TILE + 1), "an array keeps its size");
  static_assert(sizeof(dependent) == sizeof(T) * N * kRows, "so does one of template arguments");
  static_assert(sizeof(row) == 16 && sizeof(unnamed_array) == 24, "and one of a named or an unnamed type");
  static_assert(std::is_same<decltype(conditional), int>::value, "its type is the declared one");
  if (threadIdx.x == 0) {
    plain[0] = 1;
    reference[1][2] = 2;
    vector[N * 2] = 3;
    scalar = 4;
    pointer = &matrix[1][2];
    dependent[N - 1][2] = T(6);
    static_first = 7;
    static_second = 8;
    volatile_first = 9;
    volatile_second[1] = 10;
    wide = 11;
    type_first = 12;
    pointer_to_const = &static_first;
    point = Point{13, 14};
    inner.value = absolute.value = 15;
    storage.values[3] = T(16);
    unnamed.a = 17;
    unnamed_array[1].b[1] = 18;
    named.a = 19;
    punned.as_t[0] = T(1);
    shared_float[0] = 1;
    row[3] = 20;
    pointer_to_row = &row;
    function = nullptr;
    conditional = 21;
    deduced = 22;
    constructed[1].value = 23;
    out[0] = T(plain[0] + matrix[1][2] + vector[N * 2] + scalar + *pointer);
    out[1] = dependent[N - 1][2] + T(static_first + static_second + volatile_first + volatile_second[1] + wide);
    out[2] = T(type_first + *pointer_to_const + point.y + inner.value + absolute.value + storage.values[3]);
    out[3] = T(unnamed.a + unnamed_array[1].b[1] + named.a + (*pointer_to_row)[3] + conditional + deduced);
    out[4] = T(shared_int[0] == 0x3f800000 && first == shared_int[0] && second == shared_int[1]);
    known_type.values[1] = 3;
    type_of_arguments.values[0] = T(known_type.get<1>() + 1);
    out[6] = type_of_arguments.template get<0>();
    out[5] = T(constructed[1].value + (function == nullptr) + (punned.as_t[0] == T(1)));
    auto modulo = [](const void* address, int n) { return int(reinterpret_cast<std::uintptr_t>(address) % n); };
    *aligned = modulo(aligned_before, 16) + modulo(aligned_after, 32) + modulo(aligned_as, 64) +
               modulo(&aligned_first, 128) + modulo(aligned_type, 8) + modulo(behind, 32);
  }
}

__device__ int bump(int by) {
  __shared__ int counter;
  if (threadIdx.x == 0) counter = 10 * by;
  __syncthreads();
  return counter + by;
}

// One variable a function, whoever calls it; and one a kernel for a variable of a namespace.
__shared__ int at_file_scope[2], other_at_file_scope;
namespace scope {
__shared__ float tile[TILE][TILE];
__device__ float read(int i) { return tile[i][i]; }
}  // namespace scope
__device__ void write_file_scope(int value) { at_file_scope[1] = value; }
__device__ int hidden_by_parameter(int at_file_scope) { return at_file_scope + 1; }
__device__ int hidden_by_local() {
  int at_file_scope = 5, other_at_file_scope(6);
  return at_file_scope + other_at_file_scope;
}
template <typename T>
struct Reader {
  T value;
  __device__ Reader() : value(4) { value += at_file_scope[1] - other_at_file_scope + 1; }
  __device__ T read() const { return value + at_file_scope[1]; }
};
__global__ void file_scope(int* out) {
  if (threadIdx.x == 0) {
    write_file_scope(3);
    other_at_file_scope = 4;
    scope::read(0);
  }
  __syncthreads();
  out[0] = at_file_scope[1];
  out[1] = hidden_by_parameter(1);
  out[2] = hidden_by_local();
  out[3] = Reader<int>().read();
  out[4] = bump(1);
  auto inside_lambda = [&] {
    __shared__ int in_lambda;
    in_lambda = 6;
    return in_lambda;
  };
  out[5] = inside_lambda();
}
// A name after one of the operators that are words is not declared there.
__global__ void operator_words(int* out) {
  at_file_scope[0] = 0, at_file_scope[1] = 3;
  other_at_file_scope = 5;
  out[0] = int(sizeof at_file_scope + sizeof other_at_file_scope);
  out[1] = not at_file_scope[0] and at_file_scope[1] xor other_at_file_scope;
  out[2] = compl other_at_file_scope bitor at_file_scope[1];
  out[3] = __alignof__ other_at_file_scope;
}
namespace scope {
__global__ void reopened(int* out) {
  tile[1][1] = 24;
  out[0] = int(read(1));
}
}  // namespace scope
struct Host {
  int tile;
};
int on_the_host(int at_file_scope) {
  int other_at_file_scope = 2;
  return at_file_scope + other_at_file_scope;
}

int main() {
  Cell<int> out, aligned;
  forms<int, 5><<<1, 1>>>(out.device, aligned.device);
  const int expected[] = {12, 51, 79, 117, 1, 25, 4};
  for (int i = 0; i < 7; ++i) CHECK(out.get(i) == expected[i]);
  CHECK(out.get(16) == 5);
  CHECK(aligned.get() == 0);
  file_scope<<<1, 1>>>(out.device);
  const int scoped[] = {3, 2, 11, 7, 11, 6};
  for (int i = 0; i < 6; ++i) CHECK(out.get(i) == scoped[i]);
  operator_words<<<1, 1>>>(out.device);
  const int computed[] = {12, 1, ~5 | 3, 4};
  for (int i = 0; i < 4; ++i) CHECK(out.get(i) == computed[i]);
  size_t at_file_scope = 16;
  scope::reopened<<<1, 1, at_file_scope>>>(out.device);
  CHECK(out.get() == 24);
  CHECK(on_the_host(3) + Host{4}.tile == 9);
  return 0;
}
