// Measures every shape of kernel that a policy of include/q4_gemm may choose: make tune S=q4_gemm, which then writes
// this GPU's policies. On the CPU device, which is never timed, every shape is checked instead:
//   make -C bench/tune/q4_gemm BACKEND=cpu run
#include "bench/tune/core.h"

int main(int argc, char** argv) { return tune::program(argc, argv); }
