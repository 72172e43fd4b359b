#include "table.h"

#include "common/report.h"
#include "common/text.h"

namespace memory_bandwidth {
namespace {

std::string version_text(int version) { return ladder::text("%d.%d", version / 1000, version % 1000 / 10); }

}  // namespace

std::string Table::print() const {
  std::vector<std::vector<std::string>> shown(1 + rows.size());
  for (size_t column = 0; column < columns.size(); ++column) {
    if (columns[column].heading == nullptr) continue;
    shown[0].push_back(columns[column].heading);
    for (size_t row = 0; row < rows.size(); ++row) {
      const std::string& cell = rows[row][column];
      shown[1 + row].push_back(cell.empty() ? "-" : cell + columns[column].unit);
    }
  }
  return title + "\n" + ladder::align(shown, left) + remarks;
}

std::string Table::csv(const ladder::Device& device) const {
  const std::vector<std::pair<const char*, std::string>> environment = {
      {"gpu", device.name},
      {"cuda_runtime", version_text(device.runtime)},
      {"driver", version_text(device.driver)},
      {"date", ladder::today()},
      {"sm_clock_mhz", device.sm_clock_khz > 0 ? std::to_string(device.sm_clock_khz / 1000) : ""}};
  std::vector<std::string> header;
  for (const Column& column : columns) header.push_back(column.name);
  for (const auto& entry : environment) header.push_back(entry.first);
  std::string out = ladder::csv_line(header);
  for (std::vector<std::string> cells : rows) {
    for (const auto& entry : environment) cells.push_back(entry.second);
    out += ladder::csv_line(cells);
  }
  return out;
}

}  // namespace memory_bandwidth
