#include "kernel.cuh"

int main(int argc, char** argv) { return ladder::run_all({ladder::vector::reduction5::stage}, argc, argv); }
