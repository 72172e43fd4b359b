// Parsing with CLI11 as every program does it: each refusal is one sentence that says what to give instead.
#pragma once
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <string>
#include <vector>

#include "common/options.h"
#include "common/text.h"

namespace ladder {

// Adds an option whose value must be a whole number in [lowest, highest].
template <class T>
void add_number(CLI::App& app, const std::string& name, T& value, T lowest, T highest, const std::string& allowed,
                const std::string& help) {
  app.add_option_function<std::string>(
         name,
         [=, &value](const std::string& given) {
           const bool digits = !given.empty() && given.find_first_not_of("0123456789") == std::string::npos;
           errno = 0;
           const unsigned long long number = digits ? std::strtoull(given.c_str(), nullptr, 10) : 0;
           if (!digits || errno != 0 || number < static_cast<unsigned long long>(lowest) ||
               number > static_cast<unsigned long long>(highest))
             throw UsageError(text("%s '%s': give %s", name.c_str(), given.c_str(), allowed.c_str()));
           value = static_cast<T>(number);
         },
         help)
      ->type_name("N")
      ->default_str(std::to_string(value));
}

// One of several names, whose place becomes the value.
inline void add_choice(CLI::App& app, const std::string& name, int64_t& value, const std::vector<const char*>& choices,
                       const std::string& help) {
  std::string allowed;
  for (const char* choice : choices) allowed += (allowed.empty() ? "" : ", ") + std::string(choice);
  app.add_option_function<std::string>(
         name,
         [=, &value](const std::string& given) {
           const auto found = std::find(choices.begin(), choices.end(), given);
           if (found == choices.end())
             throw UsageError(text("%s '%s': give one of %s", name.c_str(), given.c_str(), allowed.c_str()));
           value = found - choices.begin();
         },
         help + ": " + allowed)
      ->type_name("NAME")
      ->default_str(choices[value]);
}

// CLI11's own complaints, as one sentence that ends with what to do.
inline void parse(CLI::App& app, int argc, const char* const* argv) {
  app.get_formatter()->column_width(26);
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    throw HelpAsked(app.help());
  } catch (const CLI::ExtrasError&) {
    throw UsageError("unknown argument " + app.remaining().front() + ": see --help for what this program takes");
  } catch (const CLI::ParseError& error) {
    std::string message = error.what();
    std::replace(message.begin(), message.end(), '\n', ' ');
    throw UsageError(message + ": see --help");
  }
}

}  // namespace ladder
