// The header alone in two files, of which each makes instances of it; it refuses null pointers.
#include <rms_norm/rms_norm.cuh>

cudaError_t call(const float* x, float* y) { return rms_norm::forward(x, x, y, 1, 1); }
