// Kernels whose memory traffic is known by hand: one access pattern each, of one warp where nothing else is said.
// known_answers.csv says what each costs and why; test_known_answers.py asks the analysis,
// tools/ladder/measure/compare.py a GPU.
//
// What keeps the compilers from doing something else: indices hang on `lane`, which they cannot know (`one` is 1, but
// only at run time); every loaded value is stored and every stored tile is read; the sides of a branch differ in type,
// or in their last operation, so that their accesses cannot become one; loops are not unrolled.
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

constexpr size_t kBytes = 1 << 16;
__device__ int scratch[1024];  // where atomics leave their results

template <class T>
__device__ T value(int i) {
  return static_cast<T>(i);
}
template <>
__device__ __half value<__half>(int i) {
  return __int2half_rn(i);
}
template <>
__device__ __half2 value<__half2>(int i) {
  return __halves2half2(__int2half_rn(i), __int2half_rn(-i));
}
template <>
__device__ float2 value<float2>(int i) {
  return make_float2(i, -i);
}
template <>
__device__ float4 value<float4>(int i) {
  return make_float4(i, -i, 2 * i, -2 * i);
}

struct Case {
  const char* name;
  void (*run)(const void* in, void* out);
};
std::vector<Case>& cases() {
  static std::vector<Case> all;
  return all;
}
struct Registered {
  explicit Registered(const Case& one_case) { cases().push_back(one_case); }
};

}  // namespace

// A kernel's entry in the list, and kernels of one line.
#define CASE(name, Type, blocks, threads)                                                        \
  static const Registered name##_case({#name, [](const void* in, void* out) {                    \
                                         name<<<blocks, threads>>>(static_cast<const Type*>(in), \
                                                                   static_cast<Type*>(out), 1);  \
                                       }});
#define KERNEL(name, Type, blocks, threads, ...)                              \
  __global__ void name([[maybe_unused]] const Type* in, Type* out, int one) { \
    const int lane = static_cast<int>(threadIdx.x) * one;                     \
    __VA_ARGS__                                                               \
  }                                                                           \
  CASE(name, Type, blocks, threads)

#define LOAD_IF(name, Type, threads, condition, index) \
  KERNEL(name, Type, 1, threads, if (condition) out[lane] = in[index];)
#define LOAD(name, Type, index) LOAD_IF(name, Type, 32, true, index)
#define STORE_IF(name, Type, threads, condition, index) \
  KERNEL(name, Type, 1, threads, if (condition) out[index] = value<Type>(lane);)
#define STORE(name, Type, index) STORE_IF(name, Type, 32, true, index)
#define ATOMIC(name, index) KERNEL(name, int, 1, 32, scratch[lane] = atomicAdd(&out[index], lane + 1);)
#define REDUCTION(name, index) KERNEL(name, int, 1, 32, atomicAdd(&out[index], lane + 1);)

// `lane` writes, its neighbour in the pair reads: the same words, by the same halves and quarters of the warp.
#define SHARED_TILE(Type, count)                                           \
  __shared__ Type tile[count];                                             \
  for (int i = lane; i < count; i += blockDim.x) tile[i] = value<Type>(i); \
  __syncthreads();
#define SHARED_LOAD_IF(name, Type, threads, count, condition, index) \
  KERNEL(name, Type, 1, threads, SHARED_TILE(Type, count) if (condition) out[lane] = tile[index];)
#define SHARED_LOAD(name, Type, count, index) SHARED_LOAD_IF(name, Type, 32, count, true, index)
#define SHARED_STORE_IF(name, Type, count, condition, index)                 \
  KERNEL(                                                                    \
      name, Type, 1, 32, __shared__ Type tile[count]; const int self = lane; \
      if (condition) tile[index] = value<Type>(lane); __syncthreads(); {     \
        const int lane = self ^ one;                                         \
        if (condition) out[self] = tile[index];                              \
      })
#define SHARED_STORE(name, Type, count, index) SHARED_STORE_IF(name, Type, count, true, index)
#define SHARED_ATOMIC(name, index) \
  KERNEL(name, int, 1, 32, SHARED_TILE(int, 1024) out[lane] = atomicAdd(&tile[index], lane + 1);)

