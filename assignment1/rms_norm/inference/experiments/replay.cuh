// The RMSNorm calls of one step of a model, in the model's order and shapes, and what they take.
#pragma once

#include <cuda_fp8.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "assignment1/rms_norm/inference/experiments/engine.h"
#include "assignment1/rms_norm/inference/experiments/production.h"
#include "assignment1/rms_norm/inference/experiments/to_float8.h"
#include "common/experiment.h"
#include "common/memory.h"
#include "common/operators/typed_rms_norm.h"
#include "common/random.h"
#include "common/text.h"
#include "common/timing.h"

namespace ladder::inference {

// Hidden size, layers and heads as the models' configurations have them. A layer normalizes the hidden state twice; a
// model whose heads have a size here also normalizes each head's query and key.
struct Model {
  const char* name;
  Type x, weight;
  int64_t hidden;
  int layers;
  int64_t query_heads = 0, key_heads = 0, head_size = 0;
};
constexpr Model kModels[] = {
    {"Qwen3-8B-fp16", Type::float16, Type::float16, 4096, 36, 32, 8, 128},
    {"Qwen3-8B-AWQ", Type::float32, Type::float16, 4096, 36, 32, 8, 128},
    {"Qwen2.5-7B", Type::float32, Type::float32, 3584, 28},
    {"Qwen2.5-7B-fp16", Type::float16, Type::float16, 3584, 28},
    {"Qwen3-VL-8B-fp16", Type::float16, Type::float16, 4096, 36, 32, 8, 128},
};

// float8: the norms of the hidden state, which products follow, end in float8 with a scale of each row.
enum class Variety { before, after, header, dependent, float8, empty };
constexpr Variety kVarieties[] = {Variety::before,    Variety::after,  Variety::header,
                                  Variety::dependent, Variety::float8, Variety::empty};
constexpr const char* kVarietyNames[] = {
    "before", "after", "header", "header, dependent launch", "header, dependent launch, to float8", "empty kernels"};

static __global__ void empty_kernel() {}

class Step {
 public:
  // tokens: 1 for a decode step, whose hidden state is one row. In a check each call has an output of its own; in a
  // measurement calls of one shape share it, as a model's calls do.
  Step(const Model& model, int64_t tokens, uint64_t seed, bool own_outputs) : model_(model), tokens_(tokens) {
    const Source hidden = source(tokens, model.hidden, seed);
    const Source query = source(tokens * model.query_heads, model.head_size, seed + 1);
    const Source key = source(tokens * model.key_heads, model.head_size, seed + 2);
    const std::shared_ptr<char> shared[] = {memory(hidden), memory(query), memory(key)};
    const auto add = [&](int kind, const Source& from) {
      calls_.push_back({from, weight(from.cols, seed + 3 + calls_.size()), own_outputs ? memory(from) : shared[kind]});
    };
    for (int layer = 0; layer < model.layers; ++layer) {
      add(0, hidden);
      if (model.head_size > 0) add(1, query), add(2, key);
      add(0, hidden);
    }
    add(0, hidden);
    CUDA_CHECK(cudaDeviceSynchronize());  // the streams of the launches do not wait for the uploads
  }

  int64_t calls() const { return static_cast<int64_t>(calls_.size()); }
  int64_t hidden_calls() const { return 2 * model_.layers + 1; }

  void launch(Variety variety, cudaStream_t stream) const {
    for (const Call& call : calls_) launch(call, variety, stream);
  }

  // Throws if an output of a launch of the whole step is wrong.
  void check(Variety variety, const std::function<void(cudaStream_t)>& run, cudaStream_t stream) const {
    for (const Call& call : calls_) CUDA_CHECK(cudaMemsetAsync(call.output.get(), 0xff, bytes(call.from), stream));
    run(stream);
    CUDA_CHECK(cudaStreamSynchronize(stream));
    for (size_t i = 0; i < calls_.size(); ++i) {
      const std::string wrong = fault(calls_[i], variety);
      if (!wrong.empty())
        throw std::runtime_error(text("%s, %s, call %zu of %zu: %s", model_.name,
                                      kVarietyNames[static_cast<int>(variety)], i + 1, calls_.size(), wrong.c_str()));
    }
  }

