// Warp built-ins against the definitions in the PTX manual, for every type, width and partial mask.
#include "testing.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <numeric>

constexpr unsigned kFull = 0xffffffff;

// --- Shuffles ------------------------------------------------------------------------------------------------------

enum Kind { kIndex, kUp, kDown, kXor };

template <Kind kind>
__device__ int shuffle(unsigned mask, int value, int operand, int width) {
  if (kind == kUp) return __shfl_up_sync(mask, value, unsigned(operand), width);
  if (kind == kDown) return __shfl_down_sync(mask, value, unsigned(operand), width);
  if (kind == kXor) return __shfl_xor_sync(mask, value, operand, width);
  return __shfl_sync(mask, value, operand, width);
}

// out[operand + 4][lane], for operands -4 to 67
constexpr int kOperands = 72;
template <Kind kind>
__global__ void shuffle_all(int* out, unsigned mask, int width) {
  const int lane = int(threadIdx.x);
  if (!(mask >> lane & 1)) return;
  for (int operand = -4; operand < kOperands - 4; ++operand)
    out[(operand + 4) * 32 + lane] = shuffle<kind>(mask, 100 + lane, operand, width);
}

// The pseudo-code of the PTX manual's shfl.sync.
int source_lane(Kind kind, int lane, int b, int width) {
  const int segment = 32 - width, bval = b & 31, clamp = kind == kUp ? 0 : 31;
  const int max_lane = (lane & segment) | (clamp & ~segment & 31), min_lane = lane & segment;
  int j = 0;
  bool in_range = false;
  switch (kind) {
    case kUp:
      j = lane - bval, in_range = j >= max_lane;
      break;
    case kDown:
      j = lane + bval, in_range = j <= max_lane;
      break;
    case kXor:
      j = lane ^ bval, in_range = j <= max_lane;
      break;
    case kIndex:
      j = min_lane | (bval & ~segment & 31), in_range = j <= max_lane;
      break;
  }
  return in_range ? j : lane;
}

template <Kind kind>
void check_shuffle(unsigned mask, int threads) {
  const unsigned present = threads == 32 ? kFull : (1u << threads) - 1;
  for (int width = 1; width <= 32; width *= 2) {
    Device<int> out(kOperands * 32);
    shuffle_all<kind><<<1, threads>>>(out.data, mask, width);
    const auto got = out.host();
    int wrong = 0;
    for (int operand = -4; operand < kOperands - 4; ++operand)
      for (int lane = 0; lane < threads; ++lane) {
        if (!(mask >> lane & 1)) continue;
        const int source = source_lane(kind, lane, operand, width);
        const int expected = (mask & present) >> source & 1 ? 100 + source : 0;  // 0 on an H200
        wrong += got[size_t((operand + 4) * 32 + lane)] != expected;
      }
    CAPTURE(width);
    CAPTURE(mask);
    CHECK(wrong == 0);
  }
}

TEST_CASE("shuffles of a full warp") {
  check_shuffle<kIndex>(kFull, 32);
  check_shuffle<kUp>(kFull, 32);
  check_shuffle<kDown>(kFull, 32);
  check_shuffle<kXor>(kFull, 32);
}

TEST_CASE("shuffles among the lanes of a mask") {
  Environment arrive("SIMT_EXITED", "arrive");
  for (const unsigned mask : {0x0000ffffu, 0xaaaaaaaau, 0x80000001u, 0x00000100u}) {
    check_shuffle<kIndex>(mask, 32);
    check_shuffle<kUp>(mask, 32);
    check_shuffle<kDown>(mask, 32);
    check_shuffle<kXor>(mask, 32);
  }
}

TEST_CASE("shuffles of a warp that the block does not fill") {
  check_shuffle<kIndex>(kFull, 20);
  check_shuffle<kUp>(kFull, 20);
  check_shuffle<kDown>(kFull, 20);
  check_shuffle<kXor>(kFull, 20);
}

struct Pair {
  short a;
  int b;
};
enum Colour { kRed, kGreen = 77 };