// --- Global loads --------------------------------------------------------------------------------------------------
LOAD(load_float, float, lane)
LOAD(load_float_stride_2, float, 2 * lane)
LOAD(load_float_stride_3, float, 3 * lane)
LOAD(load_float_stride_4, float, 4 * lane)
LOAD(load_float_stride_8, float, 8 * lane)
LOAD(load_float_stride_32, float, 32 * lane)
LOAD(load_float_stride_33, float, 33 * lane)
LOAD(load_float2, float2, lane)
LOAD(load_float2_stride_2, float2, 2 * lane)
LOAD(load_float4, float4, lane)
LOAD(load_float4_stride_2, float4, 2 * lane)
LOAD(load_float4_stride_32, float4, 32 * lane)
LOAD(load_double, double, lane)
LOAD(load_double_stride_2, double, 2 * lane)
LOAD(load_byte, unsigned char, lane)
LOAD(load_byte_stride_4, unsigned char, 4 * lane)
LOAD(load_half, __half, lane)
LOAD(load_half_stride_2, __half, 2 * lane)
LOAD(load_half2, __half2, lane)

LOAD(load_float_offset_1, float, lane + 1)
LOAD(load_float_offset_8, float, lane + 8)
LOAD(load_float2_offset_1, float2, lane + 1)
LOAD(load_float4_offset_1, float4, lane + 1)
LOAD(load_double_offset_1, double, lane + 1)
LOAD(load_byte_offset_1, unsigned char, lane + 1)
LOAD(load_half_offset_1, __half, lane + 1)

LOAD(load_float_broadcast, float, 7)
LOAD(load_float_pairs, float, lane / 2)
LOAD(load_float_two_words, float, lane / 16 * 1000)
LOAD(load_float_reversed, float, 31 - lane)
LOAD(load_float_permuted, float, (lane * 11 + 5) % 32)
LOAD(load_float4_broadcast, float4, 7)
LOAD(load_float4_pairs, float4, lane / 2)

LOAD_IF(load_float_first_half, float, 32, lane < 16, lane)
LOAD_IF(load_float_even_lanes, float, 32, lane % 2 == 0, lane)
LOAD_IF(load_float_every_eighth, float, 32, lane % 8 == 0, lane)
LOAD_IF(load_float_one_lane, float, 32, lane == 13, lane)
LOAD_IF(load_float4_even_lanes, float4, 32, lane % 2 == 0, lane)
LOAD_IF(load_float_20_threads, float, 20, true, lane)
LOAD_IF(load_float_100_threads, float, 100, true, lane)

// Four neighbours, one by one, as code does that cannot know its pointer to be aligned to 16 bytes.
KERNEL(load_four_floats, float, 1, 32,
       out[lane] = in[4 * lane] + in[4 * lane + 1] + in[4 * lane + 2] + in[4 * lane + 3];)
KERNEL(load_four_floats_offset_1, float, 1, 32,
       out[lane] = in[4 * lane + 1] + in[4 * lane + 2] + in[4 * lane + 3] + in[4 * lane + 4];)

KERNEL(load_three_blocks, float, 3, 96, out[blockIdx.x * 96 + lane] = in[blockIdx.x * 96 + lane];)
KERNEL(load_rows_of_33, float, 1, 256, out[lane] = in[lane / 32 * 33 + lane % 32];)
KERNEL(load_block_of_16_by_16, float, 1, dim3(16, 16), out[16 * threadIdx.y + lane] = in[100 * threadIdx.y + lane];)

// --- Lanes that part -----------------------------------------------------------------------------------------------
__global__ void branch_two_sides(const float* in, float* out, int one) {
  const int lane = threadIdx.x * one;
  float loaded;
  if (lane < 16)
    loaded = in[lane];
  else
    loaded = static_cast<float>(reinterpret_cast<const double*>(in)[lane]);
  out[lane] = loaded;
}
CASE(branch_two_sides, float, 1, 32)

__global__ void branch_odd_even(const float* in, float* out, int one) {
  const int lane = threadIdx.x * one;
  float loaded;
  if (lane % 2 == 0)
    loaded = in[lane];
  else
    loaded = static_cast<float>(reinterpret_cast<const double*>(in)[lane]);
  out[lane] = loaded;
}
CASE(branch_odd_even, float, 1, 32)

