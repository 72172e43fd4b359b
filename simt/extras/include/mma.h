// nvcuda::wmma: matrices that a warp holds in fragments. Which lane holds which element is left open by CUDA; here it
// is the layout of PTX's mma, over as many blocks of 8 rows or columns as the matrix has.
#pragma once
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "simt/device.h"
#include "simt/tensor_cores.h"

namespace nvcuda {
namespace wmma {

struct row_major;
struct col_major;
struct matrix_a;
struct matrix_b;
struct accumulator;
enum layout_t { mem_row_major, mem_col_major };

namespace precision {
struct tf32;
}

namespace details {

template <class T>
struct Element {
  using type = T;
};
template <>
struct Element<precision::tf32> {
  using type = float;
};

template <class T>
constexpr bool is_byte = std::is_same_v<T, signed char> || std::is_same_v<T, unsigned char>;
template <class T>
constexpr bool is_16_bit = std::is_same_v<T, __half> || std::is_same_v<T, __nv_bfloat16>;

// The shapes that CUDA has for a type of factors.
template <class T, int m, int n, int k>
constexpr bool has_shape = (is_16_bit<T> || is_byte<T>)&&k == 16 &&
                               ((m == 16 && n == 16) || (m == 32 && n == 8) || (m == 8 && n == 32)) ||
                           std::is_same_v<T, precision::tf32>&& m == 16 && n == 16 && k == 8 ||
                           std::is_same_v<T, double>&& m == 8 && n == 8 && k == 4;
template <int m, int n, int k>
constexpr bool has_sums =
    has_shape<__half, m, n, k> || has_shape<precision::tf32, m, n, k> || has_shape<double, m, n, k>;

// Of `lines` x `length` elements, line i has four lanes, which hold `per` neighbours each of every 4 * per.
template <int lines_, int length_, int per_>
struct Layout {
  static constexpr int lines = lines_, length = length_, per = per_, count = lines * length / 32;
  static constexpr int line(int lane, int at) { return lane / 4 + at / per % (lines / 8) * 8; }
  static constexpr int place(int lane, int at) { return at / per / (lines / 8) * 4 * per + lane % 4 * per + at % per; }
};
template <class T>
constexpr int packed = sizeof(T) < 4 ? 4 / static_cast<int>(sizeof(T)) : 1;

// Neighbours in one access where they are neighbours in memory.
template <class LayoutOf, class T>
SIMT_FOR_CALLER inline void load(T* elements, const T* from, unsigned line_step, unsigned place_step) {
  const int lane = static_cast<int>(simt::lane_id());
  constexpr int kPer = LayoutOf::per;
  for (int at = 0; at < LayoutOf::count; at += kPer) {
    const T* first = from + LayoutOf::line(lane, at) * static_cast<size_t>(line_step) +
                     LayoutOf::place(lane, at) * static_cast<size_t>(place_step);
    constexpr size_t kBytes = kPer * sizeof(T);
    using Word = std::conditional_t<kBytes == 16, uint4, std::conditional_t<kBytes == 8, uint2, unsigned>>;
    if (place_step == 1 && kPer > 1 && reinterpret_cast<uintptr_t>(first) % kBytes == 0) {
      const Word word = *reinterpret_cast<const Word*>(first);
      std::memcpy(static_cast<void*>(elements + at), &word, kBytes);
    } else {
      for (int i = 0; i < kPer; ++i) elements[at + i] = first[i * static_cast<size_t>(place_step)];
    }
  }
}
template <class LayoutOf, class T>
SIMT_FOR_CALLER inline void store(const T* elements, T* to, unsigned line_step, unsigned place_step) {
  const int lane = static_cast<int>(simt::lane_id());
  constexpr int kPer = LayoutOf::per;
  for (int at = 0; at < LayoutOf::count; at += kPer) {
    T* first = to + LayoutOf::line(lane, at) * static_cast<size_t>(line_step) +
               LayoutOf::place(lane, at) * static_cast<size_t>(place_step);
    constexpr size_t kBytes = kPer * sizeof(T);
    using Word = std::conditional_t<kBytes == 16, uint4, std::conditional_t<kBytes == 8, uint2, unsigned>>;
    if (place_step == 1 && kPer > 1 && reinterpret_cast<uintptr_t>(first) % kBytes == 0) {
      Word word;
      std::memcpy(&word, static_cast<const void*>(elements + at), kBytes);
      *reinterpret_cast<Word*>(first) = word;
    } else {
      for (int i = 0; i < kPer; ++i) first[i * static_cast<size_t>(place_step)] = elements[at + i];
    }
  }
}

template <class T, class LayoutOf>
struct Elements {
  using layout = LayoutOf;
  using element_type = T;
  using storage_element_type = typename Element<T>::type;
  static constexpr int num_elements = LayoutOf::count, num_storage_elements = num_elements;
  storage_element_type x[num_elements];
};

}  // namespace details

template <class Use, int m, int n, int k, class T, class Order = void>
struct fragment;

template <int m, int n, int k, class T, class Order>
struct fragment<matrix_a, m, n, k, T, Order>
    : details::Elements<T, details::Layout<m, k, details::packed<typename details::Element<T>::type>>> {
  static_assert(details::has_shape<T, m, n, k>, "the tensor cores have no matrices of this shape and type");
};
template <int m, int n, int k, class T, class Order>
struct fragment<matrix_b, m, n, k, T, Order>
    : details::Elements<T, details::Layout<n, k, details::packed<typename details::Element<T>::type>>> {
  static_assert(details::has_shape<T, m, n, k>, "the tensor cores have no matrices of this shape and type");
};
template <int m, int n, int k, class T>
struct fragment<accumulator, m, n, k, T, void> : details::Elements<T, details::Layout<m, n, 2>> {
  static_assert(details::has_sums<m, n, k>, "the tensor cores have no matrices of this shape");
};

template <class Use, int m, int n, int k, class T, class Order>
void fill_fragment(fragment<Use, m, n, k, T, Order>& f, const typename details::Element<T>::type& value) {
  for (auto& x : f.x) x = value;
}

template <int m, int n, int k, class T, class Order>
SIMT_FOR_CALLER inline void load_matrix_sync(fragment<matrix_a, m, n, k, T, Order>& f,
                                             const typename details::Element<T>::type* from, unsigned ldm) {
  constexpr bool kRows = std::is_same_v<Order, row_major>;
  details::load<typename fragment<matrix_a, m, n, k, T, Order>::layout>(f.x, from, kRows ? ldm : 1, kRows ? 1 : ldm);
}
template <int m, int n, int k, class T, class Order>
SIMT_FOR_CALLER inline void load_matrix_sync(fragment<matrix_b, m, n, k, T, Order>& f,
                                             const typename details::Element<T>::type* from, unsigned ldm) {
  constexpr bool kColumns = std::is_same_v<Order, col_major>;
  details::load<typename fragment<matrix_b, m, n, k, T, Order>::layout>(f.x, from, kColumns ? ldm : 1,
                                                                        kColumns ? 1 : ldm);
}
template <int m, int n, int k, class T>
SIMT_FOR_CALLER inline void load_matrix_sync(fragment<accumulator, m, n, k, T>& f, const T* from, unsigned ldm,
                                             layout_t layout) {
  const bool rows = layout == mem_row_major;
  details::load<typename fragment<accumulator, m, n, k, T>::layout>(f.x, from, rows ? ldm : 1, rows ? 1 : ldm);
}
template <int m, int n, int k, class T>
SIMT_FOR_CALLER inline void store_matrix_sync(T* to, const fragment<accumulator, m, n, k, T>& f, unsigned ldm,
                                              layout_t layout) {
  const bool rows = layout == mem_row_major;
  details::store<typename fragment<accumulator, m, n, k, T>::layout>(f.x, to, rows ? ldm : 1, rows ? 1 : ldm);
}

namespace details {

template <class D, class A, class B, class C>
struct Product {
  D* d;
  const A* a;
  const B* b;
  const C* c;
};

inline float as_factor(float x, precision::tf32*) {
  return simt::bit_cast<float>(simt::bit_cast<uint32_t>(x) & 0xffffe000u);
}
template <class T>
auto as_factor(T x, T*) {
  if constexpr (is_16_bit<T>)
    return static_cast<float>(x);
  else if constexpr (is_byte<T>)
    return static_cast<int>(x);
  else
    return x;
}

template <int m, int n, int k, class T, class D, class A, class B, class C>
void combine(simt::Exchange& exchange, uint32_t) {
  using Factor = decltype(as_factor(A{}.x[0], static_cast<T*>(nullptr)));
  const auto product = [&](int lane) { return *reinterpret_cast<Product<D, A, B, C>*>(exchange.value[lane]); };
  Factor a[m][k], b[n][k];
  for (int lane = 0; lane < 32; ++lane) {
    const auto own = product(lane);
    for (int i = 0; i < A::num_elements; ++i)
      a[A::layout::line(lane, i)][A::layout::place(lane, i)] = as_factor(own.a->x[i], static_cast<T*>(nullptr));
    for (int i = 0; i < B::num_elements; ++i)
      b[B::layout::line(lane, i)][B::layout::place(lane, i)] = as_factor(own.b->x[i], static_cast<T*>(nullptr));
  }
  for (int lane = 0; lane < 32; ++lane) {
    const auto own = product(lane);
    for (int i = 0; i < D::num_elements; ++i) {
      Factor sum = static_cast<Factor>(own.c->x[i]);
      const Factor *row = a[D::layout::line(lane, i)], *column = b[D::layout::place(lane, i)];
      for (int j = 0; j < k; ++j) sum += row[j] * column[j];
      own.d->x[i] = static_cast<typename D::storage_element_type>(sum);
    }
  }
}

}  // namespace details

template <int m, int n, int k, class T, class OrderA, class OrderB, class Sum, class Start>
void mma_sync(fragment<accumulator, m, n, k, Sum>& d, const fragment<matrix_a, m, n, k, T, OrderA>& a,
              const fragment<matrix_b, m, n, k, T, OrderB>& b, const fragment<accumulator, m, n, k, Start>& c,
              bool = false, simt::Site site = simt::Site::here()) {
  constexpr bool kHalves =
      std::is_same_v<T, __half> && (std::is_same_v<Sum, __half> || std::is_same_v<Sum, float>)&&(
                                       std::is_same_v<Start, __half> || std::is_same_v<Start, float>);
  using Only =
      std::conditional_t<details::is_byte<T>, int, std::conditional_t<std::is_same_v<T, double>, double, float>>;
  static_assert(kHalves || (std::is_same_v<Sum, Only> && std::is_same_v<Start, Only>),
                "the tensor cores do not sum products of this type in that type");
  using A = std::decay_t<decltype(a)>;
  using B = std::decay_t<decltype(b)>;
  using C = std::decay_t<decltype(c)>;
  using D = std::decay_t<decltype(d)>;
  details::Product<D, A, B, C> own{&d, &a, &b, &c};
  static constexpr simt::Collective kWhat{&details::combine<m, n, k, T, D, A, B, C>, simt::analysis::Operation::other,
                                          "mma_sync"};
  simt::warp_collective(kWhat, ~0u, reinterpret_cast<uint64_t>(&own), 0, site);
}

// A float with the precision that the tensor cores use.
inline float __float_to_tf32(float x) {
  return simt::bit_cast<float>(static_cast<uint32_t>(simt::Format<10, 8>::round(x)) << 13);
}

}  // namespace wmma
}  // namespace nvcuda
