// CUDA arrays and texture objects. Addressing and filtering are those of the programming guide's appendix on texture
// fetching, with its 8 fractional bits in the weights of a linear filter.
#include "simt/texture.h"

#include <cmath>
#include <cstring>
#include <set>
#include <string>

#include "memory.h"
#include "scheduler_parts.h"
#include "simt/rounding.h"
#include "state.h"

using namespace simt;

struct cudaArray {
  char* data;
  cudaChannelFormatDesc channels;
  cudaExtent given;                      // with zeros for dimensions that there are none of
  size_t width, height, depth, element;  // at least one; bytes
  unsigned flags;
};

namespace simt {  // what stands outside of it is the student's, for the analysis
namespace {

struct Texture {
  static constexpr uint64_t kKnown = 0x7465787475726521;
  uint64_t known = kKnown;
  cudaResourceDesc resource;
  cudaTextureDesc how;
  cudaChannelFormatDesc channels;
  const char* data;
  size_t size[3];  // in texels; of a layered one, the last is the number of its layers
  size_t pitch, slice, element;
  int dimensions;
  bool layered;
};

std::set<const cudaArray*>& arrays() {
  static auto* arrays = new std::set<const cudaArray*>;
  return *arrays;
}
std::set<Texture*>& textures() {
  static auto* textures = new std::set<Texture*>;
  return *textures;
}

int count_of(const cudaChannelFormatDesc& c) { return (c.x > 0) + (c.y > 0) + (c.z > 0) + (c.w > 0); }

// One, two or four channels alike, of 8, 16 or 32 bits; none else is a texture's.
bool is_texels(const cudaChannelFormatDesc& c) {
  const int bits[] = {c.x, c.y, c.z, c.w}, count = count_of(c);
  if ((c.x != 8 && c.x != 16 && c.x != 32) || count == 3 || c.f < 0 || c.f > cudaChannelFormatKindFloat) return false;
  if (c.f == cudaChannelFormatKindFloat && c.x == 8) return false;
  for (int k = 0; k < 4; ++k)
    if (bits[k] != (k < count ? c.x : 0)) return false;
  return true;
}
size_t bytes_of(const cudaChannelFormatDesc& c) { return static_cast<size_t>(count_of(c) * c.x / 8); }

cudaError_t make_array(cudaArray_t* array, const cudaChannelFormatDesc* channels, cudaExtent extent, unsigned flags,
                       const char* made_by) {
  if (!array || !channels || !extent.width) return cudaErrorInvalidValue;
  if (flags & cudaArrayCubemap) return not_supported(std::string(made_by) + ": the CPU device has no cube maps");
  if (flags & cudaArraySurfaceLoadStore)
    return not_supported(std::string(made_by) + ": the CPU device has no surfaces, and so no arrays for them");
  if (!is_texels(*channels)) return cudaErrorInvalidChannelDescriptor;
  if ((flags & cudaArrayLayered) && !extent.depth) return cudaErrorInvalidValue;
  const auto at_least_one = [](size_t n) { return n ? n : 1; };
  auto* made = new cudaArray{nullptr,
                             *channels,
                             extent,
                             extent.width,
                             at_least_one(extent.height),
                             at_least_one(extent.depth),
                             bytes_of(*channels),
                             flags};
  void* data = nullptr;
  const cudaError_t error =
      allocate(&data, made->width * made->height * made->depth * made->element, MemoryKind::device, made_by);
  if (error != cudaSuccess) {
    delete made;
    return error;
  }
  made->data = static_cast<char*>(data);
  arrays().insert(made);
  *array = made;
  return cudaSuccess;
}

bool is_array(cudaArray_const_t array) { return arrays().count(array) != 0; }

cudaError_t from_array(Texture& t, cudaArray_t array) {
  if (!is_array(array)) return cudaErrorInvalidResourceHandle;
  t.channels = array->channels;
  t.data = array->data;
  t.size[0] = array->width, t.size[1] = array->height, t.size[2] = array->depth;
  t.element = array->element;
  t.pitch = array->width * array->element;
  t.slice = t.pitch * array->height;
  t.layered = (array->flags & cudaArrayLayered) != 0;
  t.dimensions = array->given.height == 0 ? 1 : array->given.depth == 0 || t.layered ? 2 : 3;
  return cudaSuccess;
}

cudaError_t make_texture(Texture& t) {
  const auto& res = t.resource.res;
  switch (t.resource.resType) {
    case cudaResourceTypeArray: {
      const cudaError_t error = from_array(t, res.array.array);
      if (error != cudaSuccess) return error;
      break;
    }
    case cudaResourceTypeLinear:
      if (!is_texels(res.linear.desc)) return cudaErrorInvalidChannelDescriptor;
      t.channels = res.linear.desc;
      t.data = static_cast<char*>(res.linear.devPtr);
      t.element = bytes_of(t.channels);
      t.size[0] = res.linear.sizeInBytes / t.element;
      t.dimensions = 0;  // only tex1Dfetch reads it
      if (!stands_on(Side::device, t.data, res.linear.sizeInBytes)) return cudaErrorInvalidValue;
      break;
    case cudaResourceTypePitch2D:
      if (!is_texels(res.pitch2D.desc)) return cudaErrorInvalidChannelDescriptor;
      t.channels = res.pitch2D.desc;
      t.data = static_cast<char*>(res.pitch2D.devPtr);
      t.element = bytes_of(t.channels);
      t.size[0] = res.pitch2D.width, t.size[1] = res.pitch2D.height;
      t.pitch = res.pitch2D.pitchInBytes;
      t.dimensions = 2;
      if (!t.size[0] || !t.size[1] || t.pitch < t.size[0] * t.element || t.pitch % 32 != 0)
        return cudaErrorInvalidValue;
      if (!stands_on(Side::device, t.data, t.pitch * (t.size[1] - 1) + t.size[0] * t.element))
        return cudaErrorInvalidValue;
      break;
    case cudaResourceTypeMipmappedArray:
      return not_supported("cudaCreateTextureObject: the CPU device has no mipmaps");
    default:
      return cudaErrorInvalidValue;
  }
  if (reinterpret_cast<uintptr_t>(t.data) % 256 != 0) return cudaErrorInvalidValue;
  const bool is_number = t.channels.f == cudaChannelFormatKindFloat;
  if (t.how.readMode == cudaReadModeNormalizedFloat && !is_number && t.channels.x == 32)
    return cudaErrorInvalidNormSetting;
  if (t.how.filterMode == cudaFilterModeLinear && !is_number && t.how.readMode != cudaReadModeNormalizedFloat)
    return cudaErrorInvalidFilterSetting;
  if (t.how.sRGB) return not_supported("cudaCreateTextureObject: the CPU device does not convert from sRGB");
  return cudaSuccess;
}

Texture& known(cudaTextureObject_t object, const char* function, Site site) {
  auto* texture = reinterpret_cast<Texture*>(object);
  if (!texture || object % alignof(Texture) != 0 || texture->known != Texture::kKnown)
    device_fault(cudaErrorInvalidTexture, (std::string(function) + " was given no texture object").c_str(), site);
  return *texture;
}

// The texel that stands for the one at i, or -1 for the border. Wrapping and mirroring need normalized coordinates.
int64_t addressed(const Texture& t, int axis, int64_t i) {
  const int64_t size = static_cast<int64_t>(t.size[axis]);
  if (i >= 0 && i < size) return i;
  switch (t.how.addressMode[axis]) {
    case cudaAddressModeBorder:
      return -1;
    case cudaAddressModeWrap:
      if (t.how.normalizedCoords) return (i % size + size) % size;
      break;
    case cudaAddressModeMirror:
      if (t.how.normalizedCoords) {
        const int64_t twice = (i % (2 * size) + 2 * size) % (2 * size);
        return twice < size ? twice : 2 * size - 1 - twice;
      }
      break;
    case cudaAddressModeClamp:
      break;
  }
  return i < 0 ? 0 : size - 1;
}

Texel read(const Texture& t, const char* at) {
  Texel texel = {};
  const bool normalized = t.how.readMode == cudaReadModeNormalizedFloat;
  texel.is_float = normalized || t.channels.f == cudaChannelFormatKindFloat;
  for (int k = 0; k < count_of(t.channels); ++k) {
    uint32_t bits = 0;
    std::memcpy(&bits, at + k * t.channels.x / 8, static_cast<size_t>(t.channels.x / 8));
    if (t.channels.f == cudaChannelFormatKindFloat) {
      using Half = Format<10, 5>;
      texel.f[k] = bit_cast<float>(bits);
      if (t.channels.x == 16) {
        const uint64_t magnitude = bits & 0x7fff, infinity = Half::kInfinity;
        texel.f[k] = magnitude > infinity    ? NAN
                     : magnitude == infinity ? INFINITY
                                             : bit_cast<float>(static_cast<uint32_t>(magnitude << 13)) * 0x1p112f;
        if (bits & 0x8000) texel.f[k] = -texel.f[k];
      }
    } else {
      const int unused = 32 - t.channels.x;
      const bool is_signed = t.channels.f == cudaChannelFormatKindSigned;
      texel.i[k] = is_signed ? static_cast<int>(bits << unused) >> unused : static_cast<int>(bits);
      if (normalized) {
        const float largest = static_cast<float>((1u << (t.channels.x - is_signed)) - 1);
        texel.f[k] = std::fmax(static_cast<float>(texel.i[k]) / largest, -1.f);
      }
    }
  }
  return texel;
}

Texel texel_at(const Texture& t, const int64_t (&place)[3]) {
  if (place[0] >= 0 && place[1] >= 0 && place[2] >= 0)
    return read(t, t.data + static_cast<size_t>(place[2]) * t.slice + static_cast<size_t>(place[1]) * t.pitch +
                       static_cast<size_t>(place[0]) * t.element);
  Texel border = {};
  border.is_float = t.how.readMode == cudaReadModeNormalizedFloat || t.channels.f == cudaChannelFormatKindFloat;
  for (int k = 0; k < count_of(t.channels); ++k) {
    border.f[k] = t.how.borderColor[k];
    std::memcpy(&border.i[k], &t.how.borderColor[k], sizeof border.i[k]);
  }
  return border;
}

}  // namespace
}  // namespace simt

