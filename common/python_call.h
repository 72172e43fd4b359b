// For kernels that Python calls with pointers: the CPU device refuses host memory that it does not know.
#pragma once
#include <cuda_runtime_api.h>

#include <cstddef>

namespace ladder {

// On the CPU device, makes an array of host memory known to it, for as long as this lives. On a GPU it does nothing.
class Lent {
 public:
  Lent(const void* pointer, size_t bytes) : pointer_(const_cast<void*>(pointer)) {
#ifdef __SIMT__
    lent_ = pointer != nullptr && bytes > 0 && cudaHostRegister(pointer_, bytes, 0) == cudaSuccess;
    cudaGetLastError();  // an array that is lent already, as input and output at once
#else
    (void)bytes;
#endif
  }
  ~Lent() {
    if (!lent_) return;
    cudaDeviceSynchronize();
    cudaHostUnregister(pointer_);
  }
  Lent(const Lent&) = delete;
  Lent& operator=(const Lent&) = delete;

 private:
  void* pointer_;
  bool lent_ = false;
};

}  // namespace ladder
