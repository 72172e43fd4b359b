#include "stages.cuh"

int main(int argc, char** argv) { return ladder::run_all(ladder::reduction::stages, argc, argv); }
