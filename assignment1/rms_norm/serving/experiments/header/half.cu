#include "header_of.cuh"

void ladder::serving::header_half(const ServingCall& call, cudaStream_t stream) { header_of<__half>(call, stream); }
