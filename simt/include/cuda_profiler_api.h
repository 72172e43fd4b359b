// cudaProfilerStart and cudaProfilerStop: accepted, without effect on the CPU device.
#pragma once
#include "cuda_runtime_api.h"