// --- In kernels ----------------------------------------------------------------------------------------------------

namespace simt {

Texel fetch(cudaTextureObject_t object, int dimensions, const float* at, int layer, const char* function, Site site) {
  SIMT_ENTER(current(function), texture_read);
  const Texture& t = known(object, function, site);
  if (t.dimensions != dimensions || t.layered != (layer >= 0))
    device_fault(cudaErrorInvalidTexture,
                 (std::string(function) + " reads a texture of " +
                  (t.dimensions == 0 ? "linear memory, which only tex1Dfetch can"
                                     : std::to_string(t.dimensions) + " dimensions" +
                                           (t.layered ? " with layers" : " without layers")))
                     .c_str(),
                 site);
  int64_t place[3] = {0, 0, 0}, low[3];
  float weight[3];
  if (t.layered) place[2] = std::min<int64_t>(layer, static_cast<int64_t>(t.size[2]) - 1);
  const bool linear = t.how.filterMode == cudaFilterModeLinear;
  for (int axis = 0; axis < dimensions; ++axis) {
    float x = at[axis] * (t.how.normalizedCoords ? static_cast<float>(t.size[axis]) : 1.f) - (linear ? 0.5f : 0.f);
    if (!(x > -0x1p30f)) x = -0x1p30f;  // NaN too
    if (x > 0x1p30f) x = 0x1p30f;
    low[axis] = static_cast<int64_t>(std::floor(x));
    weight[axis] = std::floor((x - std::floor(x)) * 256 + 0.5f) / 256;
  }
  if (!linear) {
    for (int axis = 0; axis < dimensions; ++axis) place[axis] = addressed(t, axis, low[axis]);
    return texel_at(t, place);
  }
  Texel sum = {};
  sum.is_float = true;
  for (int corner = 0; corner < 1 << dimensions; ++corner) {
    float part = 1;
    for (int axis = 0; axis < dimensions; ++axis) {
      const int upper = corner >> axis & 1;
      place[axis] = addressed(t, axis, low[axis] + upper);
      part *= upper ? weight[axis] : 1 - weight[axis];
    }
    const Texel texel = texel_at(t, place);
    for (int k = 0; k < 4; ++k)
      if (part > 0) sum.f[k] += part * texel.f[k];
  }
  return sum;
}

Texel fetch_linear(cudaTextureObject_t object, int at, Site site) {
  SIMT_ENTER(current("tex1Dfetch"), texture_read);
  const Texture& t = known(object, "tex1Dfetch", site);
  if (t.dimensions != 0)
    device_fault(cudaErrorInvalidTexture, "tex1Dfetch reads linear memory; this texture is of an array", site);
  if (at < 0 || static_cast<size_t>(at) >= t.size[0]) {
    Texel none = {};
    none.is_float = t.how.readMode == cudaReadModeNormalizedFloat || t.channels.f == cudaChannelFormatKindFloat;
    return none;
  }
  return read(t, t.data + static_cast<size_t>(at) * t.element);
}

void wrong_texel(bool is_float, const char* function, Site site) {
  device_fault(cudaErrorInvalidTexture,
               (std::string(function) + (is_float ? " asks for integers of a texture that gives floats"
                                                  : " asks for floats of a texture that gives integers; create it with "
                                                    "cudaReadModeNormalizedFloat, or ask for integers"))
                   .c_str(),
               site);
}

namespace {

bool find_this_array(cudaArray_const_t array, cudaPitchedPtr& place, size_t& element) {
  if (!is_array(array)) return false;
  element = array->element;
  place = {array->data, array->width * element, array->width, array->height};
  return true;
}

void forget_all() {
  for (const cudaArray* array : arrays()) delete array;
  arrays().clear();
  for (Texture* texture : textures()) {
    texture->known = 0;
    delete texture;
  }
  textures().clear();
}

const bool are_known = at_device_reset(forget_all) && (find_array = find_this_array);

}  // namespace

}  // namespace simt

