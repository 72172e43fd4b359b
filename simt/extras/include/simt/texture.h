// Arrays, texture objects and what kernels read through them: one to three dimensions and layers. A texture knows its
// place in memory, so that a fetch is a call of the runtime. The analysis counts fetches, but not their sectors.
#pragma once
#include <type_traits>

#include "cuda_runtime_api.h"
#include "simt/core.h"

// --- Channels ------------------------------------------------------------------------------------------------------
inline cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w, cudaChannelFormatKind kind) {
  return {x, y, z, w, kind};
}

namespace simt {

template <class T, class = void>
struct Channels {  // a number
  using type = T;
  static constexpr int count = std::is_void_v<T> ? 0 : 1;
};
template <class T>
struct Channels<T, std::void_t<decltype(T::x)>> {
  using type = std::decay_t<decltype(T::x)>;
  static constexpr int count = sizeof(T) / sizeof(type);
};
template <class T>
constexpr bool can_be_fetched = sizeof(typename Channels<T>::type) <= 4 &&
                                (Channels<T>::count == 1 || Channels<T>::count == 2 || Channels<T>::count == 4);

struct Texel {
  bool is_float;
  float f[4];
  int i[4];
};
// The texel at the place, or between texels, of a texture with so many dimensions. A layer of -1 is none.
Texel fetch(cudaTextureObject_t object, int dimensions, const float* at, int layer, const char* function, Site site);
Texel fetch_linear(cudaTextureObject_t object, int at, Site site);
[[noreturn]] void wrong_texel(bool is_float, const char* function, Site site);

template <class T>
T texel_as(const Texel& texel, const char* function, Site site) {
  using Number = typename Channels<T>::type;
  constexpr int kCount = Channels<T>::count;
  static_assert(can_be_fetched<T> && std::is_arithmetic_v<Number>,
                "textures have numbers of at most 32 bits, and 1, 2 or 4 of them");
  if (std::is_floating_point_v<Number> != texel.is_float) wrong_texel(texel.is_float, function, site);
  const auto number = [&](int k) { return texel.is_float ? Number(texel.f[k]) : Number(texel.i[k]); };
  if constexpr (std::is_arithmetic_v<T>) {
    return number(0);
  } else {
    T result;
    result.x = number(0);
    if constexpr (kCount >= 2) result.y = number(1);
    if constexpr (kCount == 4) result.z = number(2), result.w = number(3);
    return result;
  }
}

}  // namespace simt

template <class T>
cudaChannelFormatDesc cudaCreateChannelDesc() {
  using Number = typename simt::Channels<T>::type;
  constexpr int kCount = simt::Channels<T>::count, kBits = static_cast<int>(8 * sizeof(Number));
  const cudaChannelFormatKind kind = !std::is_arithmetic_v<Number> || std::is_floating_point_v<Number>
                                         ? cudaChannelFormatKindFloat
                                     : std::is_signed_v<Number> ? cudaChannelFormatKindSigned
                                                                : cudaChannelFormatKindUnsigned;
  return {kBits, kCount > 1 ? kBits : 0, kCount > 2 ? kBits : 0, kCount > 3 ? kBits : 0, kind};
}

// --- In kernels ----------------------------------------------------------------------------------------------------
template <class T>
T tex1Dfetch(cudaTextureObject_t object, int x, simt::Site site = simt::Site::here()) {
  return simt::texel_as<T>(simt::fetch_linear(object, x, site), "tex1Dfetch", site);
}

#define SIMT_TEXTURE(name, dimensions, layer, places, ...)                                              \
  template <class T>                                                                                    \
  T name(cudaTextureObject_t object, __VA_ARGS__, simt::Site site = simt::Site::here()) {               \
    const float at[] = {SIMT_EXPAND places};                                                            \
    return simt::texel_as<T>(simt::fetch(object, dimensions, at, layer, #name, site), #name, site);     \
  }                                                                                                     \
  template <class T>                                                                                    \
  void name(T* result, cudaTextureObject_t object, __VA_ARGS__, simt::Site site = simt::Site::here()) { \
    const float at[] = {SIMT_EXPAND places};                                                            \
    *result = simt::texel_as<T>(simt::fetch(object, dimensions, at, layer, #name, site), #name, site);  \
  }
#define SIMT_EXPAND(...) __VA_ARGS__
SIMT_TEXTURE(tex1D, 1, -1, (x), float x)
SIMT_TEXTURE(tex2D, 2, -1, (x, y), float x, float y)
SIMT_TEXTURE(tex3D, 3, -1, (x, y, z), float x, float y, float z)
SIMT_TEXTURE(tex1DLayered, 1, layer < 0 ? 0 : layer, (x), float x, int layer)
SIMT_TEXTURE(tex2DLayered, 2, layer < 0 ? 0 : layer, (x, y), float x, float y, int layer)
#undef SIMT_TEXTURE
#undef SIMT_EXPAND
