// Measures every form in which the header may compute gradients: make tune S=backward, which then writes this GPU's
// policy. On the CPU device, which is never timed, every form is checked instead:
//   make -C bench/tune/backward BACKEND=cpu run
#include "bench/tune/core.h"

int main(int argc, char** argv) { return tune::program(argc, argv); }
