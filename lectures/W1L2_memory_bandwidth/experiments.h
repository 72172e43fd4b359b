// The four experiments of the lesson, for a GPU. Each returns a table; none prints.
#pragma once
#include <vector>

#include "common/device_buffer.h"
#include "common/timing.h"
#include "table.h"
#include "variant.h"

namespace memory_bandwidth {

// 1, as far as it can be told without a clock: which sectors each variant asks for.
Table modelled_ladder(const std::vector<Variant>& variants);

class Experiments {
 public:
  // Allocates the buffers of all four; throws where the GPU's memory is too small.
  Experiments(const std::vector<Variant>& variants, const ladder::Device& device, int iterations);

  Table copy_ladder();  // 1: every variant on the same bytes; the fastest copy kernel is the ceiling
  Table cold_warm();    // 2: the ceiling at many sizes, out of memory and out of the cache
  Table launch();       // 3: what three ways to time say about kernels that are shorter than their launch
  Table pitfalls();     // 4: wrong ways beside the right one

 private:
  int64_t cold_pairs(int64_t bytes) const;  // buffer pairs of so many bytes each that outgrow the L2 cache together
  void require_right(const Variant& variant, int64_t count, int64_t pairs = 1);  // what is in the buffers after timing
  ladder::Timing time(const Variant& variant, int64_t bytes, int64_t pairs);
  ladder::Timing time_cold(const Variant& variant, int64_t bytes);
  void time_ladder();
  const Variant& ceiling();
  std::string of_datasheet(double bytes, const ladder::Timing& timing) const;

  const std::vector<Variant>& variants_;
  const ladder::Device device_;
  const int iterations_;
  const int64_t half_bytes_;  // of each of the two buffers, which the pairs are cut from
  ladder::DeviceBuffer from_, to_;
  std::vector<ladder::Timing> ladder_;  // a variant each, once measured
  size_t ceiling_ = 0;
};

}  // namespace memory_bandwidth
