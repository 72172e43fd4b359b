// CUDA's cooperative groups: blocks, tiles, coalesced threads, clusters and cooperative grids. The multi-device
// multi_grid_group is absent, as in CUDA 13.
#pragma once
#include "cooperative_groups/details/grid.h"
#include "cooperative_groups/details/invoke.h"
#include "cooperative_groups/details/lanes.h"
#include "cooperative_groups/details/partition.h"
#include "cooperative_groups/details/thread_block.h"
#include "cooperative_groups/details/thread_group.h"
#include "cooperative_groups/details/tile.h"
