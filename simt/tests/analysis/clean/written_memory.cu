// All that writes device memory, with values that fresh memory might have too; and structures with gaps.
#include <cublas_v2.h>
#include <curand.h>
#include <thrust/device_vector.h>
#include <thrust/fill.h>
#include <thrust/sort.h>
#include <cstring>
#include <cub/cub.cuh>
#include <vector>
#include "../program.h"

constexpr int kCount = 64;

struct alignas(16) Sparse {
  double x;
  int tag;  // the last four bytes have no member
};

__global__ void store_all(int* data, int value) { data[threadIdx.x] = value; }

__global__ void copy_bytes(int* to, const int* from, size_t size) {
  if (threadIdx.x == 0) memcpy(to, from, size);
}

__global__ void exchange_first(int* data) {
  atomicExch(&data[threadIdx.x], -1);
  atomicAdd(&data[threadIdx.x], 1);
}

__global__ void take(int* keys) { atomicCAS(&keys[threadIdx.x], -1, static_cast<int>(threadIdx.x)); }

__global__ void set_members(Sparse* items, float4* points) {
  items[threadIdx.x].x = 1;
  items[threadIdx.x].tag = -1;
  points[threadIdx.x].x = points[threadIdx.x].y = points[threadIdx.x].z = 0;  // and w is not used
}

__global__ void copy_whole(Sparse* items, float4* points) {
  const Sparse item = items[threadIdx.x];
  const float4 point = points[threadIdx.x];
  items[kCount + threadIdx.x] = item;
  points[kCount + threadIdx.x] = point;
}

__global__ void add_up(const int* data, size_t pitch, int rows, int columns, int* sum) {
  int own = 0;
  for (int row = 0; row < rows; ++row) {
    const int* line = reinterpret_cast<const int*>(reinterpret_cast<const char*>(data) + row * pitch);
    for (int column = threadIdx.x; column < columns; column += blockDim.x) own += line[column];
  }
  atomicAdd(sum, own);
}

template <class T = int>
T* fresh(size_t count = kCount) {
  T* data;
  cudaMalloc(&data, count * sizeof(T));
  return data;
}

int main() {
  int* sum = zeros<int>(1);
  const auto read = [&](const void* data, size_t pitch = 0, int rows = 1, int columns = kCount) {
    add_up<<<1, 32>>>(static_cast<const int*>(data), pitch, rows, columns, sum);
  };
  const std::vector<int> ones(kCount, -1);
  constexpr size_t kBytes = kCount * sizeof(int);

  int* copied = fresh();
  cudaMemcpy(copied, ones.data(), kBytes, cudaMemcpyHostToDevice);
  read(copied);
  int* from_device = fresh();
  cudaMemcpyAsync(from_device, copied, kBytes, cudaMemcpyDeviceToDevice);
  read(from_device);
  int* set = fresh();
  cudaMemset(set, 0xFF, kBytes);
  take<<<1, kCount>>>(set);

  int* rows;
  size_t pitch;
  cudaMallocPitch(&rows, &pitch, 16 * sizeof(int), 8);
  cudaMemcpy2D(rows, pitch, ones.data(), 8 * sizeof(int), 8 * sizeof(int), 8, cudaMemcpyHostToDevice);
  read(rows, pitch, 8, 8);
  cudaMemset2D(rows + 8, pitch, 0xFF, 8 * sizeof(int), 8);
  read(rows, pitch, 8, 16);

  int *stored = fresh(), *by_bytes = fresh(), *exchanged = fresh();
  store_all<<<1, kCount>>>(stored, -1);
  copy_bytes<<<1, 32>>>(by_bytes, stored, kBytes);
  exchange_first<<<1, kCount>>>(exchanged);
  for (const int* data : {stored, by_bytes, exchanged}) read(data);

  auto* items = fresh<Sparse>(2 * kCount);
  auto* points = fresh<float4>(2 * kCount);
  set_members<<<1, kCount>>>(items, points);
  copy_whole<<<1, kCount>>>(items, points);

  int *managed, *pinned, *pooled;
  cudaMallocManaged(&managed, kBytes);
  cudaMallocHost(&pinned, kBytes);
  cudaMallocAsync(&pooled, kBytes, nullptr);
  std::memset(managed, 0xFF, kBytes);
  std::memset(pinned, 0xFF, kBytes);
  cudaMemsetAsync(pooled, 0xFF, kBytes, nullptr);
  for (const int* data : {managed, pinned, pooled}) read(data);

  cudaStream_t stream;
  cudaGraph_t graph;
  cudaGraphExec_t executable;
  cudaStreamCreate(&stream);
  int* by_graph = fresh();
  cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
  cudaMemsetAsync(by_graph, 0xFF, kBytes, stream);
  cudaStreamEndCapture(stream, &graph);
  cudaGraphInstantiate(&executable, graph, 0);
  cudaGraphLaunch(executable, stream);
  cudaStreamSynchronize(stream);
  read(by_graph);

  thrust::device_vector<int> vector(kCount, -1);
  int* filled = fresh();
  thrust::fill(thrust::device_pointer_cast(filled), thrust::device_pointer_cast(filled + kCount), -1);
  thrust::sort(vector.begin(), vector.end());
  read(thrust::raw_pointer_cast(vector.data()));
  read(filled);
  int* scanned = fresh();
  size_t size = 0;
  cub::DeviceScan::InclusiveScan(nullptr, size, filled, scanned, cub::Max(), kCount);
  char* scratch = fresh<char>(size);
  cub::DeviceScan::InclusiveScan(scratch, size, filled, scanned, cub::Max(), kCount);
  read(scanned);

  float *drawn = fresh<float>(), *scaled = fresh<float>();
  curandGenerator_t generator;
  curandCreateGenerator(&generator, CURAND_RNG_PSEUDO_DEFAULT);
  curandGenerateUniform(generator, drawn, kCount);
  read(drawn);
  cublasHandle_t blas;
  cublasCreate(&blas);
  cublasScopy(blas, kCount, reinterpret_cast<float*>(copied), 1, scaled, 1);
  read(scaled);
  return cudaDeviceSynchronize() != cudaSuccess;
}