// --- Arrays --------------------------------------------------------------------------------------------------------

cudaError_t cudaMallocArray(cudaArray_t* array, const cudaChannelFormatDesc* desc, size_t width, size_t height,
                            unsigned int flags) {
  return api([&] {
    const cudaError_t error = check_unsafe_call();
    return error != cudaSuccess ? error : make_array(array, desc, {width, height, 0}, flags, "cudaMallocArray");
  });
}

cudaError_t cudaMalloc3DArray(cudaArray_t* array, const cudaChannelFormatDesc* desc, cudaExtent extent,
                              unsigned int flags) {
  return api([&] {
    const cudaError_t error = check_unsafe_call();
    return error != cudaSuccess ? error : make_array(array, desc, extent, flags, "cudaMalloc3DArray");
  });
}

cudaError_t cudaFreeArray(cudaArray_t array) {
  return api([&] {
    if (!array) return cudaSuccess;
    if (!is_array(array)) return cudaErrorInvalidValue;
    arrays().erase(array);
    release(reinterpret_cast<uintptr_t>(array->data));
    delete array;
    return cudaSuccess;
  });
}

cudaError_t cudaArrayGetInfo(cudaChannelFormatDesc* desc, cudaExtent* extent, unsigned int* flags, cudaArray_t array) {
  return api([&] {
    if (!is_array(array)) return cudaErrorInvalidResourceHandle;
    if (desc) *desc = array->channels;
    if (extent) *extent = array->given;
    if (flags) *flags = array->flags;
    return cudaSuccess;
  });
}

