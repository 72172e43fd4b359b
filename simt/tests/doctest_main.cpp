// doctest's own code and main, linked into every test.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#define DOCTEST_CONFIG_NO_POSIX_SIGNALS  // faults are the device's
#include <doctest/doctest.h>

#include <cstdlib>

// Some tests say what is not there before the wait for a copy.
static const int late = setenv("SIMT_COPIES", "late", 0);
