#include "kernel.cuh"

int main(int argc, char** argv) { return ladder::run_all({ladder::backward::dependent_launch::stage}, argc, argv); }
