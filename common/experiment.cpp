#include "common/experiment.h"

#include "common/text.h"

namespace ladder {

Cells time_cells(const Timing& timing) {
  return {text("%.*f", timing.microseconds < 10 ? 3 : 2, timing.microseconds), text("%.1f", timing.spread_percent)};
}

Cells rate_cells(double bytes, const Timing& timing, const Device& device) {
  const double rate = 1e6 * bytes / timing.microseconds, peak = device.peak_bytes_per_second;
  return {text("%.1f", rate / 1e9), peak > 0 ? text("%.1f", 100.0 * rate / peak) : ""};
}

std::string size_text(int64_t bytes) {
  const char* const units[] = {"bytes", "KiB", "MiB", "GiB"};
  double size = static_cast<double>(bytes);
  int unit = 0;
  for (; size >= 1024 && unit < 3; ++unit) size /= 1024;
  return text("%.4g %s", size, units[unit]);
}

void append(Cells& row, std::initializer_list<Cells> parts) {
  for (const Cells& part : parts) row.insert(row.end(), part.begin(), part.end());
}

}  // namespace ladder
