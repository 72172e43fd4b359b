#include "common/command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include "common/text.h"

namespace ladder {

struct CommandLine::Parser {
  CLI::App app;
};

CommandLine::CommandLine(const std::string& about, const std::string& footer) : parser_(new Parser{CLI::App(about)}) {
  parser_->app.footer(footer);
}

CommandLine::~CommandLine() = default;

void CommandLine::add_whole_number(const std::string& name, uint64_t value, uint64_t lowest, uint64_t highest,
                                   uint64_t step, const std::string& allowed, const std::string& help,
                                   const std::function<void(uint64_t)>& set) {
  parser_->app
      .add_option_function<std::string>(
          name,
          [=](const std::string& given) {
            const bool digits = !given.empty() && given.find_first_not_of("0123456789") == std::string::npos;
            errno = 0;
            const unsigned long long number = digits ? std::strtoull(given.c_str(), nullptr, 10) : 0;
            if (!digits || errno != 0 || number < lowest || number > highest || number % step != 0)
              throw UsageError(text("%s '%s': give %s", name.c_str(), given.c_str(), allowed.c_str()));
            set(number);
          },
          help)
      ->type_name("N")
      ->default_str(std::to_string(value));
}

void CommandLine::add_choice(const std::string& name, int64_t& value, const std::vector<const char*>& choices,
                             const std::string& help) {
  std::string allowed;
  for (const char* choice : choices) allowed += (allowed.empty() ? "" : ", ") + std::string(choice);
  parser_->app
      .add_option_function<std::string>(
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

void CommandLine::add_text(const std::string& name, std::string& value, const std::string& type,
                           const std::string& help) {
  parser_->app.add_option(name, value, help)->type_name(type);
}

void CommandLine::add_list(const std::string& name, std::vector<std::string>& values, const std::string& type,
                           const std::string& help) {
  parser_->app.add_option(name, values, help)->delimiter(',')->type_name(type);
}

void CommandLine::add_list(const std::string& name, std::vector<int64_t>& values, const std::string& type,
                           const std::string& help) {
  parser_->app.add_option(name, values, help)->delimiter(',')->type_name(type);
}

void CommandLine::add_flag(const std::string& name, bool& value, const std::string& help) {
  parser_->app.add_flag(name, value, help);
}

void CommandLine::add_flag(const std::string& name, const std::function<void()>& when_given, const std::string& help) {
  parser_->app.add_flag_function(
      name, [when_given](int64_t) { when_given(); }, help);
}

// CLI11's own complaints become one sentence that ends with what to do.
void CommandLine::parse(int argc, const char* const* argv) {
  CLI::App& app = parser_->app;
  app.get_formatter()->column_width(26);
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    throw HelpAsked(app.help());
  } catch (const CLI::ExtrasError&) {
    throw UsageError("unknown argument " + app.remaining().front() + ": see --help for what this program takes");
  } catch (const CLI::ArgumentMismatch&) {
    throw UsageError(std::string(argv[argc - 1]) + " needs a value after it: see --help");
  } catch (const CLI::ParseError& error) {
    std::string message = error.what();
    std::replace(message.begin(), message.end(), '\n', ' ');
    throw UsageError(message + ": see --help");
  }
}

bool CommandLine::was_given(const std::string& name) const { return parser_->app.count(name) > 0; }

}  // namespace ladder
