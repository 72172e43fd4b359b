#include "kernel.cuh"

int main(int argc, char** argv) { return ladder::run_all({ladder::inference::restrict_pointers::stage}, argc, argv); }
