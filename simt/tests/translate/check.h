// Each program here exits 0 when every check held.
#pragma once
#include <cstdio>
#include <cstdlib>

#define CHECK(condition)                                          \
  do {                                                            \
    if (!(condition)) {                                           \
      std::printf("%s:%d: %s\n", __FILE__, __LINE__, #condition); \
      std::exit(1);                                               \
    }                                                             \
  } while (0)

// Device memory for one value that the host reads back.
template <typename T>
struct Cell {
  T* device;
  Cell() {
    cudaMalloc(reinterpret_cast<void**>(&device), 64 * sizeof(T));
    cudaMemset(device, 0, 64 * sizeof(T));
  }
  ~Cell() { cudaFree(device); }
  T get(int i = 0) const {
    T value;
    CHECK(cudaDeviceSynchronize() == cudaSuccess);
    CHECK(cudaMemcpy(&value, device + i, sizeof(T), cudaMemcpyDeviceToHost) == cudaSuccess);
    return value;
  }
};
