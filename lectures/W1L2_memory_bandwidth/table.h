// A table that is printed for people and written as CSV for scripts.
#pragma once
#include <string>
#include <vector>

#include "common/roofline.h"

namespace memory_bandwidth {

struct Column {
  const char* name;       // in the CSV, with its unit
  const char* heading;    // on the screen; nullptr: in the CSV only
  const char* unit = "";  // behind each cell on the screen
};

struct Table {
  const char* name;   // of the CSV, without .csv
  std::string title;  // above the table, lines
  std::vector<Column> columns;
  std::vector<std::vector<std::string>> rows;  // a cell a column; empty: not measured
  std::string remarks;                         // below the table, lines
  size_t left = 1;                             // so many columns on the screen are words

  std::string print() const;
  // Every row ends with the environment: gpu, cuda_runtime, driver, date, sm_clock_mhz (the highest clock; the clocks
  // are as found).
  std::string csv(const ladder::Device& device) const;
};

}  // namespace memory_bandwidth
