#pragma once
#include "cub/device/device_reduce.cuh"
