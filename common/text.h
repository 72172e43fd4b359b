// printf into a string.
#pragma once
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <string>

namespace ladder {

__attribute__((format(printf, 1, 2))) inline std::string text(const char* format, ...) {
  va_list args, again;
  va_start(args, format);
  va_copy(again, args);
  std::string result(std::vsnprintf(nullptr, 0, format, args), '\0');
  std::vsnprintf(result.data(), result.size() + 1, format, again);
  va_end(again);
  va_end(args);
  return result;
}

}  // namespace ladder
