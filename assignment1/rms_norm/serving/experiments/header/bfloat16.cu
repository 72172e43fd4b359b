#include "header_of.cuh"

void ladder::serving::header_bfloat16(const ServingCall& call, cudaStream_t stream) {
  header_of<__nv_bfloat16>(call, stream);
}
