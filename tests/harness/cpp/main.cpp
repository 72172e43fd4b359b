#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>

#include "common/description.h"

// As make writes it for a ladder.
const ladder::Description ladder::description = {"test", "01_basic", {{"cols", 4096}}};
