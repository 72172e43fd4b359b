#include "bench/tune/instance.cuh"

static const tune::Candidates<void, tune::Access::contiguous> candidates;
