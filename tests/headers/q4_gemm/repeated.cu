// The same product again and again, by each shape of kernel for many columns: the bits of y must not change. In eight
// parts of k, so that the last step of other blocks, in which a cluster reads its shared memory, keeps a block's own
// reads waiting. On an H200 a thread's arrival at a barrier once overtook its reads, and the next copy did too.
#include <q4_gemm/q4_gemm.cuh>

#include <cstdio>
#include <iterator>
#include <utility>
#include <vector>

#include "common/cuda_check.h"
#include "common/memory.h"
#include "common/operators/q4_blocks.h"
#include "common/random.h"
#include "on_device.h"
#include "tests.h"

namespace q4_header_test {
namespace {

using namespace q4_gemm;

__global__ void count_different(const unsigned* one, const unsigned* other, int64_t count, unsigned* different) {
  const int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i < count && one[i] != other[i]) atomicAdd(different, 1u);
}

struct Repeated {
  int64_t m, n, k;
  int launches;
  ladder::DeviceMemory<> packed, workspace;
  ladder::DeviceMemory<float> x, y, first;
  ladder::DeviceMemory<unsigned> different;

  Repeated(int64_t m, int64_t n, int64_t k, int launches)
      : m(m),
        n(n),
        k(k),
        launches(launches),
        packed(ladder::allocate(packed_size(m, k))),
        workspace(ladder::allocate(workspace_size(m, n, k))),
        y(ladder::allocate<float>(m * n)),
        first(ladder::allocate<float>(m * n)),
        different(ladder::allocate<unsigned>(1)) {
    std::vector<float> numbers(n * k), weights(ladder::kBlock);
    for (int64_t i = 0; i < n * k; ++i) numbers[i] = ladder::uniform(ladder::hash32(1, i)) - 0.5f;
    x = on_device(numbers);
    std::vector<ladder::block_q4_0> blocks(m * k / ladder::kBlock);
    for (size_t block = 0; block < blocks.size(); ++block) {
      for (int i = 0; i < ladder::kBlock; ++i)
        weights[i] = ladder::uniform(ladder::hash32(2, block % 4099 * ladder::kBlock + i)) - 0.5f;
      blocks[block] = ladder::quantized_q4_0(weights.data());
    }
    CUDA_CHECK(repack(on_device(blocks).get(), packed.get(), m, k));
    CUDA_CHECK(cudaDeviceSynchronize());
  }

  template <class Shape>
  int shape() {
    constexpr int kParts = 8;
    unsigned count = 0;
    CUDA_CHECK(cudaMemset(different.get(), 0, sizeof count));
    for (int i = 0; i < launches; ++i) {
      float* to = i == 0 ? first.get() : y.get();
      CUDA_CHECK(cudaMemset(to, 0xff, m * n * sizeof *to));
      const detail::ManyProblem<float, float> problem = {{packed.get(), m, k}, nullptr, nullptr, to, m, m, n};
      bool done = false;
      CUDA_CHECK(detail::launch_many<Shape>(problem, detail::columns_of<float>(x.get(), n, k, k), workspace.get(),
                                            kParts, k, true, nullptr, done));
      if (!done) return 0;  // a GPU without wgmma
      if (i > 0)
        count_different<<<static_cast<unsigned>((m * n + 255) / 256), 256>>>(
            reinterpret_cast<unsigned*>(first.get()), reinterpret_cast<unsigned*>(y.get()), m * n, different.get());
    }
    CUDA_CHECK(cudaGetLastError());
    CUDA_CHECK(cudaMemcpy(&count, different.get(), sizeof count, cudaMemcpyDeviceToHost));
    if (count > 0)
      std::printf("FAIL  repeated, %s scales, columns %d, groups %d, ways %d, together %d: %u elements\n",
                  Shape::kScales == Scales::exact ? "exact" : "rounded", Shape::kColumns, Shape::kGroups, Shape::kWays,
                  Shape::kBlocksPerSm, count);
    return count > 0 ? 1 : 0;
  }

  template <class Policy, size_t... i>
  int shapes(std::index_sequence<i...>) {
    return (shape<detail::ManyShape<Policy::kMany[i].columns, Policy::kMany[i].groups, Policy::kMany[i].ways,
                                    Policy::kScales, Policy::kMany[i].together>>() +
            ...);
  }
  template <class Policy>
  int shapes() {
    return shapes<Policy>(std::make_index_sequence<std::size(Policy::kMany)>());
  }
};

}  // namespace

int repeated(bool cpu) {
  Repeated test = cpu ? Repeated(70, 40, 1056, 2) : Repeated(4096, 256, 14336, 200);
  const int failed = test.shapes<policies::H200>() + test.shapes<policies::H200Rounded>();
  if (failed == 0) std::printf("pass  repeated\n");
  return failed;
}

}  // namespace q4_header_test
