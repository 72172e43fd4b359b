// The production header once more, for this program.
#include "assignment1/rms_norm/inference/experiments/production.cu"