// Lane 0 checks what lane 3 has.
__global__ void shuffle_types(unsigned long long* failures) {
  const int lane = int(threadIdx.x);
  unsigned long long failed = 0;
  int test = 0;
  const auto check = [&](bool right) { failed |= (unsigned long long)(!right) << test++; };
  check(__shfl_sync(kFull, 10 + lane, 3) == 13);
  check(__shfl_sync(kFull, 10u + unsigned(lane), 3) == 13u);
  check(__shfl_sync(kFull, -5000000000LL - lane, 3) == -5000000003LL);
  check(__shfl_sync(kFull, 0xfffffffffffffff0ULL + (unsigned long long)lane, 3) == 0xfffffffffffffff3ULL);
  check(__shfl_sync(kFull, -5000000000L - lane, 3) == -5000000003L);
  check(__shfl_sync(kFull, 5000000000UL + (unsigned long)lane, 3) == 5000000003UL);
  check(__shfl_sync(kFull, 0.5f + float(lane), 3) == 3.5f);
  check(__shfl_sync(kFull, 0.1 + double(lane), 3) == 0.1 + 3.0);
  check(__shfl_sync(kFull, (signed char)(-100 - lane), 3) == -103);
  check(__shfl_sync(kFull, (unsigned char)(250 + lane), 3) == 253);
  check(__shfl_sync(kFull, short(-30000 - lane), 3) == -30003);
  check(__shfl_sync(kFull, lane == 3, 3) == 1);
  check(__shfl_sync(kFull, __float2half(float(lane)), 3) == __float2half(3.0f));
  const __half2 pair = __shfl_xor_sync(kFull, __floats2half2_rn(float(lane), float(-lane)), 3);
  check(__low2float(pair) == float(lane ^ 3) && __high2float(pair) == float(-(lane ^ 3)));
  check(__shfl_up_sync(kFull, __float2bfloat16(float(lane)), 1) == __float2bfloat16(float(lane ? lane - 1 : 0)));
  const __nv_bfloat162 brains = __shfl_down_sync(kFull, __floats2bfloat162_rn(float(lane), 2.0f), 1);
  check(__low2float(brains) == float(lane < 31 ? lane + 1 : 31) && __high2float(brains) == 2.0f);
  atomicOr(failures, failed);
}

#ifdef __SIMT__  // wider than CUDA, which wants these taken apart
__global__ void shuffle_other_types(int* failures, int* base) {
  const int lane = int(threadIdx.x);
  const Pair pair = __shfl_sync(kFull, Pair{short(lane), 1000 * lane}, 3);
  const Colour colour = Colour(__shfl_sync(kFull, lane == 3 ? kGreen : kRed, 3));
  const bool right =
      __shfl_sync(kFull, base + lane, 3) == base + 3 && pair.a == 3 && pair.b == 3000 && colour == kGreen;
  if (!right) atomicAdd(failures, 1);
}
static_assert(std::is_same_v<decltype(__shfl_sync(0u, short(), 0)), int>, "promoted like CUDA's overloads");
static_assert(std::is_same_v<decltype(__shfl_sync(0u, 1.0f, 0)), float>);
static_assert(std::is_same_v<decltype(__shfl_sync(0u, 1ul, 0)), unsigned long>);

TEST_CASE("shuffles of pointers and small structures") {
  Device<int> failures(1);
  shuffle_other_types<<<1, 32>>>(failures.data, failures.data);
  CHECK(failures.host()[0] == 0);
}
#endif

TEST_CASE("shuffles of every type") {
  Device<unsigned long long> failures(1);
  shuffle_types<<<1, 32>>>(failures.data);
  CHECK(failures.host()[0] == 0);
}

__global__ void tree_sums(const float* in, float* out) {
  float sum = in[blockIdx.x * blockDim.x + threadIdx.x];
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_down_sync(kFull, sum, unsigned(offset));
  if (threadIdx.x % 32 == 0) out[(blockIdx.x * blockDim.x + threadIdx.x) / 32] = sum;
}

