// Measures every shape of kernel that a policy of the header may choose: make tune, which then writes this GPU's
// policy. On the CPU device, which is never timed, every shape is checked instead:
//   make -C bench/tune/rms_norm BACKEND=cpu run
#include "bench/tune/core.h"

int main(int argc, char** argv) { return tune::program(argc, argv); }
