// Defines the instances that usual_types.cuh declares.
#define RMS_NORM_INSTANTIATE template
#include "usual_types.cuh"