// In the middle of a shuffle of all lanes, some meet among themselves first, wait for the block, or take another line.
__global__ void broken_sweeps(unsigned* failures) {
  const unsigned lane = threadIdx.x % 32;
  unsigned wrong = __shfl_sync(kFull, lane, 31) != 31;  // from here on every lane has a stack
  for (unsigned first = 0; first < 32; ++first) {
    const unsigned others = kFull << first;
    if (lane >= first) wrong += __reduce_add_sync(others, 1u) != 32 - first;
    wrong += __shfl_sync(kFull, lane + first, 5) != 5 + first;
    if (lane < first)
      wrong += __shfl_xor_sync(kFull, lane, 1) != (lane ^ 1);
    else
      wrong += __shfl_xor_sync(kFull, lane, 1) != (lane ^ 1);
    if (lane == first) __syncwarp(1u << lane);
    wrong += __ballot_sync(kFull, lane == first) != 1u << first;
  }
  __syncthreads();
  if (wrong) atomicAdd(failures, wrong);
}

TEST_CASE("lanes leave the order in which a warp shuffles") {
  Device<unsigned> failures(1);
  broken_sweeps<<<3, 96>>>(failures.data);
  CHECK(failures.host()[0] == 0);
}

TEST_CASE("many warps of many blocks shuffle at the same time") {
  std::vector<float> in(64 * 256);
  for (size_t i = 0; i < in.size(); ++i) in[i] = float(i % 97);
  Device<float> device_in(in), out(in.size() / 32);
  tree_sums<<<64, 256>>>(device_in.data, out.data);
  const auto sums = out.host();
  int wrong = 0;
  for (size_t w = 0; w < sums.size(); ++w)
    wrong += sums[w] != std::accumulate(in.begin() + long(32 * w), in.begin() + long(32 * w + 32), 0.0f);
  CHECK(wrong == 0);
}

// The two halves of a warp go their own ways and meet again.
__global__ void halves(int* out) {
  const int lane = int(threadIdx.x);
  int value = lane;
  if (lane < 16) {
    for (int i = 0; i < 3; ++i) value += __shfl_xor_sync(0x0000ffff, value, 1 << i, 16);
  } else {
    value = __shfl_sync(0xffff0000, value, 31) + __shfl_down_sync(0xffff0000, value, 1);
  }
  out[lane] = value + __shfl_sync(kFull, value, 16);
}

TEST_CASE("halves of a warp shuffle independently") {
  Device<int> out(32);
  halves<<<1, 32>>>(out.data);
  const auto got = out.host();
  for (int lane = 0; lane < 32; ++lane) {
    const int own = lane < 16 ? (lane / 8) * 64 + 28 : 31 + (lane < 31 ? lane + 1 : 31);
    CHECK(got[size_t(lane)] == own + 31 + 17);
  }
}

// --- Votes, matches, reductions ------------------------------------------------------------------------------------

__global__ void votes(unsigned* out, unsigned mask, unsigned predicates) {
  const unsigned lane = threadIdx.x;
  if (!(mask >> lane & 1)) return;
  const int predicate = (predicates >> lane & 1) ? 1 << lane : 0;  // any bit counts
  out[lane] = __ballot_sync(mask, predicate);
  out[32 + lane] = unsigned(__any_sync(mask, predicate));
  out[64 + lane] = unsigned(__all_sync(mask, predicate));
  out[96 + lane] = unsigned(__uni_sync(mask, predicate));
}

TEST_CASE("votes") {
  Environment arrive("SIMT_EXITED", "arrive");
  for (const unsigned mask : {kFull, 0x0000ffffu, 0x80000001u})
    for (const unsigned predicates : {0u, kFull, 0x0000ffffu, 0x80000000u, 0x12345678u})
      for (const int threads : {32, 24}) {
        Device<unsigned> out(128);
        votes<<<1, threads>>>(out.data, mask, predicates);
        const auto got = out.host();
        const unsigned voters = mask & (threads == 32 ? kFull : (1u << threads) - 1), yes = predicates & voters;
        for (size_t lane = 0; lane < 32; ++lane) {
          if (!(voters >> lane & 1)) continue;
          CHECK(got[lane] == yes);
          CHECK(got[32 + lane] == unsigned(yes != 0));
          CHECK(got[64 + lane] == unsigned(yes == voters));
          CHECK(got[96 + lane] == unsigned(yes == voters || yes == 0));
        }
      }
}

