#pragma once
#include "cub/details/device.h"

namespace cub {

struct DeviceHistogram {  // of one channel; samples beyond the first and the last level are left out
  template <class In, class Counter, class Level, class N>
  static cudaError_t HistogramEven(void* temp, std::size_t& bytes, In in, Counter* histogram, int levels, Level lower,
                                   Level upper, N n, cudaStream_t stream = nullptr) {
    return detail::run(temp, bytes, "cub::DeviceHistogram", stream, [=, from = detail::raw(in)] {
      std::fill_n(histogram, levels - 1, Counter(0));
      for (N i = 0; i < n; ++i) {
        const Level sample = static_cast<Level>(from[i]);
        if (sample < lower || !(sample < upper)) continue;
        if constexpr (std::is_integral_v<Level>)
          ++histogram[static_cast<std::int64_t>(sample - lower) * (levels - 1) /
                      static_cast<std::int64_t>(upper - lower)];
        else
          ++histogram[std::min(static_cast<int>((sample - lower) * (Level(levels - 1) / (upper - lower))), levels - 2)];
      }
    });
  }
  template <class In, class Counter, class Level, class N>
  static cudaError_t HistogramRange(void* temp, std::size_t& bytes, In in, Counter* histogram, int levels,
                                    const Level* bounds, N n, cudaStream_t stream = nullptr) {
    return detail::run(temp, bytes, "cub::DeviceHistogram", stream, [=, from = detail::raw(in)] {
      std::fill_n(histogram, levels - 1, Counter(0));
      for (N i = 0; i < n; ++i) {
        const auto bin = std::upper_bound(bounds, bounds + levels, static_cast<Level>(from[i])) - bounds - 1;
        if (bin >= 0 && bin < levels - 1) ++histogram[bin];
      }
    });
  }
};

}  // namespace cub
