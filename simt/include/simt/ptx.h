// What inline PTX becomes: ptx.py writes a call of these for each instruction. A register is a word of 64 bits, of
// which the instruction's type takes the lowest.
#pragma once
#include <cmath>
#include <cstdint>
#include <cstring>

#include "cuda/atomic"
#include "cuda_pipeline_primitives.h"
#include "simt/device.h"
#include "simt/integer.h"
#include "simt/mbarrier.h"
#include "simt/rounding.h"
#include "simt/tensor_cores.h"

namespace simt::ptx {

[[noreturn]] inline void refuse_multimem(Site site = Site::here()) {
  device_fault(cudaErrorNotSupported, "multimem is NVLink multicast, which the CPU device does not have", site);
}

// --- Types that C++ lacks ------------------------------------------------------------------------------------------
template <class Format>
struct Small {  // a 16-bit floating-point number
  uint16_t code;
  Small() = default;
  explicit Small(float x) : code(static_cast<uint16_t>(Format::round(x))) {}
  operator float() const { return widen_small<Format>(code); }
};
using f16 = Small<Half>;
using bf16 = Small<Bfloat16>;
template <class T>
struct Pair {
  T x, y;
};
using f16x2 = Pair<f16>;
using bf16x2 = Pair<bf16>;
struct tf32 {  // a float of which the last 13 bits do not count
  float value;
};

template <class T>
constexpr bool is_small = false;
template <class Format>
constexpr bool is_small<Small<Format>> = true;
template <class T>
constexpr bool is_pair = false;
template <class T>
constexpr bool is_pair<Pair<T>> = true;

// --- Registers -----------------------------------------------------------------------------------------------------
template <class T>
T get(uint64_t word) {
  T value;
  std::memcpy(static_cast<void*>(&value), &word, sizeof(T));
  return value;
}
template <>
inline bool get<bool>(uint64_t word) {
  return word != 0;
}
template <class T>
uint64_t bits(T value) {
  uint64_t word = 0;
  std::memcpy(&word, &value, sizeof(T));
  return word;
}
inline uint64_t low(uint64_t word, unsigned count) { return count < 64 ? word & ((uint64_t{1} << count) - 1) : word; }

template <char constraint, class T>
uint64_t in(const T& value) {
  constexpr unsigned kBits = constraint == 'h' ? 16 : constraint == 'r' || constraint == 'f' ? 32 : 64;
  if constexpr (std::is_pointer_v<T>)
    return reinterpret_cast<uint64_t>(value);
  else if constexpr (std::is_integral_v<T> || std::is_enum_v<T>)
    return low(static_cast<uint64_t>(value), kBits);
  else
    return bits(value);
}
template <char constraint, class T>
void out(T& target, uint64_t word) {
  if constexpr (std::is_pointer_v<T>)
    target = reinterpret_cast<T>(word);
  else if constexpr (std::is_integral_v<T>)
    target = static_cast<T>(word);
  else
    target = get<T>(word);
}

// --- Arithmetic ----------------------------------------------------------------------------------------------------
// Of a pair, for each half; of 16-bit numbers in float, which rounds once more and rightly.
template <class T, class Function, class... Words>
uint64_t apply(Function function, Words... words) {
  if constexpr (is_pair<T>) {
    using Half = decltype(T::x);
    return apply<Half>(function, (words & 0xffff)...) | apply<Half>(function, (words >> 16 & 0xffff)...) << 16;
  } else if constexpr (is_small<T>) {
    return bits(T(static_cast<float>(function(static_cast<float>(get<T>(words))...))));
  } else {
    return bits(static_cast<T>(function(get<T>(words)...)));
  }
}
#define SIMT_PTX_BINARY(name, expression)                             \
  template <class T>                                                  \
  uint64_t name(uint64_t a, uint64_t b) {                             \
    return apply<T>([](auto a, auto b) { return expression; }, a, b); \
  }
#define SIMT_PTX_UNARY(name, expression)                   \
  template <class T>                                       \
  uint64_t name(uint64_t a) {                              \
    return apply<T>([](auto a) { return expression; }, a); \
  }
SIMT_PTX_BINARY(add_, a + b)
SIMT_PTX_BINARY(sub_, a - b)
SIMT_PTX_BINARY(mul_, a* b)
SIMT_PTX_BINARY(div_, a / b)
SIMT_PTX_BINARY(rem_, a % b)
SIMT_PTX_BINARY(and_, a& b)
SIMT_PTX_BINARY(or_, a | b)
SIMT_PTX_BINARY(xor_, a ^ b)
SIMT_PTX_UNARY(neg_, -a)
SIMT_PTX_UNARY(abs_, a < 0 ? -a : a)
SIMT_PTX_UNARY(ex2_, std::exp2(a))
SIMT_PTX_UNARY(lg2_, std::log2(a))
SIMT_PTX_UNARY(rcp_, 1 / a)
SIMT_PTX_UNARY(rsqrt_, 1 / std::sqrt(a))
SIMT_PTX_UNARY(sqrt_, std::sqrt(a))
SIMT_PTX_UNARY(sin_, std::sin(a))
SIMT_PTX_UNARY(cos_, std::cos(a))
SIMT_PTX_UNARY(tanh_, std::tanh(a))
SIMT_PTX_UNARY(relu_, a > 0 ? a : decltype(a)(0))
SIMT_PTX_UNARY(sat_, a > 1 ? decltype(a)(1) : a > 0 ? a : decltype(a)(0))
#undef SIMT_PTX_BINARY
#undef SIMT_PTX_UNARY

template <class T>
uint64_t not_(uint64_t a) {
  if constexpr (std::is_same_v<T, bool>)
    return a == 0;
  else
    return bits(static_cast<T>(~get<T>(a)));
}
template <class T>
T smaller(T a, T b) {
  if constexpr (std::is_floating_point_v<T>)
    return std::fmin(a, b);
  else
    return b < a ? b : a;
}
template <class T>
T larger(T a, T b) {
  if constexpr (std::is_floating_point_v<T>)
    return std::fmax(a, b);
  else
    return a < b ? b : a;
}
template <class T>
uint64_t min_(uint64_t a, uint64_t b) {
  return apply<T>([](auto a, auto b) { return smaller(a, b); }, a, b);
}
template <class T>
uint64_t max_(uint64_t a, uint64_t b) {
  return apply<T>([](auto a, auto b) { return larger(a, b); }, a, b);
}
template <class T>
uint64_t fma_(uint64_t a, uint64_t b, uint64_t c) {
  if constexpr (is_small<T> || is_pair<T>)
    return apply<T>([](float a, float b, float c) { return fma_before_rounding(a, b, c); }, a, b, c);
  else if constexpr (std::is_floating_point_v<T>)
    return apply<T>([](T a, T b, T c) { return std::fma(a, b, c); }, a, b, c);
  else
    return apply<T>(
        [](T a, T b, T c) { return T(static_cast<uint64_t>(a) * static_cast<uint64_t>(b) + static_cast<uint64_t>(c)); },
        a, b, c);
}
// A shift by the width or more leaves nothing, or the sign.
template <class T>
uint64_t shl_(uint64_t a, uint64_t by) {
  const uint32_t n = static_cast<uint32_t>(by);
  return n < 8 * sizeof(T) ? low(a << n, 8 * sizeof(T)) : 0;
}
template <class T>
uint64_t shr_(uint64_t a, uint64_t by) {
  constexpr uint32_t kLast = 8 * sizeof(T) - 1;
  const uint32_t n = static_cast<uint32_t>(by);
  if (n > kLast && std::is_unsigned_v<T>) return 0;
  return bits(static_cast<T>(get<T>(a) >> (n > kLast ? kLast : n)));
}
template <class T>
uint64_t popc_(uint64_t a) {
  return static_cast<uint64_t>(__builtin_popcountll(low(a, 8 * sizeof(T))));
}
template <class T>
uint64_t clz_(uint64_t a) {
  return static_cast<uint64_t>(sizeof(T) == 4 ? __clz(static_cast<int>(a)) : __clzll(static_cast<long long>(a)));
}
template <class T>
uint64_t brev_(uint64_t a) {
  return sizeof(T) == 4 ? __brev(static_cast<unsigned>(a)) : __brevll(a);
}
template <class T>
using Wide = std::conditional_t<sizeof(T) == 2, std::conditional_t<std::is_signed_v<T>, int32_t, uint32_t>,
                                std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>>;
template <class T>
uint64_t mul_wide(uint64_t a, uint64_t b) {
  return bits(static_cast<Wide<T>>(static_cast<Wide<T>>(get<T>(a)) * static_cast<Wide<T>>(get<T>(b))));
}
template <class T>
uint64_t mul_hi(uint64_t a, uint64_t b) {
  using Whole = std::conditional_t<std::is_signed_v<T>, __int128, unsigned __int128>;
  return bits(static_cast<T>(static_cast<Whole>(get<T>(a)) * static_cast<Whole>(get<T>(b)) >> 8 * sizeof(T)));
}

inline uint64_t lop3(uint64_t a, uint64_t b, uint64_t c, uint64_t table) {
  uint64_t result = 0;
  for (unsigned k = 0; k < 8; ++k)
    if (table >> k & 1) result |= (k & 4 ? a : ~a) & (k & 2 ? b : ~b) & (k & 1 ? c : ~c);
  return low(result, 32);
}
inline uint64_t prmt(uint64_t a, uint64_t b, uint64_t selector) {
  return __byte_perm(static_cast<unsigned>(a), static_cast<unsigned>(b), static_cast<unsigned>(selector));
}
template <class T>
uint64_t bfe(uint64_t a, uint64_t position, uint64_t count) {
  constexpr unsigned kBits = 8 * sizeof(T);
  const unsigned at = static_cast<unsigned>(position & 0xff), length = static_cast<unsigned>(count & 0xff);
  if (length == 0) return 0;
  const unsigned last = at + length - 1 < kBits ? at + length - 1 : kBits - 1;
  const bool fill = std::is_signed_v<T> && (a >> last & 1);
  const uint64_t kept = at < kBits ? low(low(a, kBits) >> at, length) : 0;
  const unsigned known = at < kBits ? (length < kBits - at ? length : kBits - at) : 0;
  return low(fill ? kept | ~low(~uint64_t{0}, known) : kept, kBits);
}
template <class T>
uint64_t bfi(uint64_t from, uint64_t into, uint64_t position, uint64_t count) {
  constexpr unsigned kBits = 8 * sizeof(T);
  const unsigned at = static_cast<unsigned>(position & 0xff), length = static_cast<unsigned>(count & 0xff);
  if (at >= kBits) return low(into, kBits);
  const uint64_t mask = low(~uint64_t{0}, length) << at;
  return low((into & ~mask) | (from << at & mask), kBits);
}
template <bool left, bool clamp>
uint64_t shf(uint64_t a, uint64_t b, uint64_t by) {
  const unsigned x = static_cast<unsigned>(a), y = static_cast<unsigned>(b), n = static_cast<unsigned>(by);
  if constexpr (left) return clamp ? __funnelshift_lc(x, y, n) : __funnelshift_l(x, y, n);
  return clamp ? __funnelshift_rc(x, y, n) : __funnelshift_r(x, y, n);
}
template <class A, class B>
uint64_t dp4a(uint64_t a, uint64_t b, uint64_t c) {
  int64_t sum = get<int32_t>(c);
  for (int i = 0; i < 32; i += 8) sum += int64_t{get<A>(a >> i)} * get<B>(b >> i);
  return low(static_cast<uint64_t>(sum), 32);
}
template <class T>
uint64_t selp(uint64_t a, uint64_t b, uint64_t predicate) {
  return bits(get<T>(predicate ? a : b));
}

// --- Conversions ---------------------------------------------------------------------------------------------------
template <class To, class From, Round mode, bool whole>
uint64_t cvt(uint64_t word) {
  const From from = get<From>(word);
  if constexpr (std::is_same_v<To, tf32>) {
    return low(Format<10, 8>::round(static_cast<float>(from), mode) << 13, 32);
  } else if constexpr (std::is_integral_v<From> && std::is_integral_v<To>) {
    return bits(static_cast<To>(from));
  } else if constexpr (std::is_integral_v<To>) {
    using Real = std::conditional_t<std::is_same_v<From, double>, double, float>;
    return bits(to_integer<To>(static_cast<Real>(from), mode));
  } else if constexpr (whole) {
    const double x = static_cast<double>(from);
    const double rounded = mode == Round::nearest ? std::nearbyint(x)
                           : mode == Round::zero  ? std::trunc(x)
                           : mode == Round::up    ? std::ceil(x)
                                                  : std::floor(x);
    return bits(To(static_cast<float>(rounded)));
  } else {
    using Code = std::conditional_t<
        std::is_same_v<To, f16>, Half,
        std::conditional_t<std::is_same_v<To, bf16>, Bfloat16,
                           std::conditional_t<std::is_same_v<To, float>, Format<23, 8>, Format<52, 11>>>>;
    if constexpr (is_small<From>)
      return Code::round(static_cast<float>(from), mode);
    else
      return Code::round(from, mode);
  }
}
// Two floats to a pair, the first one above.
template <class To, class From, Round mode, bool whole>
uint64_t cvt(uint64_t above, uint64_t below) {
  using Half = decltype(To::x);
  return cvt<Half, From, mode, false>(above) << 16 | cvt<Half, From, mode, false>(below);
}

// --- Memory --------------------------------------------------------------------------------------------------------
inline void* generic(uint64_t base, uint64_t offset) { return reinterpret_cast<void*>(base + offset); }
// Programs keep the lower half of a shared address: the upper one is that of the block's own shared memory.
inline void* shared(uint64_t base, uint64_t offset) {
  uint64_t address = base + offset;
  if (base >> 32 == 0) {
    const uint64_t own = reinterpret_cast<uint64_t>(dynamic_shared_address());
    const int32_t distance = static_cast<int32_t>(static_cast<uint32_t>(base + offset) - static_cast<uint32_t>(own));
    address = own + static_cast<uint64_t>(static_cast<int64_t>(distance));
  }
  return reinterpret_cast<void*>(address);
}
inline uint64_t mapa(void* address, uint64_t rank) {
  return reinterpret_cast<uint64_t>(map_shared_rank(address, static_cast<uint32_t>(rank)));
}

template <size_t bytes>
struct AccessOf;
template <>
struct AccessOf<1> {
  using type = uint8_t;
};
template <>
struct AccessOf<2> {
  using type = uint16_t;
};
template <>
struct AccessOf<4> {
  using type = uint32_t;
};
template <>
struct AccessOf<8> {
  using type = uint2;
};
template <>
struct AccessOf<16> {
  using type = uint4;
};
template <unsigned count>
struct Words {
  uint64_t item[count];
};

template <class T>
uint64_t extended(T value) {  // a narrow integer that is loaded fills its register
  if constexpr (std::is_integral_v<T> && std::is_signed_v<T>)
    return static_cast<uint64_t>(static_cast<int64_t>(value));
  else
    return bits(value);
}
template <class T, unsigned count>
SIMT_FOR_CALLER inline Words<count> load(const void* address) {
  using Access = typename AccessOf<sizeof(T) * count>::type;
  const Access loaded = *static_cast<const Access*>(address);
  T parts[count];
  std::memcpy(static_cast<void*>(parts), &loaded, sizeof parts);
  Words<count> words;
  for (unsigned k = 0; k < count; ++k) words.item[k] = extended(parts[k]);
  return words;
}
template <class T, unsigned count>
SIMT_FOR_CALLER inline void store(void* address, const uint64_t* words) {
  using Access = typename AccessOf<sizeof(T) * count>::type;
  T parts[count];
  for (unsigned k = 0; k < count; ++k) parts[k] = get<T>(words[k]);
  Access stored;
  std::memcpy(static_cast<void*>(&stored), parts, sizeof parts);
  *static_cast<Access*>(address) = stored;
}

template <class T>
using Bits = typename WordOfSize<sizeof(T)>::type;
template <class T, Reach scope>
auto atomic_at(void* address) {
  constexpr auto kScope = scope == Reach::block    ? cuda::thread_scope_block
                          : scope == Reach::device ? cuda::thread_scope_device
                                                   : cuda::thread_scope_system;
  return cuda::atomic_ref<Bits<T>, kScope>(*static_cast<Bits<T>*>(address));
}
template <class T, Reach scope>
uint64_t load_acquire(void* address) {
  return extended(get<T>(atomic_at<T, scope>(address).load(cuda::std::memory_order_acquire)));
}
template <class T, Reach scope>
uint64_t load_relaxed(void* address) {
  return extended(get<T>(atomic_at<T, scope>(address).load(cuda::std::memory_order_relaxed)));
}
template <class T, Reach>
SIMT_FOR_CALLER inline uint64_t load_volatile(void* address) {
  return extended(get<T>(*static_cast<const volatile Bits<T>*>(address)));
}
template <class T, Reach scope>
void store_release(void* address, uint64_t word) {
  atomic_at<T, scope>(address).store(static_cast<Bits<T>>(word), cuda::std::memory_order_release);
}
template <class T, Reach scope>
void store_relaxed(void* address, uint64_t word) {
  atomic_at<T, scope>(address).store(static_cast<Bits<T>>(word), cuda::std::memory_order_relaxed);
}
template <class T, Reach>
SIMT_FOR_CALLER inline void store_volatile(void* address, uint64_t word) {
  *static_cast<volatile Bits<T>*>(address) = static_cast<Bits<T>>(word);
}

inline void cp_async(void* target, const void* source, uint64_t size, uint64_t kept, Site site = Site::here()) {
  __pipeline_memcpy_async(target, source, size, kept < size ? size - kept : 0, site);
}

// --- Barriers in memory and the copies that they count
// -----------------------------------------------------------------
inline Mbarrier& mbarrier(void* address, Site site = Site::here()) {
  if (!is_shared(address)) device_fault(cudaErrorInvalidAddressSpace, "an mbarrier is not in shared memory", site);
  if (reinterpret_cast<uintptr_t>(address) % sizeof(Mbarrier) != 0)
    device_fault(cudaErrorMisalignedAddress, "an mbarrier does not begin at a multiple of 8 bytes", site);
  return *static_cast<Mbarrier*>(address);
}
inline void bulk_to_shared(void* target, const void* source, uint64_t size, void* barrier, Site site = Site::here()) {
  check_alignment(target, source, size, 16, site);
  if (!is_shared(target))
    device_fault(cudaErrorInvalidAddressSpace, "the target of cp.async.bulk is not in shared memory", site);
  mbarrier(barrier, site).defer(target, source, size, true);
}
// The copy is done at once, so a missing wait does not show.
SIMT_OWN inline void bulk_to_global(void* target, const void* source, uint64_t size, Site site = Site::here()) {
  check_alignment(target, source, size, 16, site);
  if (!is_shared(source))
    device_fault(cudaErrorInvalidAddressSpace, "the source of cp.async.bulk is not in shared memory", site);
  note_copy(target, source, size, 0, true);
  std::memcpy(target, source, size);
  note_landing(target, size, nullptr);
}

// --- Lanes ---------------------------------------------------------------------------------------------------------
// The manual's pseudo-code: `clamp_and_segment` holds the last lane to read from and the lanes' segments.
template <Shuffle kind>
uint64_t shfl(uint64_t value, uint64_t operand, uint64_t clamp_and_segment, uint64_t mask, bool& in_range,
              Site site = Site::here()) {
  const int lane = static_cast<int>(lane_id()), b = static_cast<int>(operand & 31);
  const int segment = static_cast<int>(clamp_and_segment >> 8 & 31), clamp = static_cast<int>(clamp_and_segment & 31);
  const int last = (lane & segment) | (clamp & ~segment), first = lane & segment;
  int source = lane;
  switch (kind) {
    case Shuffle::up:
      source = lane - b, in_range = source >= last;
      break;
    case Shuffle::down:
      source = lane + b, in_range = source <= last;
      break;
    case Shuffle::butterfly:
      source = lane ^ b, in_range = source <= last;
      break;
    case Shuffle::index:
      source = first | (b & ~segment), in_range = source <= last;
      break;
  }
  if (!in_range) source = lane;
  static constexpr Collective kWhat = shuffle_called<Shuffle::index>("shfl.sync");
  return shuffle(kWhat, static_cast<unsigned>(mask), static_cast<uint32_t>(value), static_cast<unsigned>(source), 32,
                 site);
}

// --- Tensor cores --------------------------------------------------------------------------------------------------
template <int rows, int depth, class D, class A, class B, int nd, int na, int nb, int nc>
void mma(uint64_t (&d)[nd], const uint64_t (&a)[na], const uint64_t (&b)[nb], const uint64_t (&c)[nc],
         Site site = Site::here()) {
  using Sum = std::conditional_t<is_small<D>, float, D>;
  constexpr int kSums = rows * 8 / 32;
  static_assert(na * 32 * (sizeof(A) == 8 ? 1 : 4 / static_cast<int>(sizeof(A))) == rows * depth,
                "registers of the first factor");
  static_assert(nb * 32 * (sizeof(B) == 8 ? 1 : 4 / static_cast<int>(sizeof(B))) == 8 * depth,
                "registers of the second factor");
  static_assert(nd == (is_small<D> ? kSums / 2 : kSums) && nc == nd, "registers of the sums");
  Sum sums[kSums];
  for (int k = 0; k < kSums; ++k)
    sums[k] = is_small<D> ? static_cast<Sum>(static_cast<float>(get<f16>(c[k / 2] >> k % 2 * 16)))
                          : get<Sum>(c[is_small<D> ? k / 2 : k]);
  multiply<rows, depth, A, B, Sum>(a, b, sums, site);
  for (auto& word : d) word = 0;
  for (int k = 0; k < kSums; ++k) {
    if constexpr (is_small<D>)
      d[k / 2] |= bits(D(sums[k])) << k % 2 * 16;
    else
      d[k] = bits(sums[k]);
  }
}

// Lanes 0 to 7 hold the addresses of the first matrix's rows, 8 to 15 those of the second's, and so on. Each row is 16
// bytes. A lane gets two neighbours of a row, or of a column, of each matrix.
template <int count>
struct Rows {
  uint4 own;
  uint32_t parts[count];
};
inline uint32_t* words_of(uint4& row) { return reinterpret_cast<uint32_t*>(&row); }

template <int count, bool transposed>
void combine_ldmatrix(Exchange& exchange, uint32_t mask) {
  const auto lane_of = [&](unsigned lane) -> Rows<count>& {
    return *reinterpret_cast<Rows<count>*>(exchange.value[lane]);
  };
  for_each_lane(mask, [&](unsigned lane) {
    for (unsigned m = 0; m < count; ++m) {
      uint32_t& part = lane_of(lane).parts[m];
      if (!transposed) {
        part = words_of(lane_of(8 * m + lane / 4).own)[lane % 4];
      } else {
        part = 0;
        for (unsigned k = 0; k < 2; ++k) {
          const uint32_t word = words_of(lane_of(8 * m + lane % 4 * 2 + k).own)[lane / 8];
          part |= (word >> lane / 4 % 2 * 16 & 0xffff) << 16 * k;
        }
      }
    }
  });
}
template <int count, bool transposed>
SIMT_FOR_CALLER inline void ldmatrix(uint32_t (&d)[count], const void* address, Site site = Site::here()) {
  Rows<count> rows = {};
  if (lane_id() < 8 * count) rows.own = *static_cast<const uint4*>(address);
  static constexpr Collective kWhat{&combine_ldmatrix<count, transposed>, analysis::Operation::other, "ldmatrix"};
  warp_collective(kWhat, ~0u, reinterpret_cast<uint64_t>(&rows), 0, site);
  for (int m = 0; m < count; ++m) d[m] = rows.parts[m];
}

template <int count, bool transposed>
void combine_stmatrix(Exchange& exchange, uint32_t mask) {
  const auto lane_of = [&](unsigned lane) -> Rows<count>& {
    return *reinterpret_cast<Rows<count>*>(exchange.value[lane]);
  };
  for_each_lane(mask, [&](unsigned lane) {
    for (unsigned m = 0; m < count; ++m) {
      const uint32_t part = lane_of(lane).parts[m];
      for (unsigned k = 0; k < 2; ++k) {
        const unsigned row = transposed ? lane % 4 * 2 + k : lane / 4,
                       column = transposed ? lane / 4 : lane % 4 * 2 + k;
        uint32_t& word = words_of(lane_of(8 * m + row).own)[column / 2];
        const unsigned shift = column % 2 * 16;
        word = (word & ~(0xffffu << shift)) | (part >> 16 * k & 0xffff) << shift;
      }
    }
  });
}
template <int count, bool transposed>
SIMT_FOR_CALLER inline void stmatrix(void* address, const uint64_t (&a)[count], Site site = Site::here()) {
  Rows<count> rows = {};
  for (int m = 0; m < count; ++m) rows.parts[m] = static_cast<uint32_t>(a[m]);
  static constexpr Collective kWhat{&combine_stmatrix<count, transposed>, analysis::Operation::other, "stmatrix"};
  warp_collective(kWhat, ~0u, reinterpret_cast<uint64_t>(&rows), 0, site);
  if (lane_id() < 8 * count) *static_cast<uint4*>(address) = rows.own;
}

}  // namespace simt::ptx