 private:
  static constexpr float kEps = 1e-6f;

  // An input of the calls, on the device and on the host.
  struct Source {
    int64_t rows = 0, cols = 0;
    std::shared_ptr<char> device;
    std::shared_ptr<std::vector<float>> host;  // as rounded to the type
    std::shared_ptr<std::vector<double>> rstd;
  };
  struct Weight {
    std::shared_ptr<char> device;
    std::vector<float> host;
  };
  struct Call {
    Source from;
    Weight weight;
    std::shared_ptr<char> output;
  };

  int64_t bytes(const Source& of) const { return of.rows * of.cols * size_of(model_.x); }
  std::shared_ptr<char> memory(const Source& of) const { return allocate<char>(bytes(of)); }

  // Uploads numbers, and replaces them by what their type makes of them.
  static std::shared_ptr<char> upload(Type type, std::vector<float>& numbers) {
    const int64_t count = static_cast<int64_t>(numbers.size());
    std::vector<char> stored(count * size_of(type));
    for (int64_t i = 0; i < count; ++i) {
      set_element(type, stored.data(), i, numbers[i]);
      numbers[i] = static_cast<float>(element(type, stored.data(), i));
    }
    std::shared_ptr<char> device = allocate<char>(count * size_of(type));
    CUDA_CHECK(cudaMemcpy(device.get(), stored.data(), stored.size(), cudaMemcpyHostToDevice));
    return device;
  }

  Source source(int64_t rows, int64_t cols, uint64_t seed) const {
    Source made{rows, cols, nullptr, std::make_shared<std::vector<float>>(rows * cols),
                std::make_shared<std::vector<double>>(rows)};
    for (int64_t i = 0; i < rows * cols; ++i) (*made.host)[i] = uniform(hash32(mix64(seed), i));
    made.device = upload(model_.x, *made.host);
    for (int64_t row = 0; row < rows; ++row) {
      double sum = 0.0;
      for (int64_t col = 0; col < cols; ++col) {
        const double x = static_cast<double>((*made.host)[row * cols + col]);
        sum += x * x;
      }
      (*made.rstd)[row] = 1.0 / std::sqrt(sum / static_cast<double>(cols) + static_cast<double>(kEps));
    }
    return made;
  }

  Weight weight(int64_t cols, uint64_t seed) const {
    Weight made{nullptr, std::vector<float>(cols)};
    for (int64_t col = 0; col < cols; ++col) made.host[col] = weight_like(mix64(seed), col);
    made.device = upload(model_.weight, made.host);
    return made;
  }

  void launch(const Call& call, Variety variety, cudaStream_t stream) const {
    const Source& from = call.from;
    if (variety == Variety::empty) {
      empty_kernel<<<static_cast<unsigned>(from.rows), 128, 0, stream>>>();
      CUDA_CHECK(cudaGetLastError());
      return;
    }
    if (ends_in_float8(call, variety)) {
      auto* const codes = reinterpret_cast<__nv_fp8_e4m3*>(call.output.get());
      return production_norm_to_float8(from.device.get(), call.weight.device.get(), codes, scales_of(call), from.rows,
                                       from.cols, kEps, stream);
    }
    if (variety == Variety::header || variety == Variety::dependent || variety == Variety::float8)
      return production_norm(model_.x, model_.weight, from.device.get(), call.weight.device.get(), call.output.get(),
                             from.rows, from.cols, kEps, variety != Variety::header, stream);
    const bool dim = tokens_ > 1 || from.cols != model_.hidden;
    const auto dims = dim ? std::vector<int64_t>{from.rows, from.cols} : std::vector<int64_t>{from.cols};
    const auto tensor = [](const std::shared_ptr<char>& data, Type type, const std::vector<int64_t>& of) {
      return EngineTensor{data.get(), type, DeviceType::kDeviceCUDA, of};
    };
    const Version version = variety == Variety::before ? Version::before : Version::after;
    Entry* const entry = dim ? get_rmsnorm_dim_kernel(DeviceType::kDeviceCUDA, version)
                             : get_rmsnorm_kernel(DeviceType::kDeviceCUDA, version);
    entry(tensor(from.device, model_.x, dims), tensor(call.weight.device, model_.weight, {from.cols}),
          tensor(call.output, model_.x, dims), kEps, stream);
  }

