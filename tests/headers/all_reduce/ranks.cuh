// What the test of each element type is made of: a group of ranks, and a call whose results are checked.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <limits>
#include <random>
#include <rms_norm/all_reduce.cuh>
#include <stdexcept>
#include <string>
#include <vector>

#include "common/cuda_check.h"
#include "common/memory.h"

namespace all_reduce_test {

using ladder::allocate, ladder::DeviceMemory;
using rms_norm::AllReduceOptions, rms_norm::Communicator, rms_norm::Reduction;

inline void check(bool is_right, const std::string& what) {
  if (!is_right) throw std::runtime_error(what);
}

// --- Ranks -----------------------------------------------------------------------------------------------------------

inline int device_count() {
  int count = 0;
  CUDA_CHECK(cudaGetDeviceCount(&count));
  return count;
}
inline void let_devices_see_each_other() {
  for (int from = 0; from < device_count(); ++from)
    for (int to = 0; to < device_count(); ++to)
      if (from != to) {
        CUDA_CHECK(cudaSetDevice(from));
        CUDA_CHECK(cudaDeviceEnablePeerAccess(to, 0));
      }
}

// Ranks on devices `first`, `first` + 1, … of those that there are. at_once: groups that share these devices.
class Group {
 public:
  Group(int ranks, size_t region_bytes, int at_once = 1, int first = 0) : late_(ranks, nullptr) {
    const int devices = std::min(ranks, device_count());
    Communicator common;
    common.ranks = ranks, common.bytes = region_bytes, common.groups = at_once * ((ranks + devices - 1) / devices);
    for (int rank = 0; rank < ranks; ++rank) {
      devices_.push_back((first + rank) % device_count());
      use(rank);
      regions_.push_back(allocate<char>(static_cast<int64_t>(region_bytes)));
      common.regions[rank] = regions_[rank].get();
      CUDA_CHECK(rms_norm::init_region(regions_[rank].get(), region_bytes));
      CUDA_CHECK(cudaDeviceSynchronize());
      streams_.emplace_back();
      CUDA_CHECK(cudaStreamCreateWithFlags(&streams_.back(), cudaStreamNonBlocking));
      CUDA_CHECK(cudaHostAlloc(reinterpret_cast<void**>(&late_[rank]), sizeof(int), cudaHostAllocPortable));
      *late_[rank] = -1;
    }
    for (int rank = 0; rank < ranks; ++rank) {
      communicators_.push_back(common);
      communicators_.back().rank = rank, communicators_.back().late_rank = late_[rank];
    }
  }
  int ranks() const { return static_cast<int>(communicators_.size()); }
  void use(int rank) const { CUDA_CHECK(cudaSetDevice(devices_[rank])); }
  const Communicator& of(int rank) const { return communicators_[rank]; }
  cudaStream_t stream(int rank) const { return streams_[rank]; }
  int late(int rank) const { return *static_cast<volatile int*>(late_[rank]); }
  // After an error, the ranks that were waited for in vain.
  void synchronize() const {
    for (int rank = 0; rank < ranks(); ++rank) {
      use(rank);
      if (const cudaError_t error = cudaStreamSynchronize(streams_[rank])) {
        std::string late;
        for (int r = 0; r < ranks(); ++r)
          if (this->late(r) >= 0) late += ", rank " + std::to_string(r) + " waits for " + std::to_string(this->late(r));
        throw std::runtime_error(cudaGetErrorString(error) + late);
      }
    }
  }
  ~Group() {
    for (cudaStream_t stream : streams_) cudaStreamDestroy(stream);
    for (int* word : late_) cudaFreeHost(word);
  }

