#include "kernel.cuh"

int main(int argc, char** argv) { return ladder::run_all({ladder::matrix::critical_path::stage}, argc, argv); }
