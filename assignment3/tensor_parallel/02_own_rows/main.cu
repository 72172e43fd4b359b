#include "kernel.cuh"

int main(int argc, char** argv) { return ladder::run_all({ladder::tensor_parallel::own_rows::stage}, argc, argv); }
