// Sizes, rates, and how a figure is written.
#pragma once
#include <string>

#include "common/text.h"
#include "common/timing.h"
#include "variant.h"

namespace memory_bandwidth {

constexpr int64_t kKiB = 1024, kMiB = 1024 * kKiB, kGiB = 1024 * kMiB;
constexpr int64_t kLadderBytes = 512 * kMiB;  // of one buffer

// The byte model: a copy reads each byte of a buffer and writes it again.
inline double moved_bytes(const Variant& variant, int64_t bytes) {
  return static_cast<double>(bytes) * (variant.moves == Moves::copy ? 2 : 1);
}

// Bytes a second. Whether that deserves the name of a bandwidth depends on where the bytes were.
inline double rate(double bytes, const ladder::Timing& timing) { return bytes / (timing.microseconds * 1e-6); }

inline std::string rate_text(double bytes, const ladder::Timing& timing) {
  return ladder::text("%.1f", rate(bytes, timing) / 1e9);
}
inline std::string microseconds_text(const ladder::Timing& timing) {
  return ladder::text("%.*f", timing.microseconds < 10 ? 3 : 2, timing.microseconds);
}
inline std::string spread_text(const ladder::Timing& timing) { return ladder::text("%.1f", timing.spread_percent); }

// "64 KiB", "1 GiB"
inline std::string size_text(double bytes) {
  const char* const units[] = {"bytes", "KiB", "MiB", "GiB"};
  int unit = 0;
  for (; bytes >= 1024 && unit < 3; ++unit) bytes /= 1024;
  return ladder::text("%.4g %s", bytes, units[unit]);
}

}  // namespace memory_bandwidth