__global__ void matches(unsigned* out, int* all) {
  const int lane = int(threadIdx.x);
  out[lane] = __match_any_sync(kFull, lane % 3);
  out[32 + lane] = __match_any_sync(kFull, lane < 8 ? 0.0f : lane < 16 ? -0.0f : float(lane));
  out[64 + lane] = __match_any_sync(kFull, (unsigned long long)(lane / 16) << 40);
  out[96 + lane] = __match_all_sync(kFull, 3.25, &all[lane]);
  out[128 + lane] = __match_all_sync(kFull, lane == 31, &all[32 + lane]);
}

TEST_CASE("matches compare bits") {
  Device<unsigned> out(160);
  Device<int> all(64);
  matches<<<1, 32>>>(out.data, all.data);
  const auto got = out.host();
  const auto flags = all.host();
  const unsigned every_third[] = {0x49249249, 0x92492492, 0x24924924};
  for (size_t lane = 0; lane < 32; ++lane) {
    CHECK(got[lane] == every_third[lane % 3]);
    CHECK(got[32 + lane] == (lane < 8 ? 0xffu : lane < 16 ? 0xff00u : 1u << lane));
    CHECK(got[64 + lane] == (lane < 16 ? 0xffffu : 0xffff0000u));
    CHECK(got[96 + lane] == kFull);
    CHECK(got[128 + lane] == 0);
    CHECK(flags[lane] == 1);
    CHECK(flags[32 + lane] == 0);
  }
}

__global__ void reductions(int* out, unsigned* bits) {
  const int lane = int(threadIdx.x), value = lane % 2 ? -lane : lane;
  out[lane] = __reduce_add_sync(kFull, value);
  out[32 + lane] = __reduce_min_sync(kFull, value);
  out[64 + lane] = __reduce_max_sync(kFull, value);
  bits[lane] = __reduce_min_sync(kFull, unsigned(value));
  bits[32 + lane] = __reduce_max_sync(kFull, unsigned(value));
  bits[64 + lane] = __reduce_and_sync(kFull, unsigned(lane) | 0x80u);
  bits[96 + lane] = __reduce_or_sync(kFull, 1u << lane);
  bits[128 + lane] = __reduce_xor_sync(kFull, unsigned(lane == 7 ? 0x55 : 0));
  bits[160 + lane] = __reduce_add_sync(kFull, 0x90000000u);
}

TEST_CASE("reductions of integers") {
  Device<int> out(96);
  Device<unsigned> bits(192);
  reductions<<<1, 32>>>(out.data, bits.data);
  const auto got = out.host();
  const auto unsigneds = bits.host();
  for (size_t lane = 0; lane < 32; ++lane) {
    CHECK(got[lane] == -16);
    CHECK(got[32 + lane] == -31);
    CHECK(got[64 + lane] == 30);
    CHECK(unsigneds[lane] == 0);
    CHECK(unsigneds[32 + lane] == kFull);
    CHECK(unsigneds[64 + lane] == 0x80);
    CHECK(unsigneds[96 + lane] == kFull);
    CHECK(unsigneds[128 + lane] == 0x55);
    CHECK(unsigneds[160 + lane] == 32 * 0x90000000u);
  }
}

// --- Barrier and active lanes --------------------------------------------------------------------------------------

__global__ void reverse_in_warp(int* out) {
  __shared__ int s[64];
  const int t = int(threadIdx.x);
  for (int round = 0; round < 4; ++round) {
    s[t] = 10 * t + round;
    __syncwarp();
    out[round * 64 + t] = s[t ^ 31];
    __syncwarp();
  }
}

TEST_CASE("__syncwarp orders shared memory within the warp") {
  Device<int> out(256);
  reverse_in_warp<<<1, 64>>>(out.data);
  const auto got = out.host();
  for (int i = 0; i < 256; ++i) CHECK(got[size_t(i)] == 10 * (i % 64 ^ 31) + i / 64);
}

__global__ void active(unsigned* out) {
  const unsigned lane = threadIdx.x;
  out[lane] = __activemask();
  if (lane % 4 == 1) {
    out[32 + lane] = __activemask();
  } else {
    out[32 + lane] = __activemask();
  }
}