 private:
  std::vector<int> devices_;
  std::vector<DeviceMemory<char>> regions_;
  std::vector<Communicator> communicators_;
  std::vector<cudaStream_t> streams_;
  std::vector<int*> late_;
};

// --- Numbers ---------------------------------------------------------------------------------------------------------

inline float number(float value) { return value; }
inline float number(__half value) { return __half2float(value); }
inline float number(__nv_bfloat16 value) { return __bfloat162float(value); }
template <class T>
T rounded(float value) {
  if constexpr (std::is_same_v<T, float>) return value;
  if constexpr (std::is_same_v<T, __half>) return __float2half(value);
  if constexpr (std::is_same_v<T, __nv_bfloat16>) return __float2bfloat16(value);
}
template <class T>
constexpr double kEpsilon = std::is_same_v<T, float>    ? 1.2e-7
                            : std::is_same_v<T, __half> ? 9.8e-4
                                                        : 7.9e-3;

template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

template <class T>
std::vector<T> draw(size_t count, std::mt19937& random, float scale = 1.0f) {
  std::normal_distribution<float> normal(0.0f, scale);
  std::vector<T> numbers(count);
  for (T& n : numbers) n = rounded<T>(normal(random));
  return numbers;
}

template <class T>
void copy_in(T* to, const std::vector<T>& from) {
  CUDA_CHECK(cudaMemcpy(to, from.data(), from.size() * sizeof(T), cudaMemcpyDefault));
}
template <class T>
std::vector<T> copy_out(const T* from, size_t count) {
  std::vector<T> numbers(count);
  CUDA_CHECK(cudaMemcpy(numbers.data(), from, count * sizeof(T), cudaMemcpyDefault));
  return numbers;
}

// residual + the sum of x over the ranks, as every rank must have it.
template <class T>
void add_all(const std::vector<const T*>& x, T* residual, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    float sum = -0.0f;
    for (const T* of_rank : x) sum += number(of_rank[i]);
    residual[i] = rounded<T>(sum + number(residual[i]));
  }
}

// --- One call --------------------------------------------------------------------------------------------------------

struct Case {
  int64_t rows, cols;
  AllReduceOptions options = {};
  int64_t offset = 0;    // of all pointers from a 16-byte boundary, in elements
  bool in_place = true;  // y is x, and residual_out is residual
  bool weighted = true;
};

