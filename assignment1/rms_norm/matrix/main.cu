// The ladder: every stage of the row-wise RMSNorm, checked on the same inputs and, on a GPU, timed side by side.
#include "stages.cuh"

int main(int argc, char** argv) { return ladder::run_all(ladder::matrix::stages, argc, argv); }