cudaError_t cudaGetChannelDesc(cudaChannelFormatDesc* desc, cudaArray_const_t array) {
  return desc ? cudaArrayGetInfo(desc, nullptr, nullptr, const_cast<cudaArray_t>(array))
              : record(cudaErrorInvalidValue);
}

// --- Copies between memory and an array of one or two dimensions ---------------------------------------------------

namespace {

// The address of a row's byte in an array, and the array's pitch.
cudaError_t find_place(cudaArray_const_t array, size_t x, size_t y, size_t width, size_t height,
                       cudaPitchedPtr& place) {
  size_t element;
  std::lock_guard<std::recursive_mutex> lock(api_mutex());
  if (!find_array(array, place, element)) return record(cudaErrorInvalidResourceHandle);
  if (x + width > place.pitch || y + height > place.ysize) return record(cudaErrorInvalidValue);
  place.ptr = static_cast<char*>(place.ptr) + y * place.pitch + x;
  return cudaSuccess;
}

}  // namespace

cudaError_t cudaMemcpy2DToArray(cudaArray_t dst, size_t x, size_t y, const void* src, size_t pitch, size_t width,
                                size_t height, cudaMemcpyKind kind) {
  cudaPitchedPtr to;
  const cudaError_t error = find_place(dst, x, y, width, height, to);
  return error != cudaSuccess ? error : cudaMemcpy2D(to.ptr, to.pitch, src, pitch, width, height, kind);
}

