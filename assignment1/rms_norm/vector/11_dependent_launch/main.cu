#include "kernel.cuh"

int main(int argc, char** argv) { return ladder::run_all({ladder::vector::dependent_launch::stage}, argc, argv); }
