#include "stages.cuh"

int main(int argc, char** argv) { return ladder::run_all(ladder::first_kernel::stages, argc, argv); }
