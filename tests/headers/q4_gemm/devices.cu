// Products from two threads, each on a stream of its own: on one device, and on two where there are two.
#include <q4_gemm/q4_gemm.cuh>

#include <condition_variable>
#include <cstdio>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "common/check.h"
#include "common/memory.h"
#include "common/operator.h"
#include "common/operators/q4_product.h"
#include "tests.h"

namespace q4_header_test {
namespace {

using Op = ladder::Q4Product;

struct Product {
  Product(const ladder::Operator& op, const ladder::Shape& shape)
      : drawn(op, shape, 1),
        problem(drawn, op.variants(shape).front()),
        workspace(ladder::allocate(q4_gemm::workspace_size(shape[0], shape[1], shape[2]))) {}
  void launch(cudaStream_t stream) {
    const ladder::Arguments a = problem.buffers.arguments();
    const ladder::Shape& s = drawn.shape;
    q4_gemm::Options options;
    options.workspace = workspace.get();
    const q4_gemm::Repacked weights = {a.tensor<void>(Op::kWeights)};
    const cudaError_t now = q4_gemm::multiply(weights, a.tensor<const float>(Op::kX), a.tensor<float>(Op::kY), s[0],
                                              s[1], s[2], nullptr, options, stream);
    if (now != cudaSuccess) error = now;
  }
  const ladder::Case drawn;
  ladder::Problem problem;
  ladder::DeviceMemory<> workspace;
  cudaError_t error = cudaSuccess;
};

// What one thread calls. Its few columns need another amount of shared memory than the other thread's.
struct Side {
  Side(int device, int number) : device(device) {
    CUDA_CHECK(cudaSetDevice(device));
    cudaStream_t made = nullptr;
    CUDA_CHECK(cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking));
    stream.reset(made);
    const ladder::Operator& op = Op::get({ladder::Type::float32, ladder::Type::float32});
    for (const ladder::Shape& shape : {ladder::Shape{{130, 3 + number, 1056}}, ladder::Shape{{64, 40, 512}}})
      products.push_back(std::make_unique<Product>(op, shape));
  }
  void reset() {
    CUDA_CHECK(cudaSetDevice(device));
    for (const auto& product : products) product->problem.buffers.prepare(product->drawn);
    CUDA_CHECK(cudaDeviceSynchronize());
  }
  std::string failure() {
    CUDA_CHECK(cudaSetDevice(device));
    CUDA_CHECK(cudaDeviceSynchronize());
    for (const auto& product : products) {
      ladder::Problem& p = product->problem;
      std::string wrong = product->error ? cudaGetErrorName(product->error) : "";
      if (wrong.empty())
        wrong = p.buffers.verify(product->drawn, p.variant()).failure + p.buffers.side_effects(product->drawn);
      if (!wrong.empty()) return p.context() + ", on device " + std::to_string(device) + ": " + wrong;
    }
    return "";
  }

  int device;
  std::unique_ptr<std::remove_pointer_t<cudaStream_t>, ladder::CudaDeleter<cudaStreamDestroy>> stream;
  std::vector<std::unique_ptr<Product>> products;
};

// Calls in turns, then as they come.
int from_two_threads(const char* name, int times, int first, int second) {
  Side sides[] = {{first, 0}, {second, 1}};
  std::mutex mutex;
  std::condition_variable changed;
  int turn = 0;
  const auto call = [&](int number, bool in_turns) {
    const cudaError_t chosen = cudaSetDevice(sides[number].device);
    for (int i = 0; i < times; ++i)
      for (const auto& product : sides[number].products) {
        std::unique_lock<std::mutex> lock(mutex, std::defer_lock);
        if (in_turns) lock.lock(), changed.wait(lock, [&] { return turn == number; });
        if (chosen == cudaSuccess) product->launch(sides[number].stream.get());
        if (chosen != cudaSuccess) product->error = chosen;
        if (in_turns) turn = 1 - number, changed.notify_one();
      }
  };
  std::string failure;
  for (const bool in_turns : {true, false}) {
    for (Side& side : sides) side.reset();
    std::thread other(call, 1, in_turns);
    call(0, in_turns);
    other.join();
    for (Side& side : sides)
      if (failure.empty()) failure = side.failure();
  }
  CUDA_CHECK(cudaSetDevice(0));
  std::printf("%s  %s\n", failure.empty() ? "pass" : "FAIL", name);
  if (!failure.empty()) std::printf("      %s\n", failure.c_str());
  return failure.empty() ? 0 : 1;
}

}  // namespace

int devices(bool cpu) {
  const int times = cpu ? 4 : 200;
  int failed = from_two_threads("two threads", times, 0, 0), count = 0;
  CUDA_CHECK(cudaGetDeviceCount(&count));
  if (count >= 2) return failed + from_two_threads("two devices", times, 0, 1);
  std::printf("skip  two devices: there is one device\n");
  return failed;
}

}  // namespace q4_header_test
