// Texture objects against the programming guide's formulas: formats, address modes, filters, layers, and what is
// refused.
#include "testing.h"

#include <algorithm>
#include <cmath>

struct Texture {
  cudaTextureObject_t object = 0;
  cudaArray_t array = nullptr;
  cudaError_t error = cudaSuccess;

  Texture(const cudaResourceDesc& resource, const cudaTextureDesc& how) {
    error = cudaCreateTextureObject(&object, &resource, &how, nullptr);
  }
  ~Texture() {
    cudaDestroyTextureObject(object);
    cudaFreeArray(array);
  }
  Texture(const Texture&) = delete;
};

cudaTextureDesc described(cudaTextureAddressMode mode, cudaTextureFilterMode filter, bool normalized,
                          cudaTextureReadMode read = cudaReadModeElementType) {
  cudaTextureDesc how = {};
  std::fill(how.addressMode, how.addressMode + 3, mode);
  how.filterMode = filter;
  how.readMode = read;
  how.normalizedCoords = normalized;
  how.borderColor[0] = -7;
  return how;
}

template <class T>
cudaArray_t array_of(const std::vector<T>& texels, size_t width, size_t height = 0) {
  const cudaChannelFormatDesc channels = cudaCreateChannelDesc<T>();
  cudaArray_t array = nullptr;
  REQUIRE(cudaMallocArray(&array, &channels, width, height) == cudaSuccess);
  const size_t row = width * sizeof(T);
  REQUIRE(cudaMemcpy2DToArray(array, 0, 0, texels.data(), row, row, std::max<size_t>(height, 1),
                              cudaMemcpyHostToDevice) == cudaSuccess);
  return array;
}
cudaResourceDesc resource_of(cudaArray_t array) {
  cudaResourceDesc resource = {};
  resource.resType = cudaResourceTypeArray;
  resource.res.array.array = array;
  return resource;
}

// --- One dimension: every mode

__global__ void fetch1(cudaTextureObject_t texture, const float* at, float* out) {
  out[threadIdx.x] = tex1D<float>(texture, at[threadIdx.x]);
}

float texel(const std::vector<float>& texels, int i, cudaTextureAddressMode mode, bool normalized) {
  const int n = int(texels.size());
  if (mode == cudaAddressModeBorder && (i < 0 || i >= n)) return -7;
  if (mode == cudaAddressModeWrap && normalized) return texels[size_t(((i % n) + n) % n)];
  if (mode == cudaAddressModeMirror && normalized) {
    const int k = ((i % (2 * n)) + 2 * n) % (2 * n);
    return texels[size_t(k < n ? k : 2 * n - 1 - k)];
  }
  return texels[size_t(std::clamp(i, 0, n - 1))];
}

TEST_CASE("one dimension in each mode") {
  const std::vector<float> texels = {1, 5, 2, 10, 4};
  std::vector<float> at;
  for (float x = -11; x <= 16; x += 0.375f) at.push_back(x);
  for (bool normalized : {false, true})
    for (auto filter : {cudaFilterModePoint, cudaFilterModeLinear})
      for (auto mode : {cudaAddressModeWrap, cudaAddressModeClamp, cudaAddressModeMirror, cudaAddressModeBorder}) {
        std::vector<float> given = at;
        for (float& x : given) x /= normalized ? 5.f : 1.f;
        const cudaArray_t array = array_of(texels, 5);
        Texture texture(resource_of(array), described(mode, filter, normalized));
        texture.array = array;
        REQUIRE(texture.error == cudaSuccess);
        const Device<float> device_at(given);
        Device<float> out(given.size());
        fetch1<<<1, unsigned(given.size())>>>(texture.object, device_at.data, out.data);
        const auto got = out.host();
        int wrong = 0;
        for (size_t i = 0; i < given.size(); ++i) {
          const float x = normalized ? given[i] * 5 : given[i];
          float expected = texel(texels, int(std::floor(x)), mode, normalized);
          if (filter == cudaFilterModeLinear) {
            const int low = int(std::floor(x - 0.5f));
            const float weight = std::floor((x - 0.5f - float(low)) * 256 + 0.5f) / 256;
            expected =
                (1 - weight) * texel(texels, low, mode, normalized) + weight * texel(texels, low + 1, mode, normalized);
          }
          wrong += std::fabs(got[i] - expected) > 1e-5f;
        }
        CAPTURE(normalized);
        CAPTURE(int(filter));
        CAPTURE(int(mode));
        CHECK(wrong == 0);
      }
}

