// refilled_too_early: with a single buffer, the next tile is fetched into it while other threads still read this one.
#pragma once
#include "parts.cuh"

namespace ladder::hopper::mutants::refilled_too_early {

__global__ void copy_kernel(const float* from, float* to, int64_t n, int64_t whole) {
  __shared__ alignas(128) parts::Buffers buffers;
  buffers.make_ready();
  buffers.fetch(from, blockIdx.x, whole, 0);
  bool parity = false;
  for (int64_t tile = blockIdx.x; tile < whole; tile += gridDim.x) {
    buffers.wait(0, parity);
    __syncthreads();
    buffers.write(to, tile, 0);
    buffers.fetch(from, tile + gridDim.x, whole, 0);  // the fault: no barrier before it
    parity = !parity;
  }
  parts::copy_rest(from, to, whole, n);
}

inline const Mutant<Copy> mutant{"refilled_too_early", "no barrier before a buffer is used again",
                                 parts::launch_tiles<copy_kernel>, "elements wrong", Shows::on_cpu_device};

}  // namespace ladder::hopper::mutants::refilled_too_early
