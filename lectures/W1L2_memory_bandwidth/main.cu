// How fast can a GPU copy, and how does one measure it honestly? The kernels are in kernel.cuh, the measuring in
// experiments.cu, the story in README.md.
#include "kernel.cuh"
#include "lesson.h"

int main(int argc, char** argv) { return memory_bandwidth::run(memory_bandwidth::variants, argc, argv); }
