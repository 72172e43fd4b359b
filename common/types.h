// The types of elements, and their values on the host.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

namespace ladder {

enum class Type { float32, float16, bfloat16, uint32, e4m3, int8 };

constexpr int64_t size_of(Type type) {
  if (type == Type::e4m3 || type == Type::int8) return 1;
  return type == Type::float16 || type == Type::bfloat16 ? 2 : 4;
}
constexpr const char* name_of(Type type) {
  constexpr const char* names[] = {"float32", "float16", "bfloat16", "uint32", "e4m3", "int8"};
  return names[static_cast<int>(type)];
}

template <class To, class From>
To bits_as(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  std::memcpy(&to, &from, sizeof to);
  return to;
}

// One struct per type: how an element is stored, and its value as a double and back. from() rounds to nearest, ties to
// even. It uses neither CUDA's headers, which are under test, nor _Float16, which g++ 12 does not have on Arm.
struct Float32 {
  using Stored = float;
  static double value(float stored) { return static_cast<double>(stored); }
  static float from(float number) { return number; }
};
struct Float16 {
  using Stored = uint16_t;
  // As a float's bits with the exponent put right, which for subnormal numbers a multiplication does; g++ calls a
  // function for each conversion to double.
  static double value(uint16_t stored) {
    const uint32_t magnitude = stored & 0x7fffu, word = magnitude << 13;
    const float number = magnitude < 0x7c00u ? bits_as<float>(word) * 0x1p112f : bits_as<float>(word | 0x7f800000u);
    return static_cast<double>(stored >> 15 ? -number : number);
  }
  // A float's bits with the exponent put right and half a step added. The smallest numbers are rounded by an addition
  // whose result has their unit in its last place.
  static uint16_t from(float number) {
    const uint32_t word = bits_as<uint32_t>(number), sign = word >> 16 & 0x8000u, magnitude = word & 0x7fffffffu;
    uint32_t bits;
    if (magnitude > 0x7f800000u)  // NaN
      bits = 0x7e00u | (magnitude >> 13 & 0x3ffu);
    else if (magnitude >= 0x477ff000u)  // 65520 and more
      bits = 0x7c00u;
    else if (magnitude < 0x38800000u)  // 2^-14
      bits = bits_as<uint32_t>(bits_as<float>(magnitude) + 0.5f) - 0x3f000000u;
    else
      bits = (magnitude - 0x38000000u + 0xfffu + (magnitude >> 13 & 1u)) >> 13;
    return static_cast<uint16_t>(sign | bits);
  }
};
struct Bfloat16 {
  using Stored = uint16_t;
  static double value(uint16_t stored) {
    return static_cast<double>(bits_as<float>(static_cast<uint32_t>(stored) << 16));
  }
  static uint16_t from(float number) {
    if (std::isnan(number)) return 0x7fff;
    const uint32_t word = bits_as<uint32_t>(number);
    return static_cast<uint16_t>((word + 0x7fffu + (word >> 16 & 1u)) >> 16);
  }
};
struct Uint32 {
  using Stored = uint32_t;
  static double value(uint32_t stored) { return static_cast<double>(stored); }
  static uint32_t from(double number) { return static_cast<uint32_t>(number); }
};

// Float8 with 4 bits of exponent and 3 of fraction: up to 448, and no infinity. What is too large becomes the largest.
struct E4m3 {
  using Stored = uint8_t;
  static double value(uint8_t stored) {
    const uint32_t magnitude = stored & 0x7fu;
    if (magnitude == 0x7f) return std::nan("");
    const float number = bits_as<float>(magnitude << 20) * 0x1p120f;
    return static_cast<double>(stored >> 7 ? -number : number);
  }
  // As Float16::from().
  static uint8_t from(float number) {
    const uint32_t word = bits_as<uint32_t>(number), sign = word >> 24 & 0x80u, magnitude = word & 0x7fffffffu;
    uint32_t bits;
    if (magnitude > 0x7f800000u)  // NaN
      return 0x7f;
    if (magnitude >= 0x43e00000u)  // 448
      bits = 0x7e;
    else if (magnitude < 0x3c800000u)  // 2^-6
      bits = bits_as<uint32_t>(bits_as<float>(magnitude) + 0x1p14f) - 0x46800000u;
    else
      bits = (magnitude - 0x3c000000u + 0x7ffffu + (magnitude >> 20 & 1u)) >> 20;
    return static_cast<uint8_t>(sign | bits);
  }
};
struct Int8 {
  using Stored = int8_t;
  static double value(int8_t stored) { return stored; }
  static int8_t from(float number) {
    return static_cast<int8_t>(std::nearbyint(std::min(std::max(static_cast<double>(number), -128.0), 127.0)));
  }
};

// Calls body with the type's struct.
template <class Body>
auto with(Type type, Body body) {
  switch (type) {
    case Type::float16:
      return body(Float16());
    case Type::bfloat16:
      return body(Bfloat16());
    case Type::uint32:
      return body(Uint32());
    case Type::e4m3:
      return body(E4m3());
    case Type::int8:
      return body(Int8());
    default:
      return body(Float32());
  }
}

inline double element(Type type, const void* elements, int64_t index) {
  return with(type, [=](auto t) { return t.value(static_cast<const typename decltype(t)::Stored*>(elements)[index]); });
}
inline void set_element(Type type, void* elements, int64_t index, float value) {
  with(type, [=](auto t) { static_cast<typename decltype(t)::Stored*>(elements)[index] = t.from(value); });
}
inline float rounded(Type type, float value) {
  return with(type, [=](auto t) { return static_cast<float>(t.value(t.from(value))); });
}

// Words of 32 bits that fill memory; for a type of 16 or 8 bits, each half or byte is an element. All of floats are
// signalling NaNs: every result computed from one is NaN, but never this NaN again. (The NaN of e4m3 that kernels write
// has no sign; of int8, it is the number that a symmetric scale never gives.)
constexpr uint32_t poison_of(Type type) {  // an element that no kernel has written
  if (type == Type::e4m3) return 0xffffffffu;
  if (type == Type::int8) return 0x80808080u;
  return type == Type::float16 ? 0x7dbe7dbeu : type == Type::bfloat16 ? 0x7fad7fadu : 0x7fadbeefu;
}
// An element that belongs to no tensor and that no kernel may write. Its value differs between inputs and outputs, so
// that a copy from past the end of one to past the end of the other shows.
constexpr uint32_t guard_of(Type type, bool is_read) {
  if (size_of(type) == 1) return is_read ? 0xa5a5a5a5u : 0x5a5a5a5au;
  const uint32_t word = type == Type::float16 ? 0x7d5a7d5au : type == Type::bfloat16 ? 0x7fa57fa5u : 0x7fa5c3e1u;
  return is_read ? word ^ 0x00010001u : word;
}
inline bool is_poison(Type type, const void* elements, int64_t index) {
  const uint32_t word = poison_of(type);
  return std::memcmp(static_cast<const char*>(elements) + index * size_of(type), &word, size_of(type)) == 0;
}

}  // namespace ladder
