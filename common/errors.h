// How a program ends early.
#pragma once
#include <stdexcept>

namespace ladder {

// Says in one sentence what is wrong with the command line. Exit code 2.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// --help was asked for; what() is the text. Exit code 0.
struct HelpAsked : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace ladder
