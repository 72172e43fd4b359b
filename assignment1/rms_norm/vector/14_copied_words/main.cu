#include "kernel.cuh"

int main(int argc, char** argv) { return ladder::run_all({ladder::vector::copied_words::stage}, argc, argv); }
