// cudaProfilerStart and cudaProfilerStop. simt/analyze, which is on from the start, does not count the launches between
// a stop and the next start; it looks for hazards in all of them. Elsewhere they have no effect.
#pragma once
#include "cuda_runtime_api.h"
