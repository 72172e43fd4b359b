// Tests of include/q4_gemm: products of every kind on the operator's edge cases against exact sums, in both thread
// orders on the CPU device. On a GPU:   make -C tests/headers/q4_gemm BACKEND=cuda run
#include <q4_gemm/q4_gemm.cuh>

#include <cstdio>
#include <vector>

#include "common/check.h"
#include "common/command_line.h"
#include "common/memory.h"
#include "common/operator.h"
#include "common/operators/q4_product.h"
#include "common/program.h"
#include "common/report.h"
#include "tests.h"

namespace q4_header_test {
namespace {

using ladder::Type;
using Op = ladder::Q4Product;

template <class T>
constexpr Type type_of = std::is_same_v<T, float>    ? Type::float32
                         : std::is_same_v<T, __half> ? Type::float16
                                                     : Type::bfloat16;

int64_t stride_of(const ladder::Variant& variant, int tensor, int64_t contiguous) {
  const int64_t stride = variant.places[tensor].layout.stride;
  return stride > 0 ? stride : contiguous;
}

// Shapes in which x comes into the slots, with fewer and with more slots than a warp has chunks.
struct XInSlots : q4_gemm::policies::H200 {
  static constexpr q4_gemm::FewChoice kFew[] = {
      {4, q4_gemm::kAnySize, q4_gemm::kAnySize, 4, 4, 8, 4, 8, 1, true, 2},
      {8, q4_gemm::kAnySize, q4_gemm::kAnySize, 8, 2, 2, 2, 8, 1, true, 1},
      {q4_gemm::kAnySize, q4_gemm::kAnySize, q4_gemm::kAnySize, 2, 2, 4, 3, 16, 2, true, 4},
  };
  static constexpr int64_t kManyFrom = q4_gemm::kAnySize;
};

// k in as many parts as there may be, which a measured policy asks for in larger products only.
struct InParts : q4_gemm::policies::H200 {
  static constexpr int64_t kManyFrom = 17;
  static constexpr q4_gemm::ManyChoice kMany[] = {{32, 1, 2, 1, /*chunk=*/1.0f, /*block=*/0.0f, /*share=*/0.0f}};
};

// One kind of product on all edge cases, up to the first that is wrong. W is Repacked or Blocks, B void for no bias.
// `quantized`: x is quantized by a call of its own. `dependent`: with the launches that may overlap.
template <class W, class X, class Y, class B = void, class Policy = q4_gemm::DefaultPolicy>
int products(const char* name, bool cpu, bool quantized = false, bool dependent = false) {
  Op::Types types = {type_of<X>, type_of<Y>};
  types.repacked = std::is_same_v<W, q4_gemm::Repacked>;
  if constexpr (!std::is_void_v<B>) types.bias = type_of<B>;
  const ladder::Operator& op = Op::get(types);
  int passed = 0;
  std::string failure;
  for (const ladder::Shape& shape : op.edge_cases(cpu)) {
    const int64_t m = shape[0], n = shape[1], k = shape[2];
    const ladder::Case drawn(op, shape, 1);
    const ladder::DeviceMemory<> numbers = ladder::allocate(q4_gemm::quantized_size(n, k));
    const ladder::DeviceMemory<> workspace = ladder::allocate(q4_gemm::workspace_size(m, n, k) + 16);
    for (const ladder::Variant& variant : op.variants(shape)) {
      q4_gemm::Options options;
      options.x_stride = stride_of(variant, Op::kX, k);
      options.y_stride = stride_of(variant, Op::kY, m);
      options.dependent_launch = dependent;
      options.workspace = workspace.get();
      const ladder::Launcher launch = [&](const ladder::Arguments& a, cudaStream_t stream) {
        const W weights = {a.tensor<void>(Op::kWeights)};
        const auto multiply = [&](const auto& x) {
          if constexpr (std::is_void_v<B>)
            CUDA_CHECK(q4_gemm::multiply<Policy>(weights, x, a.tensor<Y>(Op::kY), m, n, k, nullptr, options, stream));
          else
            CUDA_CHECK(q4_gemm::multiply<Policy>(weights, x, a.tensor<Y>(Op::kY), m, n, k, a.tensor<const B>(Op::kBias),
                                                 options, stream));
        };
        if (quantized) {
          CUDA_CHECK(q4_gemm::quantize(a.tensor<const X>(Op::kX), numbers.get(), n, k, options, stream));
          multiply(q4_gemm::Quantized{numbers.get()});
        } else {
          multiply(a.tensor<const X>(Op::kX));
        }
      };
      ladder::Problem problem(drawn, variant);
      const ladder::Outcome outcome = problem.check(launch, ladder::thread_orders(cpu));
      if (!outcome.failure.empty()) {
        failure = problem.context() + ": " + outcome.failure;
        break;
      }
      ++passed;
    }
    if (!failure.empty()) break;
  }
  std::printf("%s  %s, %d problems\n", failure.empty() ? "pass" : "FAIL", name, passed);
  if (!failure.empty()) std::printf("      %s\n", failure.c_str());
  std::fflush(stdout);
  return failure.empty() ? 0 : 1;
}

int body(bool quick, bool products_only) {
  using q4_gemm::Blocks;
  using q4_gemm::Repacked;
  ladder::require_device();
  const ladder::Device device = ladder::current_device();
  std::printf("%s\n", device.line().c_str());
  const bool cpu = device.cpu;
  // A part that fails is the last one that runs.
  bool failed = false;
  if (!products_only) {
    failed = arguments() || activations() || devices(cpu);
#ifndef FEW_PARTS
    // Elsewhere scales are always exact.
    failed = failed || batch_invariance() ||
             ((cpu || device.compute_capability == 90) && (rounded_scales() || repeated(cpu)));
#endif
  }
  failed = failed || products<Repacked, __half, __half, __half>("repacked, float16 with bias", cpu) ||
           products<Repacked, __nv_bfloat16, float, void, InParts>("repacked, bfloat16 quantized before, k in parts",
                                                                   cpu, true, true) ||
           products<Repacked, float, float, void, XInSlots>("repacked, float32 in slots", cpu, true, true);
#ifndef FEW_KINDS  // which are enough to see that the header is wrong
  if (!quick)
    failed = failed || products<Repacked, float, float>("repacked, float32", cpu) ||
             products<Repacked, __nv_bfloat16, __nv_bfloat16, float>("repacked, bfloat16 with a float32 bias", cpu) ||
             products<Repacked, float, __nv_bfloat16>("repacked, float32 to bfloat16, dependent", cpu, false, true) ||
             products<Blocks, float, float>("blocks, float32", cpu) ||
             products<Blocks, __nv_bfloat16, __half, __nv_bfloat16>("blocks, bfloat16 to float16 with bias", cpu);
#endif
  std::printf(failed ? "failed\n" : "all right\n");
  return failed ? 1 : 0;
}

}  // namespace
}  // namespace q4_header_test

int main(int argc, char** argv) {
  return ladder::guarded(argv[0], [&] {
    bool quick = false, products_only = false;
    ladder::CommandLine line("Tests include/q4_gemm: products of every kind against exact sums.",
                             "Exit code: 0 all right, 1 a wrong result, 2 a bad command line or a failure of CUDA.");
    line.add_flag("--quick", quick, "three kinds of products, for tools that take their time");
    line.add_flag("--products", products_only, "the products alone");
    line.parse(argc, argv);
    return q4_header_test::body(quick, products_only);
  });
}
