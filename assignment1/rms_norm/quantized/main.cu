// The ladder: every stage of the norm that ends in 8 bits, checked and, on a GPU, timed.
#include "stages.cuh"

int main(int argc, char** argv) { return ladder::run_all(ladder::quantized::stages, argc, argv); }
