// CUB's collectives of a warp and of a block. Its device-wide algorithms are not here.
#pragma once
#include "cub/block/block_exchange.cuh"
#include "cub/block/block_load.cuh"
#include "cub/block/block_reduce.cuh"
#include "cub/block/block_scan.cuh"
#include "cub/block/block_store.cuh"
#include "cub/thread/thread_operators.cuh"
#include "cub/thread/thread_reduce.cuh"
#include "cub/warp/warp_reduce.cuh"
#include "cub/warp/warp_scan.cuh"
