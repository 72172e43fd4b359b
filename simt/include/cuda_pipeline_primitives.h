// cp.async as C functions: a thread copies 4, 8 or 16 bytes from global to shared memory and waits for them later.
#pragma once
#include "cuda_awbarrier_primitives.h"
#include "simt/async_copy.h"

// The last `zero_fill` of the `size` bytes are zeros instead of what the source holds.
inline void __pipeline_memcpy_async(void* destination, const void* source, size_t size, size_t zero_fill = 0,
                                    simt::Site site = simt::Site::here()) {
  if (size != 4 && size != 8 && size != 16)
    simt::device_fault(cudaErrorLaunchFailure, "__pipeline_memcpy_async copies 4, 8 or 16 bytes", site);
  if (zero_fill > size)
    simt::device_fault(cudaErrorLaunchFailure, "__pipeline_memcpy_async is asked to fill more bytes than it copies",
                       site);
  if (!simt::is_shared(destination))
    simt::device_fault(cudaErrorInvalidAddressSpace, "the destination of __pipeline_memcpy_async is not shared memory",
                       site);
  if (simt::is_shared(source))
    simt::device_fault(cudaErrorInvalidAddressSpace, "the source of __pipeline_memcpy_async is not global memory",
                       site);
  simt::check_alignment(destination, source, size, size, site);
  simt::async_copy(destination, source, size, zero_fill);
}

inline void __pipeline_commit() { simt::async_commit(); }
// All but the newest `prior` committed batches of this thread have landed. The instruction counts to eight.
inline void __pipeline_wait_prior(size_t prior) { simt::async_wait(std::min<size_t>(prior, 8)); }
