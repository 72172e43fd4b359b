#include "header_of.cuh"

void ladder::serving::header_float(const ServingCall& call, cudaStream_t stream) { header_of<float>(call, stream); }
