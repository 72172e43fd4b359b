// Experiment 2: the engine's layers, factory functions and entries, asked for everything that they serve and for what
// they do not. What is served is also compared with the oracle.
#include <functional>

#include "common/check.h"
#include "common/operators/typed_rms_norm.h"
#include "common/text.h"
#include "engine.h"
#include "experiments.h"

namespace ladder::inference {
namespace {

using Op = TypedRmsNorm;
constexpr auto kCPU = DeviceType::kDeviceCPU, kCUDA = DeviceType::kDeviceCUDA;
constexpr Type kF32 = Type::float32, kF16 = Type::float16, kBf16 = Type::bfloat16;

struct Asked {
  const char* entry;
  std::function<Entry*()> get;
  Op::Types types;
  std::vector<int64_t> dims;
  DeviceType device = kCUDA;
  std::function<void(EngineTensor& input, EngineTensor& weight, EngineTensor& output)> change = {};
  const char* changed = "";
};

// A layer on the GPU as an entry.
template <class Layer>
void forward(const EngineTensor& input, const EngineTensor& weight, const EngineTensor& output, float eps,
             cudaStream_t stream) {
  Layer layer;
  layer.device = kCUDA, layer.weight = weight, layer.eps = eps;
  layer.forward(input, output, stream);
}

std::vector<Asked> questions() {
  const auto row = [] { return get_rmsnorm_kernel(kCUDA); };
  const auto dim = [] { return get_rmsnorm_dim_kernel(kCUDA); };
  const auto row_before = [] { return get_rmsnorm_kernel(kCUDA, Version::before); };
  const auto dim_before = [] { return get_rmsnorm_dim_kernel(kCUDA, Version::before); };
  const auto row_cpu = [] { return get_rmsnorm_kernel(kCPU); };
  const auto dim_cpu = [] { return get_rmsnorm_dim_kernel(kCPU); };
  const char *row_name = "get_rmsnorm_kernel(CUDA)", *dim_name = "get_rmsnorm_dim_kernel(CUDA)";
  const std::vector<int64_t> one = {1000}, two = {3, 1000}, three = {2, 3, 1000};
  const Op::Types f32 = {kF32, kF32, kF32}, fp16w = {kF32, kF16, kF32}, fp16 = {kF16, kF16, kF16};

  std::vector<Asked> all;
  for (const Op::Types& types : {f32, fp16w, fp16}) {
    all.push_back({row_name, row, types, one});
    all.push_back({dim_name, dim, types, two});
    all.push_back({"the same, before", row_before, types, one});
    all.push_back({"the same, before", dim_before, types, two});
    all.push_back({"get_rmsnorm_kernel(CPU)", row_cpu, types, one, kCPU});
    all.push_back({"get_rmsnorm_dim_kernel(CPU)", dim_cpu, types, two, kCPU});
  }
  all.push_back({dim_name, dim, f32, three});
  const auto layer = [] { return &forward<RmsNormLayer>; };
  const auto dim_layer = [] { return &forward<RMSNormDimLayer>; };
  const char *layer_name = "RmsNormLayer::forward", *dim_layer_name = "RMSNormDimLayer::forward";
  for (const Op::Types& types : {f32, fp16w, fp16}) {
    all.push_back({layer_name, layer, types, one});
    all.push_back({layer_name, layer, types, two});
  }
  all.push_back({layer_name, layer, f32, three});
  all.push_back({dim_layer_name, dim_layer, fp16, two});
  all.push_back({dim_layer_name, dim_layer, f32, three});
  all.push_back({"rmsnorm_kernel_cu_pure_fp16", [] { return &after::rmsnorm_kernel_cu_pure_fp16; }, fp16, one});
  all.push_back({"rmsnorm_kernel_cu_pure_fp16_dim", [] { return &after::rmsnorm_kernel_cu_pure_fp16_dim; }, fp16, two});

  all.push_back({"rmsnorm_kernel_cu_pure_fp16", [] { return &after::rmsnorm_kernel_cu_pure_fp16; }, f32, one});
  for (const Op::Types& types : {Op::Types{kF16, kF32, kF16}, Op::Types{kF16, kF16, kF32}, Op::Types{kF32, kF32, kF16},
                                 Op::Types{kBf16, kBf16, kBf16}})
    all.push_back({dim_name, dim, types, two});
  all.push_back({row_name, row, f32, two});
  all.push_back({dim_name, dim, f32, one});
  all.push_back({dim_layer_name, dim_layer, f32, one});
  all.push_back({dim_name, dim, f32, two, kCUDA,
                 [](EngineTensor&, EngineTensor& weight, EngineTensor&) { weight.dims = {999}; }, "a shorter weight"});
  all.push_back({dim_name, dim, f32, two, kCUDA,
                 [](EngineTensor& input, EngineTensor&, EngineTensor& output) { output.data = input.data; },
                 "in place"});
  all.push_back({dim_name, dim, f32, two, kCUDA,
                 [](EngineTensor&, EngineTensor& weight, EngineTensor&) { weight.device = kCPU; },
                 "a weight in the host's memory"});
  all.push_back(
      {"get_rmsnorm_kernel(unknown)", [] { return get_rmsnorm_kernel(DeviceType::kDeviceUnknown); }, f32, one});
  return all;
}

std::string described(const Asked& asked) {
  std::string dims;
  for (const int64_t length : asked.dims)
    dims += (dims.empty() ? "" : " x ") + text("%lld", static_cast<long long>(length));
  return dims + (*asked.changed ? text(", %s", asked.changed) : "");
}

// The name of the function that gave the right result. Throws NotServed, or runtime_error for a wrong result.
std::string answer(const Asked& asked, bool cpu_device) {
  const Operator& op = Op::get(asked.types);
  EngineTensor input{nullptr, asked.types.x, asked.device, asked.dims};
  EngineTensor weight{nullptr, asked.types.weight, asked.device, {asked.dims.back()}};
  EngineTensor output{nullptr, asked.types.y, asked.device, asked.dims};
  const Case given(op, {{input.rows(), input.cols()}}, 1);
  const Variant variant = op.plain();
  const float eps = static_cast<float>(variant.scalars[Op::kEps]);
  const auto call = [&](void* x, void* w, void* y, cudaStream_t stream) {
    input.data = x, weight.data = w, output.data = y;
    if (asked.change) asked.change(input, weight, output);
    asked.get()(input, weight, output, eps, stream);
  };
  if (asked.device == kCUDA) {
    const auto launch = [&](const Arguments& a, cudaStream_t stream) {
      call(a.tensors[Op::kX], a.tensors[Op::kWeight], a.tensors[Op::kY], stream);
    };
    const std::string failure = Problem(given, variant).check(launch, thread_orders(cpu_device)).failure;
    if (!failure.empty()) throw std::runtime_error(text("%s: %s", asked.entry, failure.c_str()));
    return kernel_for(asked.dims.size() > 1, input, weight, output);
  }
  const int64_t count = given.tensors[Op::kY].count();
  std::vector<char> got(count * size_of(asked.types.y));
  call(given.inputs[Op::kX].data(), given.inputs[Op::kWeight].data(), got.data(), nullptr);
  std::vector<double> expected(count), low(count), high(count);
  given.oracle->answer(variant, Op::kY, 0, count, {expected.data(), low.data(), high.data()});
  for (int64_t i = 0; i < count; ++i) {
    const double y = element(asked.types.y, got.data(), i);
    if (!(y >= low[i] && y <= high[i]))
      throw std::runtime_error(text("%s: element %lld is wrong", asked.entry, static_cast<long long>(i)));
  }
  return asked.dims.size() > 1 ? "rmsnorm_kernel_cpu_dim" : "rmsnorm_kernel_cpu";
}

}  // namespace

Table dispatch(const Report& report) {
  Table table;
  table.title = "Experiment 2: which kernel serves a call, or why none does";
  table.columns = {{"asked", "asked"},   {"input", "input"}, {"weight", "weight"},
                   {"output", "output"}, {"dims", "dims"},   {"answer", "answer"}};
  table.left = 6;
  for (const Asked& asked : questions()) {
    std::string said;
    try {
      said = answer(asked, report.device.cpu);
    } catch (const NotServed& refusal) {
      said = std::string("refused: ") + refusal.what();
    }
    table.rows.push_back({asked.entry, name_of(asked.types.x), name_of(asked.types.weight), name_of(asked.types.y),
                          described(asked), said});
  }
  return table;
}

}  // namespace ladder::inference
