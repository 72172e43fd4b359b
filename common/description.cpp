#include "common/description.h"

// A file of its own: the linker takes it from the library only where the program brings no description.
const ladder::Description ladder::description = {"", "", {}};