cudaError_t cudaMemcpy2DToArrayAsync(cudaArray_t dst, size_t x, size_t y, const void* src, size_t pitch, size_t width,
                                     size_t height, cudaMemcpyKind kind, cudaStream_t stream) {
  cudaPitchedPtr to;
  const cudaError_t error = find_place(dst, x, y, width, height, to);
  return error != cudaSuccess ? error : cudaMemcpy2DAsync(to.ptr, to.pitch, src, pitch, width, height, kind, stream);
}

cudaError_t cudaMemcpy2DFromArray(void* dst, size_t pitch, cudaArray_const_t src, size_t x, size_t y, size_t width,
                                  size_t height, cudaMemcpyKind kind) {
  cudaPitchedPtr from;
  const cudaError_t error = find_place(src, x, y, width, height, from);
  return error != cudaSuccess ? error : cudaMemcpy2D(dst, pitch, from.ptr, from.pitch, width, height, kind);
}

cudaError_t cudaMemcpyToArray(cudaArray_t dst, size_t x, size_t y, const void* src, size_t count, cudaMemcpyKind kind) {
  cudaPitchedPtr to;
  const cudaError_t error = find_place(dst, x, y, 0, 1, to);
  return error != cudaSuccess ? error : cudaMemcpy(to.ptr, src, count, kind);
}

cudaError_t cudaMemcpyFromArray(void* dst, cudaArray_const_t src, size_t x, size_t y, size_t count,
                                cudaMemcpyKind kind) {
  cudaPitchedPtr from;
  const cudaError_t error = find_place(src, x, y, 0, 1, from);
  return error != cudaSuccess ? error : cudaMemcpy(dst, from.ptr, count, kind);
}

// --- Texture objects -----------------------------------------------------------------------------------------------

cudaError_t cudaCreateTextureObject(cudaTextureObject_t* object, const cudaResourceDesc* resource,
                                    const cudaTextureDesc* how, const cudaResourceViewDesc* view) {
  return api([&] {
    if (!object || !resource || !how) return cudaErrorInvalidValue;
    if (view) return not_supported("cudaCreateTextureObject: the CPU device has no views of resources");
    auto* made = new Texture{};
    made->resource = *resource;
    made->how = *how;
    const cudaError_t error = make_texture(*made);
    if (error != cudaSuccess) {
      delete made;
      return error;
    }
    textures().insert(made);
    *object = reinterpret_cast<cudaTextureObject_t>(made);
    return cudaSuccess;
  });
}

namespace {
Texture* find_texture(cudaTextureObject_t object) {
  auto* texture = reinterpret_cast<Texture*>(object);
  return textures().count(texture) ? texture : nullptr;
}
}  // namespace

cudaError_t cudaDestroyTextureObject(cudaTextureObject_t object) {
  return api([&] {
    if (!object) return cudaSuccess;
    Texture* texture = find_texture(object);
    if (!texture) return cudaErrorInvalidValue;
    textures().erase(texture);
    texture->known = 0;
    delete texture;
    return cudaSuccess;
  });
}

cudaError_t cudaGetTextureObjectResourceDesc(cudaResourceDesc* resource, cudaTextureObject_t object) {
  return api([&] {
    const Texture* texture = find_texture(object);
    if (!texture || !resource) return cudaErrorInvalidValue;
    *resource = texture->resource;
    return cudaSuccess;
  });
}

cudaError_t cudaGetTextureObjectTextureDesc(cudaTextureDesc* how, cudaTextureObject_t object) {
  return api([&] {
    const Texture* texture = find_texture(object);
    if (!texture || !how) return cudaErrorInvalidValue;
    *how = texture->how;
    return cudaSuccess;
  });
}