__global__ void branch_four_ways(const float* in, float* out, int one) {
  const int lane = threadIdx.x * one;
  float loaded;
  switch (lane % 4) {
    case 0:
      loaded = reinterpret_cast<const unsigned char*>(in)[lane];
      break;
    case 1:
      loaded = reinterpret_cast<const unsigned short*>(in)[lane];
      break;
    case 2:
      loaded = in[lane];
      break;
    default:
      loaded = static_cast<float>(reinterpret_cast<const double*>(in)[lane]);
  }
  out[lane] = loaded;
}
CASE(branch_four_ways, float, 1, 32)

__global__ void branch_nested(const float* in, float* out, int one) {
  const int lane = threadIdx.x * one;
  float loaded = 0.0f;
  if (lane < 16) {
    loaded = in[lane];
    if (lane < 8) loaded += static_cast<float>(reinterpret_cast<const double*>(in)[lane]);
  }
  out[lane] = loaded;
}
CASE(branch_nested, float, 1, 32)

KERNEL(branch_return, float, 1, 32, if (lane >= 24) return; out[lane] = in[lane];)

__global__ void loop_same(const float* in, float* out, int one) {
  const int lane = threadIdx.x * one;
  float sum = 0.0f;
#pragma unroll 1
  for (int i = 0; i < 10 * one; ++i) sum += in[32 * i + lane];
  out[lane] = sum;
}
CASE(loop_same, float, 1, 32)

__global__ void loop_triangle(const float* in, float* out, int one) {
  const int lane = threadIdx.x * one;
  float sum = 0.0f;
#pragma unroll 1
  for (int i = 0; i < lane; ++i) sum += in[32 * i + lane];
  out[lane] = sum;
}
CASE(loop_triangle, float, 1, 32)

__global__ void loop_halves(const float* in, float* out, int one) {
  const int lane = threadIdx.x * one;
  float sum = 0.0f;
#pragma unroll 1
  for (int i = 0; i < 2 + lane / 16 * 3; ++i) sum += in[32 * i + lane];
  out[lane] = sum;
}
CASE(loop_halves, float, 1, 32)

__global__ void loop_if(const float* in, float* out, int one) {
  const int lane = threadIdx.x * one;
  float sum = 0.0f;
#pragma unroll 1
  for (int i = 0; i < 8 * one; ++i)
    if ((lane + i) % 2) sum += in[32 * i + lane];
  out[lane] = sum;
}
CASE(loop_if, float, 1, 32)

__global__ void loop_grid_stride(const float* in, float* out, int one) {
  const int lane = threadIdx.x * one;
#pragma unroll 1
  for (int i = blockIdx.x * 64 + lane; i < 300; i += 128) out[i] = in[i];
}
CASE(loop_grid_stride, float, 2, 64)

__global__ void loop_until_found(const float* in, float* out, int one) {
  const int lane = threadIdx.x * one;
  float sum = 0.0f;
#pragma unroll 1
  for (int i = 0;;) {
    sum += in[32 * i + lane];
    if (++i > lane / 8) break;
  }
  out[lane] = sum;
}
CASE(loop_until_found, float, 1, 32)

__device__ __noinline__ float fetch(const float* from, int i) { return from[i]; }

KERNEL(call_once, float, 1, 32, out[lane] = fetch(in, lane);)
KERNEL(call_twice, float, 1, 32, out[lane] = fetch(in, lane) - fetch(in, 2 * lane + 256);)

__global__ void call_on_two_sides(const float* in, float* out, int one) {
  const int lane = threadIdx.x * one;
  float loaded;
  if (lane < 16)
    loaded = fetch(in, lane) * static_cast<float>(one);
  else
    loaded = fetch(in, 2 * lane) + static_cast<float>(one);
  out[lane] = loaded;
}
CASE(call_on_two_sides, float, 1, 32)

// --- Global stores -------------------------------------------------------------------------------------------------
STORE(store_float, float, lane)
STORE(store_float_stride_2, float, 2 * lane)
STORE(store_float_stride_3, float, 3 * lane)
STORE(store_float_stride_8, float, 8 * lane)
STORE(store_float_stride_32, float, 32 * lane)
STORE(store_float2, float2, lane)
STORE(store_float4, float4, lane)
STORE(store_float4_stride_2, float4, 2 * lane)
STORE(store_double, double, lane)
STORE(store_byte, unsigned char, lane)
STORE(store_half, __half, lane)
STORE(store_half2, __half2, lane)
STORE(store_float_offset_1, float, lane + 1)
STORE(store_float4_offset_1, float4, lane + 1)
STORE(store_float_reversed, float, 31 - lane)
STORE(store_float_permuted, float, (lane * 11 + 5) % 32)
STORE_IF(store_float_first_half, float, 32, lane < 16, lane)
STORE_IF(store_float_even_lanes, float, 32, lane % 2 == 0, lane)
STORE_IF(store_float_20_threads, float, 20, true, lane)

