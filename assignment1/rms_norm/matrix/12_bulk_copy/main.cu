#include "kernel.cuh"

int main(int argc, char** argv) { return ladder::run_all({ladder::matrix::bulk_copy::stage}, argc, argv); }
