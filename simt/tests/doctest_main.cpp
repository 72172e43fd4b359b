// doctest's own code and main, linked into every test.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#define DOCTEST_CONFIG_NO_POSIX_SIGNALS  // faults are the device's
#include <doctest/doctest.h>