__global__ void store_four_floats(const float*, float* out, int one) {
  const int lane = threadIdx.x * one;
  out[4 * lane] = value<float>(lane);
  out[4 * lane + 1] = value<float>(lane + 1);
  out[4 * lane + 2] = value<float>(lane + 2);
  out[4 * lane + 3] = value<float>(lane + 3);
}
CASE(store_four_floats, float, 1, 32)

// --- Global atomics: with a result, and without one ----------------------------------------------------------------
ATOMIC(atomic_one_word, lane*(one - 1))
ATOMIC(atomic_32_words, lane)
ATOMIC(atomic_stride_32, 32 * lane)
ATOMIC(atomic_four_words, lane / 8)
REDUCTION(reduction_one_word, lane*(one - 1))
REDUCTION(reduction_32_words, lane)
REDUCTION(reduction_stride_32, 32 * lane)

// --- Shared memory, 4 bytes a lane and less ------------------------------------------------------------------------
SHARED_LOAD(shared_float, float, 1056, lane)
SHARED_LOAD(shared_float_offset_1, float, 1056, lane + 1)
SHARED_LOAD(shared_float_stride_2, float, 1056, 2 * lane)
SHARED_LOAD(shared_float_stride_3, float, 1056, 3 * lane)
SHARED_LOAD(shared_float_stride_4, float, 1056, 4 * lane)
SHARED_LOAD(shared_float_stride_6, float, 1056, 6 * lane)
SHARED_LOAD(shared_float_stride_8, float, 1056, 8 * lane)
SHARED_LOAD(shared_float_stride_16, float, 1056, 16 * lane)
SHARED_LOAD(shared_float_column, float, 1056, 32 * lane)
SHARED_LOAD(shared_float_column_padded, float, 1056, 33 * lane)
SHARED_LOAD(shared_float_broadcast, float, 1056, 7 * one)
SHARED_LOAD(shared_float_pairs, float, 1056, lane / 2)
SHARED_LOAD(shared_float_two_rows, float, 1056, lane % 2 * 32)
SHARED_LOAD(shared_float_two_columns, float, 1056, lane / 2 * 32)
SHARED_LOAD(shared_float_reversed, float, 1056, 31 - lane)
SHARED_LOAD(shared_float_permuted, float, 1056, (lane * 11 + 5) % 32)
SHARED_LOAD_IF(shared_float_column_first_half, float, 32, 1056, lane < 16, 32 * lane)
SHARED_LOAD_IF(shared_float_stride_2_even_lanes, float, 32, 1056, lane % 2 == 0, 2 * lane)
SHARED_LOAD_IF(shared_float_column_20_threads, float, 20, 1056, true, 32 * lane)
SHARED_LOAD(shared_byte, unsigned char, 1056, lane)
SHARED_LOAD(shared_byte_stride_4, unsigned char, 1056, 4 * lane)
SHARED_LOAD(shared_byte_column, unsigned char, 1056, 32 * lane)
SHARED_LOAD(shared_half, __half, 1088, lane)
SHARED_LOAD(shared_half_column, __half, 1088, 32 * lane)
SHARED_LOAD(shared_half_column_padded, __half, 1088, 34 * lane)
SHARED_LOAD(shared_half2_column, __half2, 1056, 32 * lane)