template <class T, class W = T>
void run_case(const Group& group, const Case& c, std::mt19937& random,
              const std::function<void(std::vector<std::vector<T>>&)>& edit = {}) {
  constexpr int kGuard = 64;
  const int ranks = group.ranks();
  const size_t count = static_cast<size_t>(c.rows * c.cols);
  const int64_t share = rms_norm::shard_rows(c.rows, ranks);
  const bool sharded = c.options.residual_is_sharded;
  std::vector<std::vector<T>> x;
  for (int rank = 0; rank < ranks; ++rank) x.push_back(draw<T>(count, random));
  if (edit) edit(x);
  const std::vector<T> residual = draw<T>(count, random);
  const std::vector<W> weight = draw<W>(static_cast<size_t>(c.cols), random);

  std::vector<T> expected = residual;
  std::vector<const T*> parts;
  for (const auto& of_rank : x) parts.push_back(of_rank.data());
  add_all(parts, expected.data(), count);

  struct Memory {
    DeviceMemory<T> x, y, residual, residual_out;
    DeviceMemory<W> weight;
  };
  std::vector<Memory> memories;
  const int64_t size = static_cast<int64_t>(count) + c.offset + 2 * kGuard;
  const auto begin = [&](auto& memory) { return memory.get() + kGuard + c.offset; };
  for (int rank = 0; rank < ranks; ++rank) {
    group.use(rank);
    memories.push_back({allocate<T>(size), allocate<T>(size), allocate<T>(size), allocate<T>(size),
                        allocate<W>(c.cols + c.offset + 2 * kGuard)});
    Memory& m = memories.back();
    for (const auto* memory : {&m.x, &m.y, &m.residual, &m.residual_out})
      CUDA_CHECK(cudaMemset(memory->get(), 0xff, static_cast<size_t>(size) * sizeof(T)));
    copy_in(begin(m.x), x[rank]);
    copy_in(begin(m.weight), weight);
    const size_t first = sharded ? static_cast<size_t>(std::min(c.rows, rank * share) * c.cols) : 0;
    const size_t last = sharded ? static_cast<size_t>(std::min(c.rows, (rank + 1) * share) * c.cols) : count;
    copy_in(begin(m.residual), std::vector<T>(residual.begin() + first, residual.begin() + last));
    CUDA_CHECK(cudaDeviceSynchronize());
  }
  for (int rank = 0; rank < ranks; ++rank) {
    group.use(rank);
    Memory& m = memories[rank];
    T* const y = begin(c.in_place ? m.x : m.y);
    T* const residual_out = begin(c.in_place ? m.residual : m.residual_out);
    CUDA_CHECK(rms_norm::all_reduce_fused_add_rms_norm(group.of(rank), begin(m.x), begin(m.residual), residual_out,
                                                       c.weighted ? begin(m.weight) : nullptr, y, c.rows, c.cols,
                                                       c.options, group.stream(rank)));
  }
  group.synchronize();

  std::vector<T> first_y;
  for (int rank = 0; rank < ranks; ++rank) {
    group.use(rank);
    Memory& m = memories[rank];
    const std::string of_rank = " of rank " + std::to_string(rank);
    const size_t from = sharded ? static_cast<size_t>(std::min(c.rows, rank * share) * c.cols) : 0;
    const size_t to = sharded ? static_cast<size_t>(std::min(c.rows, (rank + 1) * share) * c.cols) : count;
    const std::vector<T> sums = copy_out(begin(c.in_place ? m.residual : m.residual_out), to - from);
    for (size_t i = 0; i < sums.size(); ++i) {
      const T& want = expected[from + i];
      check(std::memcmp(&sums[i], &want, sizeof(T)) == 0 || (std::isnan(number(sums[i])) && std::isnan(number(want))),
            "residual_out" + of_rank + " has " + std::to_string(number(sums[i])) + " and not " +
                std::to_string(number(want)) + " at " + std::to_string(from + i));
    }
    const std::vector<T> y = copy_out(begin(c.in_place ? m.x : m.y), count);
    if (rank == 0) first_y = y;
    check(same_bits(y, first_y), "y" + of_rank + " has other bits than that of rank 0");
    const auto after = copy_out(begin(c.in_place ? m.x : m.y) + count, kGuard);
    const auto before = copy_out(begin(c.in_place ? m.x : m.y) - kGuard, kGuard);
    const std::vector<char> untouched(kGuard * sizeof(T), static_cast<char>(0xff));
    check(std::memcmp(after.data(), untouched.data(), untouched.size()) == 0 &&
              std::memcmp(before.data(), untouched.data(), untouched.size()) == 0,
          "y" + of_rank + " was written beyond its end");
  }
  for (int64_t row = 0; row < c.rows; ++row) {
    const T* const sums = expected.data() + row * c.cols;
    double squares = 0;
    for (int64_t i = 0; i < c.cols; ++i) squares += static_cast<double>(number(sums[i])) * number(sums[i]);
    const double rstd = 1 / std::sqrt(squares / static_cast<double>(c.cols) + c.options.eps);
    for (int64_t i = 0; i < c.cols; ++i) {
      const double factor = c.weighted ? static_cast<double>(c.options.weight_offset) + number(weight[i]) : 1;
      const double want = number(sums[i]) * rstd * factor, got = number(first_y[row * c.cols + i]);
      // One rounding or two to T, and in float32 that of rstd, which rsqrtf and a sum of cols squares in a tree have.
      const double tolerance = std::abs(want) * (kEpsilon<T> * 1.01 + 2e-6) + 1e-6;
      check(std::isnan(want) ? std::isnan(got) : std::abs(got - want) <= tolerance,
            "y has " + std::to_string(got) + " and not " + std::to_string(want) + " in row " + std::to_string(row) +
                ", element " + std::to_string(i));
    }
  }
}

constexpr size_t kMessage = 1 << 20;

