// Kernels beside the stages: one optimization of the document at a time, other block sizes, and the engine's entries.
#include <vector>

#include "assignment1/rms_norm/inference/experiments/engine.cuh"
#include "form.cuh"

namespace ladder::inference {

using namespace controls;

template <unsigned switches, int threads = 128>
constexpr RmsNormAllF32::Launch f32 = controls::launch<float, float, switches, threads>;
template <unsigned switches, int threads = 128>
constexpr RmsNormF32Fp16w::Launch fp16w = controls::launch<float, __half, switches, threads>;
template <unsigned switches, int threads = 128>
constexpr RmsNormPureFp16::Launch fp16 = controls::launch<__half, __half, switches, threads>;

// What the engine's layers do: a tensor of rank 1 goes to one factory, others to the other.
template <class T, class W>
void through_factory(const T* x, const W* weight, T* y, int64_t rows, int64_t cols, float eps, cudaStream_t stream) {
  const auto type = [](auto* of) { return sizeof(*of) == 4 ? Type::float32 : Type::float16; };
  const auto dims = rows == 1 ? std::vector<int64_t>{cols} : std::vector<int64_t>{rows, cols};
  const auto tensor = [&](auto* data, const std::vector<int64_t>& of) {
    return EngineTensor{const_cast<void*>(static_cast<const void*>(data)), type(data), DeviceType::kDeviceCUDA, of};
  };
  const auto run =
      rows == 1 ? get_rmsnorm_kernel(DeviceType::kDeviceCUDA) : get_rmsnorm_dim_kernel(DeviceType::kDeviceCUDA);
  run(tensor(x, dims), tensor(weight, {cols}), tensor(y, dims), eps, stream);
}

const std::vector<AnyStage> all = {
    before_f32::stage,
    Stage<RmsNormAllF32>{"01_with_shuffle", "01 with shuffles alone", f32<shuffle>},
    Stage<RmsNormAllF32>{"01_with_restrict", "01 with __restrict__ alone", f32<restricted>},
    Stage<RmsNormAllF32>{"01_with_unroll", "01 with unrolled loops alone", f32<unrolled>},
    Stage<RmsNormAllF32>{"01_with_ldg", "01 with __ldg alone", f32<ldg>},
    Stage<RmsNormAllF32>{"01_with_block_dim", "01 with a fixed number of threads alone", f32<fixed_block>},
    block_dim::stage,
    Stage<RmsNormAllF32>{"06_through_factory", "06 as the engine calls it", through_factory<float, float>},
    Stage<RmsNormAllF32>{"06_256_threads", "06 with 256 threads", f32<everything, 256>},
    Stage<RmsNormAllF32>{"06_512_threads", "06 with 512 threads", f32<everything, 512>},
    Stage<RmsNormAllF32>{"06_1024_threads", "06 with 1024 threads", f32<everything, 1024>},
    before_fp16w::stage,
    Stage<RmsNormF32Fp16w>{"07_with_weight_64_bit", "07 with 64-bit loads of the weight alone", fp16w<wide>},
    Stage<RmsNormF32Fp16w>{"07_with_shuffle", "07 with shuffles alone", fp16w<shuffle>},
    Stage<RmsNormF32Fp16w>{"07_with_restrict", "07 with __restrict__ alone", fp16w<restricted>},
    Stage<RmsNormF32Fp16w>{"07_with_unroll", "07 with unrolled loops alone", fp16w<unrolled>},
    Stage<RmsNormF32Fp16w>{"07_with_ldg", "07 with __ldg alone", fp16w<ldg>},
    Stage<RmsNormF32Fp16w>{"07_all_but_64_bit", "08 with four loads of the weight", fp16w<everything - wide>},
    weight_64_bit::stage,
    Stage<RmsNormF32Fp16w>{"08_through_factory", "08 as the engine calls it", through_factory<float, __half>},
    before_pure_fp16::stage,
    Stage<RmsNormPureFp16>{"09_with_128_bit", "09 with 128-bit accesses alone", fp16<wide>},
    Stage<RmsNormPureFp16>{"09_with_shuffle", "09 with shuffles alone", fp16<shuffle>},
    Stage<RmsNormPureFp16>{"09_with_restrict", "09 with __restrict__ alone", fp16<restricted>},
    Stage<RmsNormPureFp16>{"09_with_unroll", "09 with unrolled loops alone", fp16<unrolled>},
    Stage<RmsNormPureFp16>{"09_with_ldg", "09 with __ldg alone", fp16<ldg>},
    Stage<RmsNormPureFp16>{"09_all_but_128_bit", "10 with 32-bit accesses", fp16<everything - wide>},
    loads_128_bit::stage,
    Stage<RmsNormPureFp16>{"10_through_factory", "10 as the engine calls it", through_factory<__half, __half>},
    Stage<RmsNormPureFp16>{"10_256_threads", "10 with 256 threads", fp16<everything, 256>},
    Stage<RmsNormPureFp16>{"10_512_threads", "10 with 512 threads", fp16<everything, 512>},
};

}  // namespace ladder::inference

int main(int argc, char** argv) { return ladder::run_all(ladder::inference::all, argc, argv); }