// --- Shared memory, 8 bytes a lane ---------------------------------------------------------------------------------
SHARED_LOAD(shared_float2, float2, 1056, lane)
SHARED_LOAD(shared_float2_offset_1, float2, 1056, lane + 1)
SHARED_LOAD(shared_float2_stride_2, float2, 1056, 2 * lane)
SHARED_LOAD(shared_float2_stride_3, float2, 1056, 3 * lane)
SHARED_LOAD(shared_float2_stride_4, float2, 1056, 4 * lane)
SHARED_LOAD(shared_float2_column, float2, 1056, 32 * lane)
SHARED_LOAD(shared_float2_column_padded, float2, 1056, 33 * lane)
SHARED_LOAD(shared_float2_broadcast, float2, 1056, 7 * one)
SHARED_LOAD(shared_float2_pairs, float2, 1056, lane / 2)
SHARED_LOAD(shared_float2_fours, float2, 1056, lane / 4)
SHARED_LOAD(shared_float2_eights, float2, 1056, lane / 8)
SHARED_LOAD(shared_float2_odd_even, float2, 1056, lane % 2)
SHARED_LOAD(shared_float2_every_second, float2, 1056, lane / 4 * 2 + lane % 2)
SHARED_LOAD(shared_float2_same_halves, float2, 1056, lane % 16)
SHARED_LOAD(shared_float2_same_quarters, float2, 1056, lane % 8)
SHARED_LOAD(shared_float2_reversed, float2, 1056, 31 - lane)
SHARED_LOAD(shared_float2_permuted, float2, 1056, (lane * 11 + 5) % 32)
SHARED_LOAD(shared_float2_interleaved, float2, 1056, lane % 2 * 16 + lane / 2)
SHARED_LOAD(shared_float2_column_pairs, float2, 1056, lane / 2 * 32)
SHARED_LOAD_IF(shared_float2_first_half, float2, 32, 1056, lane < 16, lane)
SHARED_LOAD_IF(shared_float2_even_lanes, float2, 32, 1056, lane % 2 == 0, lane)
SHARED_LOAD_IF(shared_float2_even_lanes_packed, float2, 32, 1056, lane % 2 == 0, lane / 2)
SHARED_LOAD_IF(shared_float2_two_lanes_of_four, float2, 32, 1056, lane % 4 < 2, lane / 4 * 2 + lane % 2)
SHARED_LOAD(shared_double_column_padded, double, 1056, 33 * lane)

// --- Shared memory, 16 bytes a lane --------------------------------------------------------------------------------
SHARED_LOAD(shared_float4, float4, 1056, lane)
SHARED_LOAD(shared_float4_offset_1, float4, 1056, lane + 1)
SHARED_LOAD(shared_float4_stride_2, float4, 1056, 2 * lane)
SHARED_LOAD(shared_float4_stride_3, float4, 1056, 3 * lane)
SHARED_LOAD(shared_float4_stride_4, float4, 1056, 4 * lane)
SHARED_LOAD(shared_float4_column, float4, 1056, 8 * lane)
SHARED_LOAD(shared_float4_column_padded, float4, 1056, 9 * lane)
SHARED_LOAD(shared_float4_broadcast, float4, 1056, 7 * one)
SHARED_LOAD(shared_float4_pairs, float4, 1056, lane / 2)
SHARED_LOAD(shared_float4_fours, float4, 1056, lane / 4)
SHARED_LOAD(shared_float4_eights, float4, 1056, lane / 8)
SHARED_LOAD(shared_float4_odd_even, float4, 1056, lane % 2)
SHARED_LOAD(shared_float4_every_second, float4, 1056, lane / 4 * 2 + lane % 2)
SHARED_LOAD(shared_float4_same_halves, float4, 1056, lane % 16)
SHARED_LOAD(shared_float4_same_quarters, float4, 1056, lane % 8)
SHARED_LOAD(shared_float4_reversed, float4, 1056, 31 - lane)
SHARED_LOAD(shared_float4_permuted, float4, 1056, (lane * 11 + 5) % 32)
SHARED_LOAD(shared_float4_interleaved, float4, 1056, lane % 4 * 8 + lane / 4)
SHARED_LOAD(shared_float4_column_pairs, float4, 1056, lane / 2 * 8)
SHARED_LOAD_IF(shared_float4_first_quarter, float4, 32, 1056, lane < 8, lane)
SHARED_LOAD_IF(shared_float4_first_half, float4, 32, 1056, lane < 16, lane)
SHARED_LOAD_IF(shared_float4_even_lanes_packed, float4, 32, 1056, lane % 2 == 0, lane / 2)
SHARED_LOAD_IF(shared_float4_two_lanes_of_four, float4, 32, 1056, lane % 4 < 2, lane / 4 * 2 + lane % 2)

