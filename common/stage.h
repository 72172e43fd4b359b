// A stage, a mutant, and the three programs built from them. Light on purpose: every kernel.cuh includes this file.
#pragma once
#include <cuda_runtime_api.h>

#include <cstdint>
#include <vector>

namespace ladder {

// y = x / sqrt(mean(x²) + eps) · weight for each row. input and output: rows × cols floats, contiguous, not necessarily
// aligned beyond 4 bytes; weight: cols floats or nullptr. Launches on the stream and returns without waiting.
using Launch = void (*)(const float* input, const float* weight, float* output, int64_t rows, int64_t cols, float eps,
                        cudaStream_t stream);

// How the kernel's main loop touches global memory.
struct AccessModel {
  int input_reads;    // times each input element is read
  int access_bytes;   // bytes one lane moves per load: 4 (float) or 16 (float4)
  bool lane_per_row;  // true: neighbouring lanes are whole rows apart; false: they read neighbouring elements
};

struct Stage {
  const char* name;     // the folder's name: "05_warp_shuffle"
  const char* summary;  // one line for --list
  Launch launch;
  AccessModel model;
  int min_compute_capability = 0;  // 90 for a stage that needs Hopper; elsewhere it is skipped, and counted as skipped
};

// Where a fault shows reliably. One that depends on the order of threads shows on the CPU device, one that depends on
// two kernels running at the same time on a GPU of compute capability 9.0 or newer.
enum class Shows { anywhere, on_cpu_device, on_hopper };

// A known-wrong kernel. The checks that a stage must pass must reject it.
struct Mutant {
  const char* name;
  const char* fault;  // what is wrong, one line
  Launch launch;
  Shows shows;
  int64_t rows, cols;  // the shape that shows it; 0, 0: the hurtful shapes
  const char* expect;  // what the rejection's message must contain
};

// Each returns the program's exit code: 0 all right, 1 a wrong result or a CUDA failure, 2 a bad command line.
int run_stage(const Stage& stage, int argc, char** argv);
int run_ladder(const std::vector<Stage>& stages, int argc, char** argv);

// One mutant per process, since a fault may end the CUDA context. 1: rejected, as it should be; 0: it passed;
// 77: this device cannot show it.
int run_mutants(const std::vector<Mutant>& mutants, int argc, char** argv);

}  // namespace ladder
