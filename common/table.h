// Tables that are printed for people and written as CSV for scripts.
#pragma once
#include <string>
#include <vector>

#include "common/device.h"

namespace ladder {

// Aligns columns to their widest cell, the first `left` of them to the left. The first row is the header.
std::string align(const std::vector<std::vector<std::string>>& rows, size_t left);

// One line of a CSV, cells quoted where they must be.
std::string csv_line(const std::vector<std::string>& cells);

// The text after `head`, broken at spaces into lines of at most 100 columns that align with its start.
std::string wrap(const std::string& head, const std::string& body);

std::string today();  // "2026-01-31"

struct Column {
  const char* name;       // in the CSV, with its unit
  const char* heading;    // on the screen; nullptr: in the CSV only
  const char* unit = "";  // after each cell on the screen
};

struct Table {
  std::string title;  // above the table, lines
  std::vector<Column> columns;
  std::vector<std::vector<std::string>> rows;  // one cell per column; empty: not measured
  std::string remarks;                         // below the table, lines
  size_t left = 1;                             // this many columns on the screen are words

  std::string print() const;
  // Every row ends with the environment: gpu, cuda_runtime, driver, date, sm_clock_mhz (the highest clock; the clocks
  // are as found).
  std::string csv(const Device& device) const;
};

}  // namespace ladder
