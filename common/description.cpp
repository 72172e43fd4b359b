#include "common/description.h"

// This is a file of its own because the linker takes it from the library only if the program has no description.
const ladder::Description ladder::description = {"", "", {}};