__global__ void active_at_the_end(unsigned* out) {
  if (threadIdx.x >= 28) return;
  out[64 + threadIdx.x] = __activemask();
}

TEST_CASE("__activemask tells who is here") {
  Device<unsigned> out(96);
  active<<<1, 32>>>(out.data);
  active_at_the_end<<<1, 32>>>(out.data);
  const auto got = out.host();
  for (size_t lane = 0; lane < 32; ++lane) {
    CHECK(got[lane] == kFull);
    CHECK(got[32 + lane] == (lane % 4 == 1 ? 0x22222222u : 0xddddddddu));
    CHECK(got[64 + lane] == (lane < 28 ? 0x0fffffffu : 0u));
  }
}

// One atomic for all lanes that are here: the usual use of the active mask.
__global__ void aggregated_increment(int* counter, int* tickets) {
  const int lane = int(threadIdx.x) % 32;
  if (lane % 3 == 0) return;
  const unsigned mask = __activemask();
  const int leader = __ffs(int(mask)) - 1;
  int base = 0;
  if (lane == leader) base = atomicAdd(counter, __popc(mask));
  base = __shfl_sync(mask, base, leader);
  tickets[base + __popc(mask & ((1u << lane) - 1))] += 1;
}

TEST_CASE("warp-aggregated atomics give every ticket once") {
  Device<int> counter(1), tickets(8 * 4 * 21);
  aggregated_increment<<<8, 128>>>(counter.data, tickets.data);
  CHECK(counter.host()[0] == 8 * 4 * 21);
  CHECK(tickets.host() == std::vector<int>(8 * 4 * 21, 1));
}

// --- Faults --------------------------------------------------------------------------------------------------------
#ifdef __SIMT__

constexpr int kMissingLine = __LINE__ + 3;
__global__ void lane_is_missing(int* out) {
  if (threadIdx.x == 5) return;
  *out = __shfl_xor_sync(kFull, 1, 1);
}
constexpr int kElsewhereLine = __LINE__ + 5;
__global__ void lane_is_elsewhere(int* out) {
  if (threadIdx.x == 5)
    __syncthreads();
  else
    *out = int(__ballot_sync(kFull, 1));
}
constexpr int kNotNamedLine = __LINE__ + 1;
__global__ void caller_is_not_named(int* out) { *out = __any_sync(1u, int(threadIdx.x)); }
constexpr int kWidthLine = __LINE__ + 1;
__global__ void odd_width(int* out, int width) { *out = __shfl_sync(kFull, 1, 0, width); }
constexpr int kSyncwarpLine = __LINE__ + 2;
__global__ void lane_misses_syncwarp() {
  if (threadIdx.x != 9) __syncwarp();
  __syncthreads();
}

TEST_CASE("faults of warp operations name the line and never hang") {
  const auto launch = [](auto kernel, auto... arguments) {
    int* out;
    CHECK(cudaMalloc(&out, sizeof(int)) == cudaSuccess);
    kernel<<<1, 32>>>(out, arguments...);
  };
  std::string text = fault_of(cudaErrorLaunchFailure, [&] { launch(lane_is_missing); });
  CHECK(contains(text, at_line(__FILE__, kMissingLine)));
  CHECK(contains(text, "__shfl_xor_sync"));
  text = fault_of(cudaErrorLaunchFailure, [&] { launch(lane_is_elsewhere); });
  CHECK(contains(text, at_line(__FILE__, kElsewhereLine)));
  CHECK(contains(text, "31 threads wait at __ballot_sync"));
  text = fault_of(cudaErrorLaunchFailure, [&] { launch(caller_is_not_named); });
  CHECK(contains(text, at_line(__FILE__, kNotNamedLine)));
  for (const int width : {0, -1, 3, 33, 64}) {
    text = fault_of(cudaErrorIllegalInstruction, [&] { launch(odd_width, width); });
    CHECK(contains(text, at_line(__FILE__, kWidthLine)));
  }
  text = fault_of(cudaErrorLaunchFailure, [&] { lane_misses_syncwarp<<<1, 32>>>(); });
  CHECK(contains(text, at_line(__FILE__, kSyncwarpLine)));
  CHECK(contains(text, "__syncwarp"));
}
#endif
