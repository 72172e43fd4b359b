// The command line as every program reads it: each refusal is one sentence that says what to give instead. Only
// command_line.cpp includes CLI11, which takes longer to compile than most programs that have options.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/errors.h"

namespace ladder {

class CommandLine {
 public:
  explicit CommandLine(const std::string& about, const std::string& footer = "");
  ~CommandLine();

  // An option whose value must be a whole number in [lowest, highest], none of them negative.
  template <class T>
  void add_number(const std::string& name, T& value, T lowest, T highest, const std::string& allowed,
                  const std::string& help, T step = 1) {  // a multiple of step
    add_whole_number(name, static_cast<uint64_t>(value), static_cast<uint64_t>(lowest), static_cast<uint64_t>(highest),
                     static_cast<uint64_t>(step), allowed, help,
                     [&value](uint64_t number) { value = static_cast<T>(number); });
  }
  // One of several names, whose place becomes the value.
  void add_choice(const std::string& name, int64_t& value, const std::vector<const char*>& choices,
                  const std::string& help);
  void add_text(const std::string& name, std::string& value, const std::string& type, const std::string& help);
  // Several values, with commas or by repeating the option.
  void add_list(const std::string& name, std::vector<std::string>& values, const std::string& type,
                const std::string& help);
  void add_list(const std::string& name, std::vector<int64_t>& values, const std::string& type,
                const std::string& help);
  void add_flag(const std::string& name, bool& value, const std::string& help);
  void add_flag(const std::string& name, const std::function<void()>& when_given, const std::string& help);

  // Throws UsageError or HelpAsked.
  void parse(int argc, const char* const* argv);
  bool was_given(const std::string& name) const;

 private:
  void add_whole_number(const std::string& name, uint64_t value, uint64_t lowest, uint64_t highest, uint64_t step,
                        const std::string& allowed, const std::string& help, const std::function<void(uint64_t)>& set);

  struct Parser;
  std::unique_ptr<Parser> parser_;
};

}  // namespace ladder