  bool ends_in_float8(const Call& call, Variety variety) const {
    return variety == Variety::float8 && call.from.cols == model_.hidden;
  }
  // The codes have one byte each, and the scales follow them, where 16-bit numbers would be.
  static float* scales_of(const Call& call) {
    return reinterpret_cast<float*>(call.output.get() + call.from.rows * call.from.cols);
  }

  std::string fault(const Call& call, Variety variety) const {
    const Source& from = call.from;
    const bool in_float8 = ends_in_float8(call, variety);
    std::vector<char> got(bytes(from));
    CUDA_CHECK(cudaMemcpy(got.data(), call.output.get(), got.size(), cudaMemcpyDeviceToHost));
    const double scalars[] = {static_cast<double>(kEps), 0.0, 0.0};
    std::vector<double> expected(from.cols), low(from.cols), high(from.cols);
    for (int64_t row = 0; row < from.rows; ++row) {
      TypedRmsNorm::answers(model_.x, from.cols, from.host->data() + row * from.cols, (*from.rstd)[row],
                            call.weight.host.data(), scalars, TypedRmsNorm::float_error(from.cols),
                            {expected.data(), low.data(), high.data()});
      for (int64_t col = 0; col < from.cols; ++col) {
        double y = 0, allowed = 0;
        if (in_float8) {  // rounded to 4 digits, or to a multiple of 2^-9
          __nv_fp8_e4m3 code;
          std::memcpy(&code, got.data() + row * from.cols + col, sizeof code);
          float scale;
          std::memcpy(&scale, got.data() + from.rows * from.cols + row * sizeof scale, sizeof scale);
          y = double{static_cast<float>(code)} * scale;
          allowed = std::max(std::abs(expected[col]) / 16, 0x1p-10 * scale);
        } else {
          y = element(model_.x, got.data(), row * from.cols + col);
        }
        if (!(y >= low[col] - allowed && y <= high[col] + allowed))
          return text("row %lld, column %lld is %.9g, expected %.9g", static_cast<long long>(row),
                      static_cast<long long>(col), y, expected[col]);
      }
    }
    return "";
  }

  Model model_;
  int64_t tokens_;
  std::vector<Call> calls_;
};

// A step as one CUDA graph.
class StepGraph {
 public:
  StepGraph(const Step& step, Variety variety, cudaStream_t stream) {
    CUDA_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    cudaGraph_t captured = nullptr;
    try {
      step.launch(variety, stream);
    } catch (...) {
      if (cudaStreamEndCapture(stream, &captured) == cudaSuccess) cudaGraphDestroy(captured);
      throw;
    }
    CUDA_CHECK(cudaStreamEndCapture(stream, &captured));
    const std::unique_ptr<std::remove_pointer_t<cudaGraph_t>, CudaDeleter<cudaGraphDestroy>> graph(captured);
    size_t nodes = 0;
    CUDA_CHECK(cudaGraphGetNodes(captured, nullptr, &nodes));
    if (static_cast<int64_t>(nodes) != step.calls())
      throw std::runtime_error(
          text("a step of %lld calls became a graph of %zu nodes", static_cast<long long>(step.calls()), nodes));
    cudaGraphExec_t executable;
    CUDA_CHECK(cudaGraphInstantiate(&executable, captured, 0));
    graph_.reset(executable);
  }
  void launch(cudaStream_t stream) const { CUDA_CHECK(cudaGraphLaunch(graph_.get(), stream)); }