// --- Two dimensions, layers, three dimensions

__global__ void fetch2(cudaTextureObject_t texture, float4* out, float x, float y) {
  out[0] = tex2D<float4>(texture, x, y);
}
TEST_CASE("bytes of an image are read as floats, and mixed between four texels") {
  const std::vector<uchar4> texels = {{0, 255, 51, 1}, {255, 0, 51, 1}, {102, 0, 51, 1}, {0, 0, 51, 1}};
  const cudaArray_t array = array_of(texels, 2, 2);
  Texture texture(resource_of(array),
                  described(cudaAddressModeClamp, cudaFilterModeLinear, true, cudaReadModeNormalizedFloat));
  texture.array = array;
  REQUIRE(texture.error == cudaSuccess);
  Device<float4> out(1);
  fetch2<<<1, 1>>>(texture.object, out.data, 0.375f, 0.5f);  // a quarter of the way, and half of it
  const float4 got = out.host()[0];
  CHECK(got.x == doctest::Approx((0.75 * (0 + 0.4) + 0.25 * (1 + 0)) / 2));
  CHECK(got.y == doctest::Approx(0.375));
  CHECK(got.z == doctest::Approx(0.2));
  CHECK(got.w == doctest::Approx(1 / 255.));
}

__global__ void fetch_layer(cudaTextureObject_t texture, int* out, int layer) {
  int2 both = tex2DLayered<int2>(texture, float(threadIdx.x) + 0.5f, float(threadIdx.y) + 0.5f, layer);
  out[threadIdx.y * blockDim.x + threadIdx.x] = both.x + both.y;
}
__global__ void fetch3(cudaTextureObject_t texture, float* out) { out[0] = tex3D<float>(texture, 1, 1, 1); }
TEST_CASE("layers and volumes") {
  const cudaExtent extent = make_cudaExtent(3, 2, 4);
  std::vector<int2> texels(24);
  for (int i = 0; i < 24; ++i) texels[size_t(i)] = {i, 100};
  const cudaChannelFormatDesc channels = cudaCreateChannelDesc<int2>();
  cudaArray_t array;
  REQUIRE(cudaMalloc3DArray(&array, &channels, extent, cudaArrayLayered) == cudaSuccess);
  cudaMemcpy3DParms copy = {};
  copy.srcPtr = make_cudaPitchedPtr(texels.data(), 3 * sizeof(int2), 3, 2);
  copy.dstArray = array;
  copy.extent = extent;
  copy.kind = cudaMemcpyHostToDevice;
  REQUIRE(cudaMemcpy3D(&copy) == cudaSuccess);
  Texture texture(resource_of(array), described(cudaAddressModeClamp, cudaFilterModePoint, false));
  texture.array = array;
  REQUIRE(texture.error == cudaSuccess);
  Device<int> out(6);
  for (int layer : {0, 3, 9}) {
    fetch_layer<<<1, dim3(3, 2)>>>(texture.object, out.data, layer);
    const auto got = out.host();
    for (int i = 0; i < 6; ++i) CHECK(got[size_t(i)] == std::min(layer, 3) * 6 + i + 100);
  }

  std::vector<float> cube(8);
  for (size_t i = 0; i < 8; ++i) cube[i] = float(i * i);
  const cudaChannelFormatDesc number = cudaCreateChannelDesc<float>();
  cudaArray_t volume;
  REQUIRE(cudaMalloc3DArray(&volume, &number, make_cudaExtent(2, 2, 2)) == cudaSuccess);
  copy.srcPtr = make_cudaPitchedPtr(cube.data(), 2 * sizeof(float), 2, 2);
  copy.dstArray = volume;
  copy.extent = make_cudaExtent(2, 2, 2);
  REQUIRE(cudaMemcpy3D(&copy) == cudaSuccess);
  Texture of_volume(resource_of(volume), described(cudaAddressModeClamp, cudaFilterModeLinear, false));
  of_volume.array = volume;
  Device<float> middle(1);
  fetch3<<<1, 1>>>(of_volume.object, middle.data);
  CHECK(middle.host()[0] == doctest::Approx(140 / 8.));
}

