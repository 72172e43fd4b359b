#include "common/table.h"

#include <algorithm>
#include <ctime>
#include <sstream>

#include "common/text.h"

namespace ladder {
namespace {

// Columns on a terminal: UTF-8 continuation bytes take none.
size_t width(const std::string& cell) {
  return static_cast<size_t>(std::count_if(cell.begin(), cell.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

std::string quoted(const std::string& cell) {
  if (cell.find_first_of(",\"\n") == std::string::npos) return cell;
  std::string result = "\"";
  for (const char c : cell) result += c == '"' ? std::string("\"\"") : std::string(1, c);
  return result + "\"";
}

std::string version_text(int version) { return text("%d.%d", version / 1000, version % 1000 / 10); }

}  // namespace

std::string today() {
  char date[16];
  const std::time_t now = std::time(nullptr);
  std::strftime(date, sizeof date, "%Y-%m-%d", std::localtime(&now));
  return date;
}

std::string wrap(const std::string& head, const std::string& body) {
  std::string all, line = head;
  std::istringstream words(body);
  for (std::string word; words >> word;) {
    if (line.size() > head.size() && width(line) + 1 + width(word) > 100) {
      all += line + "\n";
      line = std::string(head.size(), ' ');
    }
    line += (line.size() > head.size() ? " " : "") + word;
  }
  return all + line + "\n";
}

std::string csv_line(const std::vector<std::string>& cells) {
  std::string line;
  for (size_t i = 0; i < cells.size(); ++i) line += (i ? "," : "") + quoted(cells[i]);
  return line + "\n";
}

std::string align(const std::vector<std::vector<std::string>>& rows, size_t left) {
  std::vector<size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width(row[i]));
  }
  std::string result;
  for (const auto& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      const std::string fill(widths[i] - width(row[i]), ' ');
      line += (i ? "  " : "") + (i < left ? row[i] + fill : fill + row[i]);
    }
    result += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return result;
}

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
  return title + "\n" + align(shown, left) + remarks;
}

std::string Table::csv(const Device& device) const {
  const std::vector<std::pair<const char*, std::string>> environment = {
      {"gpu", device.name},
      {"cuda_runtime", version_text(device.runtime)},
      {"driver", version_text(device.driver)},
      {"date", today()},
      {"sm_clock_mhz", device.sm_clock_khz > 0 ? std::to_string(device.sm_clock_khz / 1000) : ""}};
  std::vector<std::string> header;
  for (const Column& column : columns) header.push_back(column.name);
  for (const auto& entry : environment) header.push_back(entry.first);
  std::string out = csv_line(header);
  for (std::vector<std::string> cells : rows) {
    for (const auto& entry : environment) cells.push_back(entry.second);
    out += csv_line(cells);
  }
  return out;
}

}  // namespace ladder