template <class T>
void shapes(int ranks) {
  Group group(ranks, rms_norm::region_bytes(ranks, kMessage));
  std::mt19937 random(1);
  const int64_t wide = 16 / sizeof(T);
  for (const Reduction reduction : {Reduction::one_shot, Reduction::two_shot, Reduction::by_size})
    for (const auto& [rows, cols] : std::vector<std::pair<int64_t, int64_t>>{{1, 1},
                                                                             {1, 7},
                                                                             {3, 31},
                                                                             {2, 1000},
                                                                             {5, 1025},
                                                                             {7, 64 * wide},
                                                                             {3, 300 * wide},
                                                                             {9, 512 * wide},
                                                                             {2, 777 * wide},
                                                                             {3, 1500 * wide},
                                                                             {2, 2100 * wide}}) {
      Case c = {rows, cols};
      c.options.reduction = reduction;
      c.in_place = rows % 2 == 1;
      c.weighted = cols != 31;
      run_case<T>(group, c, random);
      if (rows < 5) continue;
      c.options.rounding = rms_norm::Rounding::llama, c.options.weight_offset = 1, c.options.dependent_launch = true;
      c.offset = 1;
      run_case<T>(group, c, random);
      if constexpr (!std::is_same_v<T, float>) run_case<T, float>(group, c, random);
    }
}

template <class T>
void sharded(int ranks) {
  Group group(ranks, rms_norm::region_bytes(ranks, kMessage));
  std::mt19937 random(2);
  for (const int64_t rows : {1, 2, 3, 7, 8, 33}) {
    Case c = {rows, 512};
    c.options.residual_is_sharded = true;
    c.in_place = rows % 2 == 0;
    run_case<T>(group, c, random);
    c.offset = 1, c.cols = 333;
    run_case<T>(group, c, random);
  }
}

// More rows than blocks, and more than a buffer holds.
template <class T>
void many_rows(int ranks) {
  std::mt19937 random(3);
  for (const size_t message : {size_t{1} << 14, size_t{1} << 20}) {
    Group group(ranks, rms_norm::region_bytes(ranks, message));
    for (const Reduction reduction : {Reduction::one_shot, Reduction::two_shot}) {
      Case c = {2500, 40};
      c.options.reduction = reduction;
      run_case<T>(group, c, random);
      c.rows = 601, c.cols = 256, c.options.residual_is_sharded = reduction == Reduction::two_shot;
      run_case<T>(group, c, random);
    }
  }
}

// What could be taken for memory that nothing has arrived in: NaNs of all bits, and what else comes to mind.
template <class T>
void numbers_like_sentinels(int ranks) {
  Group group(ranks, rms_norm::region_bytes(ranks, kMessage));
  std::mt19937 random(4);
  for (const int byte : {0x00, 0xff, 0x80, 0x3f})
    for (const Reduction reduction : {Reduction::one_shot, Reduction::two_shot})
      for (const int64_t cols : {256, 37}) {
        Case c = {5, cols};
        c.options.reduction = reduction;
        run_case<T>(group, c, random, [&](auto& x) {
          for (auto& of_rank : x) std::memset(static_cast<void*>(of_rank.data()), byte, of_rank.size() * sizeof(T) / 2);
        });
        run_case<T>(group, c, random, [&](auto& x) {
          for (auto& of_rank : x)
            for (T& value : of_rank) value = rounded<T>(-0.0f);
        });
      }
}

// The groups of a type; another file has each type's.
template <class T>
void run_group(const std::string& name, int ranks) {
  if (name == "shapes") shapes<T>(ranks);
  if (name == "sharded") sharded<T>(ranks);
  if (name == "many_rows") many_rows<T>(ranks);
  if (name == "sentinels") numbers_like_sentinels<T>(ranks);
}
extern template void run_group<float>(const std::string&, int);
extern template void run_group<__half>(const std::string&, int);
extern template void run_group<__nv_bfloat16>(const std::string&, int);

}  // namespace all_reduce_test