 private:
  std::unique_ptr<std::remove_pointer_t<cudaGraphExec_t>, CudaDeleter<cudaGraphExecDestroy>> graph_;
};

struct ReplayOptions {
  std::vector<Model> models = {std::begin(kModels), std::end(kModels)};
  std::vector<int64_t> tokens;  // of a step: 1 is a decode step, more are a prefill
  uint64_t seed = 1;
  int iterations = 50;
  bool timed = false;
};

// Checks every variety, launch by launch and as one graph, with up to four tokens; then, if asked, times the step.
inline Table replay_table(const ReplayOptions& options, const std::function<void(const std::string&)>& say) {
  constexpr int64_t kMostChecked = 4;
  Table table;
  table.title = "The RMSNorm calls of one step of a model, all right";
  if (options.timed) table.title += "; microseconds a step, launched one by one or as one CUDA graph";
  table.columns = {{"model", "model"},   {"step", "step"},     {"kernels", "kernels"}, {"x", "x"},
                   {"weight", "weight"}, {"hidden", "hidden"}, {"calls", "calls"},     {"head_norms", "of heads"}};
  if (options.timed)
    for (const Column& column : std::vector<Column>{{"launches_microseconds", "launches us"},
                                                    {"launches_spread_percent", "spread", "%"},
                                                    {"graph_microseconds", "graph us"},
                                                    {"graph_spread_percent", "spread", "%"},
                                                    {"graph_microseconds_per_call", "us per call"},
                                                    {"iterations", nullptr}})
      table.columns.push_back(column);
  table.left = 5;
  Stopwatch stopwatch;
  const cudaStream_t stream = stopwatch.stream();
  for (const Model& model : options.models)
    for (const int64_t tokens : options.tokens) {
      const std::string step_name = tokens == 1 ? "decode" : text("prefill of %lld", static_cast<long long>(tokens));
      const Step checked(model, std::min(tokens, kMostChecked), options.seed, true);
      std::unique_ptr<Step> measured;
      if (options.timed) measured = std::make_unique<Step>(model, tokens, options.seed, false);
      for (const Variety variety : kVarieties) {
        if (variety == Variety::float8 && model.x != Type::float16) continue;  // products of wider numbers have no use
        const char* const name = kVarietyNames[static_cast<int>(variety)];
        say(text("%s, %s: %s", model.name, step_name.c_str(), name));
        // Launches come before captures, since a kernel is loaded when it is launched first.
        const auto launch_all = [&](cudaStream_t s) { checked.launch(variety, s); };
        if (variety == Variety::empty)
          launch_all(stream);
        else
          checked.check(variety, launch_all, stream);
        const StepGraph graph(checked, variety, stream);
        if (variety != Variety::empty)
          checked.check(
              variety, [&](cudaStream_t s) { graph.launch(s); }, stream);
        Cells& row = table.rows.emplace_back(Cells{model.name, step_name, name, name_of(model.x), name_of(model.weight),
                                                   std::to_string(model.hidden), std::to_string(checked.hidden_calls()),
                                                   std::to_string(checked.calls() - checked.hidden_calls())});
        if (!options.timed) continue;
        const auto timing = [&](const std::function<void()>& work) {
          for (double warm = 0; warm < 20e3;) warm += std::max(stopwatch.microseconds(work), 100.0);
          std::vector<double> laps = stopwatch.laps(options.iterations + 1, work);
          laps.erase(laps.begin());
          return summarize(std::move(laps));
        };
        const Timing launches = timing([&] { measured->launch(variety, stream); });
        const StepGraph timed_graph(*measured, variety, stream);
        const Timing replayed = timing([&] { timed_graph.launch(stream); });
        append(row, {time_cells(launches),
                     time_cells(replayed),
                     {text("%.3f", replayed.microseconds / static_cast<double>(measured->calls())),
                      std::to_string(options.iterations)}});
      }
    }
  return table;
}

}  // namespace ladder::inference
