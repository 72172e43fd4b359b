#pragma once
#include <string>

namespace ladder {

// A file that appears whole or not at all: written beside itself, then renamed.
class CsvFile {
 public:
  // Throws UsageError, which names the option that gave the path, if the file cannot be written. No path: no file.
  explicit CsvFile(const std::string& path, const char* option = "--csv");
  void write(const std::string& content) const;

 private:
  std::string option_, path_, partial_;
};

}  // namespace ladder
