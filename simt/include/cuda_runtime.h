// The header that nvcc includes before every CUDA file.
#pragma once
#include <assert.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cuda_runtime_api.h"
#include "vector_functions.h"
#include "vector_types.h"

#ifdef SIMT_ANALYSIS  // sections of their own, by which the analysis distinguishes constant from global memory
#define SIMT_TEXT_OF(x) #x
#define SIMT_TEXT(x) SIMT_TEXT_OF(x)
#define __constant__ __device__ __attribute__((section("simt_constant." SIMT_TEXT(__COUNTER__))))
#else
#define __constant__ __device__
#endif
#define __managed__ __attribute__((section("simt_managed")))
#define __grid_constant__
#define __forceinline__ inline
#define __align__(n) __attribute__((aligned(n)))
#define __builtin_align__(n) __align__(n)
#ifndef __CUDACC__  // in CUDA files the translator reads these
#define __device__
#define __host__
#define __global__
#define __shared__
#define __launch_bounds__(...)
#endif

#ifdef __CUDACC__
#include <cmath>
#include <cstdlib>
#include <new>
#include <utility>

#include "simt/core.h"
#include "simt/device.h"
#include "simt/launch.h"
#include "simt/math.h"
#include "simt/texture.h"  // of ../extras
#endif
