#pragma once
#include "cub/config.cuh"
