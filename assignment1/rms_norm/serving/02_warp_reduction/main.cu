#include "kernel.cuh"

int main(int argc, char** argv) { return ladder::run_all({ladder::serving::warp_reduction::stage}, argc, argv); }
