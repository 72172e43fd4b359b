#include "stages.cuh"

int main(int argc, char** argv) { return ladder::run_ladder(ladder::transpose::stages, argc, argv); }
