// Every way to declare dynamic shared memory: all names stand for the same bytes.
#include <cstdint>
#include "check.h"

#define DYNAMIC(type, name) extern __shared__ __align__(16) type name[]

extern __shared__ float pool[];
namespace inside {
extern __shared__ int pool_of_ints[];
}

__device__ float from_function() {
  extern __shared__ float words[];
  return words[1];
}
template <typename T>
__device__ T* typed_pool() {
  extern __shared__ unsigned char raw[];
  return reinterpret_cast<T*>(raw);
}
template <typename T>
struct SharedMemory {
  __device__ operator T*() const {
    extern __shared__ int __smem[];
    return (T*)__smem;
  }
};
template <typename T>
__global__ void forms(T* out) {
  extern __shared__ T typed[];
  extern __shared__ __align__(128) unsigned char bytes[];
  extern __align__(16) __shared__ int ints[];
  __shared__ extern float float_first[];
  extern __shared__ volatile float as_volatile[];
  extern __shared__ alignas(1024) char very_aligned[];
  extern __shared__ T rows[][4];
  extern __shared__ float4 vectors[], other_vectors[];
  extern __shared__ struct Header { T a, b; } header;
  DYNAMIC(double, from_macro);
  for (int i = 0; i < 8; ++i) typed[i] = T(i + 1);
  bool same = (void*)bytes == (void*)typed && (void*)ints == (void*)typed && (void*)float_first == (void*)typed &&
              (void*)as_volatile == (void*)typed && (void*)rows == (void*)typed && (void*)vectors == (void*)typed &&
              (void*)other_vectors == (void*)typed && (void*)&header == (void*)typed &&
              (void*)from_macro == (void*)typed && (void*)pool == (void*)typed && (void*)very_aligned == (void*)typed;
  out[0] = T(same);
  out[1] = T(reinterpret_cast<std::uintptr_t>(very_aligned) % 1024);
  out[2] = rows[1][0];
  out[3] = header.b;
  out[4] = T(from_function());
  out[5] = typed_pool<T>()[3];
  T* converted = SharedMemory<T>();
  out[6] = converted[4];
  T* half = typed + 4;
  out[7] = half[0];
}
__global__ void by_namespace(float* out) {
  pool[threadIdx.x] = 2.0f * threadIdx.x;
  __syncthreads();
  out[threadIdx.x] = pool[blockDim.x - 1 - threadIdx.x];
}
namespace inside {
__global__ void own(int* out) {
  pool_of_ints[0] = 9;
  out[0] = pool_of_ints[0];
}
}  // namespace inside

int main() {
  Cell<float> out;
  forms<float><<<1, 1, 4096>>>(out.device);
  const float expected[] = {1, 0, 5, 2, 2, 4, 5, 5};
  for (int i = 0; i < 8; ++i) CHECK(out.get(i) == expected[i]);
  by_namespace<<<1, 8, 8 * sizeof(float)>>>(out.device);
  for (int i = 0; i < 8; ++i) CHECK(out.get(i) == 2.0f * (7 - i));
  Cell<int> ints;
  inside::own<<<1, 1, 64>>>(ints.device);
  CHECK(ints.get() == 9);
  return 0;
}
