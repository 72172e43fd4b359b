#include "bench/tune/rms_norm/instance.cuh"

static const tune::Candidates<__nv_bfloat16, tune::Access::contiguous> candidates;
