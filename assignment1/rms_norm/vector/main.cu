// The ladder: every stage of the RMSNorm of one row, checked on the same inputs and, on a GPU, timed side by side.
#include "stages.cuh"

int main(int argc, char** argv) { return ladder::run_ladder(ladder::vector::stages, argc, argv); }
