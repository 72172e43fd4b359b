// flag_without_number: flags are 1 for raised: those of the launch before are still up.
#pragma once

#include "parts.cuh"

namespace ladder::tensor_parallel::mutants::flag_without_number {

struct Body : parts::RightFlags {
  static __device__ void raise(const Work& w, uint64_t) { signal(w, kParts, 1); }  // the fault: the number
  static __device__ void wait(const Work& w, uint64_t number) { wait_for(w, kParts, 1, number); }
};

inline const Mutant<AllReduceRmsNorm> mutant{"flag_without_number",
                                             "flags that an earlier launch has raised count for this one",
                                             parts::launch_flags<Body>, "of rank"};

}  // namespace ladder::tensor_parallel::mutants::flag_without_number
