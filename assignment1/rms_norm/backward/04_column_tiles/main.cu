#include "kernel.cuh"

int main(int argc, char** argv) { return ladder::run_all({ladder::backward::column_tiles::stage}, argc, argv); }
