// Prints the code that CUDA returns for right and wrong uses of its API, and the one that cudaGetLastError() gives
// afterwards. h200.txt is what it printed on an NVIDIA H200 (CUDA 13.0, driver 580); test_error_codes.py compares.
#include <cuda_runtime.h>

#include <cstdio>

#define SAY(call)                                                                           \
  do {                                                                                      \
    const cudaError_t returned = (call), last = cudaGetLastError();                         \
    std::printf("%s: %s, %s\n", #call, cudaGetErrorName(returned), cudaGetErrorName(last)); \
  } while (0)

// A launch: the error right after it, and the one of the next synchronization.
#define LAUNCH(...)                                                                             \
  do {                                                                                          \
    __VA_ARGS__;                                                                                \
    const cudaError_t launch = cudaGetLastError(), run = cudaDeviceSynchronize();               \
    std::printf("%s: %s, %s\n", #__VA_ARGS__, cudaGetErrorName(launch), cudaGetErrorName(run)); \
  } while (0)

__global__ void k(int* p) {
  if (p) p[0] = 1;
}
__global__ void __cluster_dims__(2, 1, 1) kc(int* p) {
  if (p) p[0] = 1;
}
__global__ void __launch_bounds__(128) lb(int* p) {
  if (p) p[0] = 1;
}
__device__ int sym[4];

int main() {
  int *d, *d2;
  int h[16];
  void* v;
  int n;
  size_t sz, sz2;
  cudaStream_t s, s2;
  cudaEvent_t e, e2;
  float ms;
  int* hp;
  SAY(cudaMalloc(&d, 64));
  SAY(cudaMalloc(&d2, 64));
  SAY(cudaMalloc(&v, 0));
  printf("null %d\n", v == nullptr);
  SAY(cudaMalloc(&v, size_t(1) << 50));
  SAY(cudaMalloc((void**)nullptr, 4));
  SAY(cudaFree(nullptr));
  SAY(cudaFree(h));
  SAY(cudaFree(d + 1));
  SAY(cudaMemcpy(d, h, 64, cudaMemcpyHostToDevice));
  SAY(cudaMemcpy(d, h, 64, cudaMemcpyDeviceToHost));
  SAY(cudaMemcpy(h, d, 64, cudaMemcpyHostToDevice));
  SAY(cudaMemcpy(h, h + 8, 16, cudaMemcpyHostToDevice));
  SAY(cudaMemcpy(h, h + 8, 16, cudaMemcpyDeviceToDevice));
  SAY(cudaMemcpy(h, h + 8, 16, cudaMemcpyHostToHost));
  SAY(cudaMemcpy(h, h + 8, 16, cudaMemcpyDefault));
  SAY(cudaMemcpy(d, d2, 64, cudaMemcpyHostToDevice));
  SAY(cudaMemcpy(d, d2, 64, cudaMemcpyDeviceToHost));
  SAY(cudaMemcpy(d, d2, 64, cudaMemcpyHostToHost));
  SAY(cudaMemcpy(d, h, 64, (cudaMemcpyKind)9));
  SAY(cudaMemcpy(nullptr, h, 64, cudaMemcpyHostToDevice));
  SAY(cudaMemcpy(d, nullptr, 64, cudaMemcpyHostToDevice));
  SAY(cudaMemcpy(d, h, 0, cudaMemcpyHostToDevice));
  SAY(cudaMemcpy(nullptr, nullptr, 0, cudaMemcpyHostToDevice));
  SAY(cudaMemset(d, 0, 64));
  SAY(cudaMemset(h, 0, 64));
  SAY(cudaMemset(nullptr, 0, 64));
  SAY(cudaMemcpyToSymbol(sym, h, 16));
  SAY(cudaMemcpyToSymbol(sym, h, 17));
  SAY(cudaMemcpyToSymbol(sym, h, 16, 4));
  SAY(cudaGetSymbolAddress(&v, sym));
  SAY(cudaGetSymbolSize(&sz, sym));
  SAY(cudaGetDevice(&n));
  SAY(cudaSetDevice(7));
  SAY(cudaSetDevice(-1));
  SAY(cudaGetDeviceCount(&n));
  SAY(cudaGetDeviceCount(nullptr));
  cudaDeviceProp prop;
  SAY(cudaGetDeviceProperties(&prop, 9));
  SAY(cudaDeviceGetAttribute(&n, cudaDevAttrWarpSize, 9));
  SAY(cudaDeviceGetAttribute(&n, (cudaDeviceAttr)9999, 0));
  SAY(cudaStreamCreate(&s));
  SAY(cudaStreamQuery(s));
  SAY(cudaStreamDestroy(s));
  SAY(cudaStreamCreate(nullptr));
  SAY(cudaStreamSynchronize(nullptr));
  SAY(cudaStreamDestroy(nullptr));
  SAY(cudaStreamCreateWithFlags(&s2, 77));
  SAY(cudaEventCreate(&e));
  SAY(cudaEventCreate(&e2));
  SAY(cudaEventElapsedTime(&ms, e, e2));
  SAY(cudaEventRecord(e));
  SAY(cudaEventElapsedTime(&ms, e, e2));
  SAY(cudaEventRecord(e2));
  SAY(cudaEventSynchronize(e2));
  SAY(cudaEventElapsedTime(&ms, e, e2));
  SAY(cudaEventQuery(e));
  SAY(cudaEventDestroy(e));
  SAY(cudaEventDestroy(nullptr));
  SAY(cudaEventRecord(nullptr));
  cudaEvent_t e3;
  SAY(cudaEventCreateWithFlags(&e3, cudaEventDisableTiming));
  SAY(cudaEventRecord(e3));
  SAY(cudaEventSynchronize(e3));
  SAY(cudaEventElapsedTime(&ms, e3, e2));
  SAY(cudaEventCreateWithFlags(&e3, 0x100));
  SAY(cudaHostAlloc(&hp, 64, 0));
  SAY(cudaHostAlloc(&hp, 64, 0x100));
  SAY(cudaFreeHost(h));
  SAY(cudaFreeHost(nullptr));
  SAY(cudaMallocManaged(&hp, 64));
  SAY(cudaMallocManaged(&hp, 64, 9));
  SAY(cudaMallocManaged(&hp, 0));
  SAY(cudaMallocHost((void**)&hp, 0));
  SAY(cudaHostRegister(h, 64, 0));
  SAY(cudaHostUnregister(h));
  SAY(cudaHostUnregister(h));
  SAY(cudaMallocPitch(&v, &sz, 100, 10));
  printf("pitch %zu\n", sz);
  SAY(cudaMemcpy2D(v, sz, h, 16, 16, 4, cudaMemcpyHostToDevice));
  SAY(cudaMemcpy2D(v, 8, h, 16, 16, 4, cudaMemcpyHostToDevice));
  SAY(cudaMemGetInfo(&sz, &sz2));
  SAY(cudaMemGetInfo(nullptr, &sz2));
  LAUNCH(k<<<1, 1>>>(d));
  LAUNCH(k<<<0, 1>>>(d));
  LAUNCH(k<<<1, 0>>>(d));
  LAUNCH(k<<<1, 1025>>>(d));
  LAUNCH(k<<<1, dim3(1, 1, 65)>>>(d));
  LAUNCH(k<<<1, dim3(32, 32, 2)>>>(d));
  LAUNCH(k<<<dim3(1, 65536), 1>>>(d));
  LAUNCH(k<<<dim3(1, 1, 65536), 1>>>(d));
  LAUNCH(k<<<dim3(0x80000000u), 1>>>(d));
  LAUNCH(k<<<-1, 1>>>(d));
  LAUNCH(k<<<1, -1>>>(d));
  LAUNCH(k<<<1, 1, 49153>>>(d));
  LAUNCH(k<<<1, 1, 49152>>>(d));
  LAUNCH(k<<<1, 1, 300000>>>(d));
  LAUNCH(k<<<1, dim3(1, 1025)>>>(d));
  LAUNCH(lb<<<1, 256>>>(d));
  LAUNCH(kc<<<3, 32>>>(d));
  LAUNCH(kc<<<4, 32>>>(d));
  SAY(cudaFuncSetAttribute(k, cudaFuncAttributeMaxDynamicSharedMemorySize, 100000));
  LAUNCH(k<<<1, 1, 100000>>>(d));
  SAY(cudaFuncSetAttribute(k, cudaFuncAttributeMaxDynamicSharedMemorySize, 232448));
  SAY(cudaFuncSetAttribute(k, cudaFuncAttributeMaxDynamicSharedMemorySize, 232449));
  SAY(cudaFuncSetAttribute(k, cudaFuncAttributeMaxDynamicSharedMemorySize, -1));
  void* args[] = {&d};
  SAY(cudaLaunchCooperativeKernel((void*)k, dim3(1), dim3(32), args, 0, 0));
  SAY(cudaLaunchCooperativeKernel((void*)k, dim3(1000000), dim3(32), args, 0, 0));
  SAY(cudaLaunchKernel((void*)main, dim3(1), dim3(1), args, 0, 0));
  SAY(cudaLaunchKernel((const void*)nullptr, dim3(1), dim3(1), args, 0, 0));
  cudaLaunchConfig_t c = {};
  c.gridDim = dim3(32);
  c.blockDim = dim3(32);
  cudaLaunchAttribute a[1];
  a[0].id = cudaLaunchAttributeClusterDimension;
  a[0].val.clusterDim.x = 16;
  a[0].val.clusterDim.y = 1;
  a[0].val.clusterDim.z = 1;
  c.attrs = a;
  c.numAttrs = 1;
  SAY(cudaLaunchKernelEx(&c, k, d));
  a[0].val.clusterDim.x = 5;
  SAY(cudaLaunchKernelEx(&c, k, d));
  a[0].val.clusterDim.x = 0;
  SAY(cudaLaunchKernelEx(&c, k, d));
  a[0].val.clusterDim.x = 8;
  SAY(cudaLaunchKernelEx(&c, k, d));
  c.blockDim = dim3(0);
  SAY(cudaLaunchKernelEx(&c, k, d));
  SAY(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&n, k, 256, 0));
  SAY(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&n, k, 2000, 0));
  SAY(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&n, k, 0, 0));
  SAY(cudaDeviceSetLimit((cudaLimit)99, 1));
  SAY(cudaDeviceGetLimit(&sz, cudaLimitStackSize));
  cudaGraph_t g;
  cudaGraphExec_t ge;
  SAY(cudaStreamCreate(&s));
  SAY(cudaStreamEndCapture(s, &g));
  SAY(cudaStreamBeginCapture(nullptr, cudaStreamCaptureModeGlobal));
  SAY(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
  SAY(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
  k<<<1, 1, 0, s>>>(d);
  SAY(cudaGetLastError());
  SAY(cudaStreamQuery(s));
  SAY(cudaStreamEndCapture(s, &g));
  SAY(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
  k<<<1, 1, 0, s>>>(d);
  SAY(cudaStreamSynchronize(s));
  SAY(cudaStreamEndCapture(s, &g));
  SAY(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
  k<<<1, 1, 0, s>>>(d);
  SAY(cudaDeviceSynchronize());
  SAY(cudaStreamEndCapture(s, &g));
  SAY(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
  k<<<1, 1, 0, s>>>(d);
  SAY(cudaMalloc(&d2, 64));
  SAY(cudaStreamEndCapture(s, &g));
  SAY(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
  k<<<1, 1, 0, s>>>(d);
  SAY(cudaMemcpy(d, h, 64, cudaMemcpyHostToDevice));
  SAY(cudaStreamEndCapture(s, &g));
  SAY(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
  k<<<1, 1, 0, s>>>(d);
  SAY(cudaStreamEndCapture(s, &g));
  SAY(cudaGraphInstantiate(&ge, g, 0));
  SAY(cudaGraphLaunch(ge, s));
  SAY(cudaGraphExecDestroy(ge));
  SAY(cudaGraphDestroy(g));
  SAY(cudaPeekAtLastError());
  printf("%s | %s\n", cudaGetErrorString((cudaError_t)12345), cudaGetErrorString(cudaErrorIllegalAddress));
  cudaPointerAttributes pa;
  SAY(cudaPointerGetAttributes(&pa, h));
  printf("type %d\n", pa.type);
  SAY(cudaPointerGetAttributes(&pa, d));
  printf("type %d\n", pa.type);
  LAUNCH(k<<<1, 1>>>((int*)1024));
  SAY(cudaMalloc(&v, 4));
  SAY(cudaFree(d));
  LAUNCH(k<<<1, 1>>>(d));
  SAY(cudaDeviceReset());
  SAY(cudaMalloc(&d, 4));
  LAUNCH(k<<<1, 1>>>(d));
}
