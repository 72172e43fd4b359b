#include "bench/tune/rms_norm/instance.cuh"

static const tune::Candidates<void, tune::Access::strided> candidates;
