// Sums and the like, in the order of the ranks.
#include <cmath>
#include <cstring>
#include <type_traits>

#include "nccl_parts.h"

namespace simt::nccl {

namespace {

// The type in which elements are added up, and the way there and back.
template <class T>
struct Number {
  using Wide = std::conditional_t<std::is_arithmetic_v<T>, T, float>;
  static Wide wide(T x) { return static_cast<Wide>(x); }
  static T narrow(Wide x) { return static_cast<T>(x); }
};
template <>
struct Number<__half> {
  using Wide = float;
  static float wide(__half x) { return __half2float(x); }
  static __half narrow(float x) { return __float2half_rn(x); }
};
template <>
struct Number<__nv_bfloat16> {
  using Wide = float;
  static float wide(__nv_bfloat16 x) { return __bfloat162float(x); }
  static __nv_bfloat16 narrow(float x) { return __float2bfloat16_rn(x); }
};

template <class T>
T plus(T a, T b) {
  if constexpr (std::is_integral_v<T>)  // wraps around
    return static_cast<T>(static_cast<std::make_unsigned_t<T>>(a) + static_cast<std::make_unsigned_t<T>>(b));
  else
    return a + b;
}
template <class T>
T times(T a, T b) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  else
    return a * b;
}
template <class T>
T greater(T a, T b) {
  if constexpr (std::is_integral_v<T>)
    return a < b ? b : a;
  else
    return std::fmax(a, b);  // of a NaN and a number, the number
}
template <class T>
T less(T a, T b) {
  if constexpr (std::is_integral_v<T>)
    return b < a ? b : a;
  else
    return std::fmin(a, b);
}

template <class T>
T element(const char* array, size_t i) {
  T value;
  std::memcpy(&value, array + i * sizeof(T), sizeof(T));
  return value;
}

template <class T>
void reduce_as(const std::vector<Reduction>& reductions, const std::vector<const char*>& sources, size_t count,
               char* results) {
  using N = Number<T>;
  using Wide = typename N::Wide;
  const ncclRedOp_t op = reductions[0].op;
  const size_t ranks = sources.size();
  const bool has_factors = op == ncclNumOps || (op == ncclAvg && !std::is_integral_v<Wide>);
  std::vector<Wide> factors(ranks, Wide(1));
  for (size_t r = 0; r < ranks && has_factors; ++r)
    factors[r] = op == ncclAvg ? static_cast<Wide>(Wide(1) / static_cast<Wide>(ranks))
                               : N::wide(element<T>(reinterpret_cast<const char*>(reductions[r].scalar), 0));
  for (size_t i = 0; i < count; ++i) {
    Wide sum{};
    for (size_t r = 0; r < ranks; ++r) {
      Wide x = N::wide(element<T>(sources[r], i));
      if (has_factors) x = times(x, factors[r]);
      if (r == 0)
        sum = x;
      else
        sum = op == ncclProd  ? times(sum, x)
              : op == ncclMax ? greater(sum, x)
              : op == ncclMin ? less(sum, x)
                              : plus(sum, x);
    }
    if constexpr (std::is_integral_v<Wide>)
      if (op == ncclAvg) sum = static_cast<Wide>(sum / static_cast<Wide>(ranks));
    const T result = N::narrow(sum);
    std::memcpy(results + i * sizeof(T), &result, sizeof(T));
  }
}

struct Type {
  const char* name;
  size_t size;
  decltype(&reduce_as<int8_t>) reduce;
};
constexpr Type kTypes[] = {
    {"ncclInt8", 1, reduce_as<int8_t>},
    {"ncclUint8", 1, reduce_as<uint8_t>},
    {"ncclInt32", 4, reduce_as<int32_t>},
    {"ncclUint32", 4, reduce_as<uint32_t>},
    {"ncclInt64", 8, reduce_as<int64_t>},
    {"ncclUint64", 8, reduce_as<uint64_t>},
    {"ncclFloat16", 2, reduce_as<__half>},
    {"ncclFloat32", 4, reduce_as<float>},
    {"ncclFloat64", 8, reduce_as<double>},
    {"ncclBfloat16", 2, reduce_as<__nv_bfloat16>},
    {"ncclFloat8e4m3", 1, reduce_as<__nv_fp8_e4m3>},
    {"ncclFloat8e5m2", 1, reduce_as<__nv_fp8_e5m2>},
};
static_assert(sizeof kTypes / sizeof kTypes[0] == ncclNumTypes);

}  // namespace

size_t size_of(ncclDataType_t type) { return type >= 0 && type < ncclNumTypes ? kTypes[type].size : 0; }
const char* name_of(ncclDataType_t type) { return kTypes[type].name; }

void reduce(const std::vector<Reduction>& reductions, const std::vector<const char*>& sources, size_t count,
            char* results) {
  kTypes[reductions[0].type].reduce(reductions, sources, count, results);
}

}  // namespace simt::nccl