// --- Linear and pitched memory

__global__ void fetch_all(cudaTextureObject_t texture, unsigned* out, int count) {
  for (int i = -1; i <= count; ++i) out[i + 1] = tex1Dfetch<unsigned char>(texture, i);
}
__global__ void fetch_pitched(cudaTextureObject_t texture, float* out) {
  out[threadIdx.x] = tex2D<float>(texture, float(threadIdx.x), 2);
}
TEST_CASE("linear and pitched memory") {
  const std::vector<unsigned char> bytes = {9, 8, 7};
  const Device<unsigned char> data(bytes);
  cudaResourceDesc resource = {};
  resource.resType = cudaResourceTypeLinear;
  resource.res.linear = {data.data, cudaCreateChannelDesc<unsigned char>(), 3};
  Texture texture(resource, described(cudaAddressModeClamp, cudaFilterModePoint, false));
  REQUIRE(texture.error == cudaSuccess);
  Device<unsigned> out(5);
  fetch_all<<<1, 1>>>(texture.object, out.data, 3);
  CHECK(out.host() == std::vector<unsigned>{0, 9, 8, 7, 0});

  float* rows;
  size_t pitch;
  REQUIRE(cudaMallocPitch(&rows, &pitch, 5 * sizeof(float), 3) == cudaSuccess);
  const std::vector<float> host = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14};
  REQUIRE(cudaMemcpy2D(rows, pitch, host.data(), 20, 20, 3, cudaMemcpyHostToDevice) == cudaSuccess);
  resource = {};
  resource.resType = cudaResourceTypePitch2D;
  resource.res.pitch2D = {rows, cudaCreateChannelDesc<float>(), 5, 3, pitch};
  Texture of_rows(resource, described(cudaAddressModeBorder, cudaFilterModePoint, false));
  REQUIRE(of_rows.error == cudaSuccess);
  Device<float> last(7);
  fetch_pitched<<<1, 7>>>(of_rows.object, last.data);
  CHECK(last.host() == std::vector<float>{10, 11, 12, 13, 14, -7, -7});
  cudaFree(rows);
}

// --- What is refused

__global__ void fetch_wrong(cudaTextureObject_t texture, float* out) { out[0] = tex2D<float>(texture, 0, 0); }
constexpr int kWrongLine = __LINE__ - 1;

TEST_CASE("what textures do not do") {
  const cudaArray_t integers = array_of(std::vector<int>(4), 2, 2);
  Texture filtered(resource_of(integers), described(cudaAddressModeClamp, cudaFilterModeLinear, false));
  CHECK(filtered.error == cudaErrorInvalidFilterSetting);
  Texture normalized(resource_of(integers),
                     described(cudaAddressModeClamp, cudaFilterModePoint, false, cudaReadModeNormalizedFloat));
  CHECK(normalized.error == cudaErrorInvalidNormSetting);
  cudaChannelFormatDesc three = cudaCreateChannelDesc(8, 8, 8, 0, cudaChannelFormatKindUnsigned);
  cudaArray_t array;
  CHECK(cudaMallocArray(&array, &three, 4, 4) == cudaErrorInvalidChannelDescriptor);
  CHECK(cudaFreeArray(reinterpret_cast<cudaArray_t>(&three)) == cudaErrorInvalidValue);
  CHECK(cudaMemcpy2DToArray(integers, 0, 1, &three, 8, 8, 2, cudaMemcpyHostToDevice) == cudaErrorInvalidValue);
  cudaGetLastError();

  Texture texture(resource_of(integers), described(cudaAddressModeClamp, cudaFilterModePoint, false));
  Device<float> out(1);
  const auto of_integers = fault_of(cudaErrorInvalidTexture, [&] { fetch_wrong<<<1, 1>>>(texture.object, out.data); });
  CHECK(contains(of_integers, "asks for floats of a texture that gives integers"));
  CHECK(contains(of_integers, at_line(__FILE__, kWrongLine)));
}

TEST_CASE("no texture object") {
  Device<float> out(1);
  const auto none = fault_of(cudaErrorInvalidTexture, [&] { fetch_wrong<<<1, 1>>>(0, out.data); });
  CHECK(contains(none, "tex2D was given no texture object"));
}