// --- Shared stores -------------------------------------------------------------------------------------------------
SHARED_STORE(shared_store_float, float, 1056, lane)
SHARED_STORE(shared_store_float_stride_2, float, 1056, 2 * lane)
SHARED_STORE(shared_store_float_column, float, 1056, 32 * lane)
SHARED_STORE(shared_store_float_column_padded, float, 1056, 33 * lane)
SHARED_STORE_IF(shared_store_float_column_first_half, float, 1056, lane < 16, 32 * lane)
SHARED_STORE(shared_store_byte, unsigned char, 1056, lane)
SHARED_STORE(shared_store_byte_column, unsigned char, 1056, 32 * lane)
SHARED_STORE(shared_store_half, __half, 1088, lane)
SHARED_STORE(shared_store_half_column, __half, 1088, 32 * lane)
SHARED_STORE(shared_store_float2, float2, 1056, lane)
SHARED_STORE(shared_store_float2_stride_2, float2, 1056, 2 * lane)
SHARED_STORE(shared_store_float2_column, float2, 1056, 32 * lane)
SHARED_STORE(shared_store_float2_column_padded, float2, 1056, 33 * lane)
SHARED_STORE_IF(shared_store_float2_even_lanes_packed, float2, 1056, lane % 2 == 0, lane / 2)
SHARED_STORE(shared_store_float4, float4, 1056, lane)
SHARED_STORE(shared_store_float4_stride_2, float4, 1056, 2 * lane)
SHARED_STORE(shared_store_float4_column, float4, 1056, 8 * lane)
SHARED_STORE(shared_store_float4_column_padded, float4, 1056, 9 * lane)

// --- Shared atomics ------------------------------------------------------------------------------------------------
SHARED_ATOMIC(shared_atomic_one_word, lane*(one - 1))
SHARED_ATOMIC(shared_atomic_32_words, lane)
SHARED_ATOMIC(shared_atomic_four_words, lane / 8)
SHARED_ATOMIC(shared_atomic_stride_2, 2 * lane)
SHARED_ATOMIC(shared_atomic_column, 32 * lane)

// --- Barriers, and what lanes tell each other ----------------------------------------------------------------------
__global__ void three_barriers(const float* in, float* out, int one) {
  __shared__ float tile[64];
  const int lane = threadIdx.x * one;
  tile[lane] = in[lane];
  __syncthreads();
  const float first = tile[63 - lane];
  __syncthreads();
  tile[lane] = first + 1.0f;
  __syncthreads();
  out[lane] = tile[lane ^ 32];
}
CASE(three_barriers, float, 1, 64)

__global__ void five_shuffles(const float* in, float* out, int one) {
  const int lane = threadIdx.x * one;
  float sum = in[lane];
  for (int mask = 16; mask > 0; mask /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, mask);
  out[lane] = sum;
}
CASE(five_shuffles, float, 1, 64)

KERNEL(shuffle_of_half_a_warp, float, 1, 32, if (lane < 16) out[lane] = __shfl_down_sync(0x0000ffffu, in[lane], 1);)

__global__ void two_votes(const float* in, float* out, int one) {
  const int lane = threadIdx.x * one;
  const unsigned odd = __ballot_sync(0xffffffffu, lane % 2);
  const int any = __any_sync(0xffffffffu, in[lane] > 0.0f);
  out[lane] = static_cast<float>(odd) + static_cast<float>(any);
}
CASE(two_votes, float, 1, 32)

__global__ void warp_synchronizations(const float* in, float* out, int one) {
  __shared__ float tile[64];
  const int lane = threadIdx.x * one;
  tile[lane] = in[lane];
  __syncwarp();
  const float other = tile[lane ^ 1];
  __syncwarp();
  tile[lane] = other + 1.0f;
  __syncwarp();
  out[lane] = tile[lane ^ 2];
}
CASE(warp_synchronizations, float, 1, 64)

static void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
  std::exit(1);
}

int main() {
  void *in, *out;
  check(cudaMalloc(&in, kBytes), "cudaMalloc");
  check(cudaMalloc(&out, kBytes), "cudaMalloc");
  check(cudaMemset(in, 0x3c, kBytes), "cudaMemset");
  check(cudaMemset(out, 0, kBytes), "cudaMemset");
  for (const Case& one_case : cases()) {
    one_case.run(in, out);
    check(cudaGetLastError(), one_case.name);
    check(cudaDeviceSynchronize(), one_case.name);
  }
  std::printf("%zu kernels launched\n", cases().size());
  check(cudaFree(in), "cudaFree");
  check(cudaFree(out), "cudaFree");
  return 0;
}
