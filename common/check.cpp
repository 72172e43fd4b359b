#include "common/check.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <random>
#include <set>

#include "common/delay.h"
#include "common/device.h"
#include "common/text.h"

namespace ladder {
namespace {

// Sets the CPU device's thread order and puts the user's choice back.
class ThreadOrder {
 public:
  explicit ThreadOrder(const char* order) : changed_(order != nullptr) {
    if (!changed_) return;
    if (const char* users = std::getenv("SIMT_ORDER")) users_ = users;
    setenv("SIMT_ORDER", order, 1);
  }
  ~ThreadOrder() {
    if (!changed_) return;
    if (users_.empty())
      unsetenv("SIMT_ORDER");
    else
      setenv("SIMT_ORDER", users_.c_str(), 1);
  }
  ThreadOrder(const ThreadOrder&) = delete;
  ThreadOrder& operator=(const ThreadOrder&) = delete;

 private:
  bool changed_;
  std::string users_;
};

constexpr int64_t kMostInARow = 1 << 18;  // elements of a tensor whose launches are checked in a row, too

std::string without_semicolon(const std::string& sentences) {
  return sentences[0] == ';' ? sentences.substr(2) : sentences;
}

}  // namespace

Case::Case(const Operator& op, const Shape& shape, uint64_t seed, const std::function<void(Case&)>& change)
    : op(op), shape(shape), tensors(op.tensors(shape)) {
  seed *= 0x9e3779b97f4a7c15u;
  for (const int64_t value : shape.values) seed = seed * 0x100000001b3u + static_cast<uint64_t>(value);
  std::vector<const void*> pointers;
  for (size_t i = 0; i < tensors.size(); ++i) {
    inputs.emplace_back(tensors[i].is_read() ? tensors[i].count() * size_of(tensors[i].type) : 0);
    if (tensors[i].is_read()) op.fill(shape, static_cast<int>(i), seed, inputs[i].data());
    pointers.push_back(inputs[i].data());
  }
  if (change) change(*this);
  oracle = op.oracle(shape, pointers);
}

Buffers::Buffers(const Case& c, const Variant& variant) : Buffers(c, variant, nullptr) {}

Buffers::Buffers(const Case& c, const Variant& variant, const Buffers* shared)
    : shape_(c.shape), scalars_(variant.scalars), tensors_(c.tensors.size()), written_over_(c.tensors.size()) {
  for (size_t i = 0; i < c.tensors.size(); ++i) {
    const Place& place = variant.places[i];
    if (!place.absent && place.same_as < 0 && c.tensors[i].device >= 0)
      tensors_[i] =
          shared && c.tensors[i].shared ? shared->tensors_[i] : std::make_shared<DeviceTensor>(c.tensors[i], place);
  }
  for (size_t i = 0; i < c.tensors.size(); ++i) {
    const int same = variant.places[i].same_as;
    if (same >= 0) tensors_[i] = tensors_[same], written_over_[same] = true;
    pointers_.push_back(tensors_[i] ? tensors_[i]->data() : nullptr);
    got_.emplace_back();
  }
  upload(c);
}

void Buffers::upload(const Case& c) {
  for (size_t i = 0; i < tensors_.size(); ++i)
    if (tensors_[i] && c.tensors[i].is_read()) tensors_[i]->upload(c.inputs[i].data());
}

void Buffers::prepare(const Case& c) {
  for (size_t i = 0; i < tensors_.size(); ++i) {
    const Role role = c.tensors[i].role;
    if (!tensors_[i]) continue;
    if (role == Role::pieces) tensors_[i]->zero();
    if (role == Role::output || role == Role::scratch) tensors_[i]->poison();
  }
  for (size_t i = 0; i < tensors_.size(); ++i)
    if (tensors_[i] && written_over_[i] && c.tensors[i].is_read()) tensors_[i]->upload(c.inputs[i].data());
}

bool Buffers::is_unchanged(const Case& c, size_t tensor, int64_t sample) const {
  const Tensor& t = c.tensors[tensor];
  if (t.rows <= sample) return tensors_[tensor]->holds(c.inputs[tensor].data());
  for (int64_t i = 0; i < sample; ++i) {
    const int64_t first = sampled_row(i, sample, t.rows) * t.cols;
    if (!tensors_[tensor]->holds(c.inputs[tensor].data() + first * size_of(t.type), first, t.cols)) return false;
  }
  return true;
}

std::string Buffers::side_effects(const Case& c, int64_t sample) {
  std::string found;
  for (size_t i = 0; i < tensors_.size(); ++i)
    if (tensors_[i] && (c.tensors[i].role != Role::input || !written_over_[i]))
      found += tensors_[i]->overrun(c.tensors[i].name);
  for (size_t i = 0; i < tensors_.size(); ++i) {
    if (!tensors_[i] || c.tensors[i].role != Role::input || written_over_[i]) continue;
    if (is_unchanged(c, i, sample)) continue;
    found += text("; changed its %s, which it may only read", c.tensors[i].name);
    tensors_[i]->upload(c.inputs[i].data());
  }
  return found;
}

void Buffers::download(const Case& c, size_t tensor, int64_t sample) {
  const Tensor& t = c.tensors[tensor];
  HostMemory& to = got_[tensor];
  if (!to.data()) to = HostMemory(t.count() * size_of(t.type));
  if (t.rows <= sample) return tensors_[tensor]->download(to.data());
  for (int64_t i = 0; i < sample; ++i) {
    const int64_t first = sampled_row(i, sample, t.rows) * t.cols;
    tensors_[tensor]->download(to.data() + first * size_of(t.type), first, t.cols);
  }
}

Outcome Buffers::verify(const Case& c, const Variant& variant, int64_t sample) {
  Outcome outcome;
  outcome.tolerance = c.oracle->tolerance();
  for (size_t i = 0; i < tensors_.size(); ++i) {
    const Tensor& tensor = c.tensors[i];
    if (!tensors_[i] || !tensor.is_judged()) continue;
    download(c, i, sample);
    std::string failure;
    if (tensor.role == Role::pieces) {
      failure = c.oracle->judge(static_cast<int>(i), got_[i].data());
    } else {
      const Output output{*c.oracle, variant, tensor, static_cast<int>(i), got_[i].data()};
      const Comparison comparison = compare(output, sample);
      const double error = error_of(comparison, outcome.tolerance);
      if (std::isnan(error) || error > outcome.worst_error) outcome.worst_error = error;  // NaN stays
      if (comparison.wrong > 0) failure = describe(comparison, output);
      if (failure.empty() && tensor.twin >= 0) failure = unlike_twin(c, i, sample);
    }
    const auto outputs =
        std::count_if(c.tensors.begin(), c.tensors.end(), [](const Tensor& t) { return t.is_judged(); });
    if (!failure.empty() && outputs > 1) failure = std::string(tensor.name) + ": " + failure;
    if (!failure.empty()) outcome.failure += (outcome.failure.empty() ? "" : "; ") + failure;
  }
  return outcome;
}

std::string Buffers::unlike_twin(const Case& c, size_t tensor, int64_t sample) const {
  const Tensor &own = c.tensors[tensor], &twin = c.tensors[own.twin];
  const int64_t bytes = own.cols * size_of(own.type), chosen = std::min(own.rows, sample);
  for (int64_t i = 0; i < chosen; ++i) {
    const int64_t row = sampled_row(i, chosen, own.rows);
    if (std::memcmp(got_[tensor].data() + row * bytes, got_[own.twin].data() + row * bytes, bytes) != 0)
      return text("row %lld is right, but has not the bits of %s", static_cast<long long>(row), twin.name);
  }
  return "";
}

bool Buffers::same_as_verified(const Buffers& others) {
  for (size_t i = 0; i < tensors_.size(); ++i)
    if (tensors_[i] && others.got_[i].data() && !tensors_[i]->holds(others.got_[i].data())) return false;
  return true;
}

Problem::Problem(const Case& c, const Variant& variant) : buffers(c, variant), case_(c), variant_(variant) {}

std::string Problem::context() const {
  std::string result = shape_text(case_.op, case_.shape), off;
  const std::vector<Parameter> parameters = case_.op.parameters();
  for (size_t i = 0; i < parameters.size(); ++i)
    if (!parameters[i].choices.empty()) result += " " + parameters[i].text_of(case_.shape[static_cast<int>(i)]);
  std::vector<std::string> moved;
  for (size_t i = 0; i < case_.tensors.size(); ++i) {
    const Tensor& tensor = case_.tensors[i];
    const Place& place = variant_.places[i];
    if (tensor.optional) result += std::string(place.absent ? ", no " : ", ") + tensor.name;
    if (place.same_as >= 0) result += text(", %s is %s", tensor.name, case_.tensors[place.same_as].name);
    const Layout& l = place.layout;
    if (l.stride != kContiguous)
      result += text(", %s {%lld, %lld, %lld}", tensor.name, static_cast<long long>(l.stride),
                     static_cast<long long>(l.heads), static_cast<long long>(l.head_stride));
    if (place.offset == 1) moved.push_back(tensor.name);
    if (place.offset > 1) off += text(", %s off by %d elements", tensor.name, place.offset);
  }
  const std::vector<Scalar> scalars = case_.op.scalars();
  for (size_t i = 0; i < scalars.size(); ++i) result += text(", %s %g", scalars[i].name, variant_.scalars[i]);
  for (size_t i = 0; i < moved.size(); ++i) result += (i == 0 ? ", " : " and ") + moved[i];
  if (!moved.empty()) result += " off by one element";
  return result + off;
}

void Problem::launch(const Launcher& kernel, const Arguments& arguments, cudaStream_t stream) const {
  kernel(arguments, stream);
  const cudaError_t error = cudaGetLastError();
  if (error != cudaSuccess) throw CudaError(error, ("the kernel's launch" + refused_launch()).c_str());
}

std::string Problem::launches_elsewhere(const Launcher& kernel) {
  if (devices() > 1) return "";  // the launcher would have to choose another stream on each device
  cudaStream_t stream;
  cudaGraph_t graph = nullptr;
  CUDA_CHECK(cudaStreamCreate(&stream));
  CUDA_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  bool is_captured = true;
  try {
    kernel(buffers.arguments(), stream);
    is_captured = cudaGetLastError() != cudaErrorStreamCaptureImplicit;
  } catch (const CudaError&) {  // a launcher that copies or waits cannot be captured
  }
  if (cudaStreamEndCapture(stream, &graph) == cudaSuccess) CUDA_CHECK(cudaGraphDestroy(graph));
  cudaGetLastError();
  CUDA_CHECK(cudaStreamDestroy(stream));
  if (is_captured) return "";
  return "a kernel is launched on the default stream and not on the stream that the launcher is given: a launch on a "
         "stream is kernel<<<blocks, threads, 0, stream>>>(...)";
}

// After a run that gave wrong values in another order of the threads than the first, which was right.
std::string Problem::again(const Launcher& kernel, const char* order) {
  const ThreadOrder thread_order(order);
  for (int more = 0; more < 3; ++more) {  // a race makes one of them wrong, now and then
    buffers.prepare(case_);
    launch(kernel, buffers.arguments(), cudaStreamPerThread);
    if (synchronize(devices()) != cudaSuccess || buffers.verify(case_, variant_).failure.empty()) return "";
  }
  return "; the first launch was right, and three more in its order of the threads are wrong, too: so it is not the "
         "order, and a launch leaves something behind, such as a counter that it does not set back";
}

Outcome Problem::check(const Launcher& kernel, const std::vector<const char*>& orders, int64_t sample) {
  Outcome outcome;
  for (size_t run = 0; run < orders.size(); ++run) {
    const ThreadOrder thread_order(orders[run]);
    const auto where = [&] {
      return context() + (orders[run] ? ", thread order " + std::string(orders[run]) : std::string()) + ": ";
    };
    try {
      buffers.prepare(case_);
      launch(kernel, buffers.arguments(), cudaStreamPerThread);
      const cudaError_t error = synchronize(devices());
      if (error != cudaSuccess) throw CudaError(error, "the kernel's run");
      // A later run need only equal the first, which was right and is held whole unless rows are sampled.
      std::string failure;
      if (run == 0 || sample != INT64_MAX || !buffers.same_as_verified()) {
        outcome = buffers.verify(case_, variant_, sample);
        failure = outcome.failure;
        if (run > 0 && sample == INT64_MAX && failure.empty() && case_.op.repeats_bits())
          failure = "not deterministic: right, but not the first run's bits";
      }
      const bool wrong = !failure.empty();
      failure += buffers.side_effects(case_, sample);
      if (failure.empty()) continue;
      outcome.failure = where() + without_semicolon(failure);
      if (wrong && run > 0 && sample == INT64_MAX) outcome.failure += again(kernel, orders[0]);
    } catch (const CudaError& error) {
      outcome.failure = where() + error.what();
    }
    return outcome;
  }
  return outcome;
}

Outcome check_in_a_row(const Launcher& kernel, const Operator& op, const Shape& shape, uint64_t seed, int launches) {
  constexpr int kCases = 4;   // the contents of the launch one, two or three before are never this launch's
  constexpr int kMost = 200;  // at once: each has memory of its own
  std::vector<std::unique_ptr<Case>> cases;
  for (int i = 0; i < kCases; ++i) cases.push_back(std::make_unique<Case>(op, shape, seed + static_cast<uint64_t>(i)));
  const Variant variant = op.plain();
  std::vector<std::unique_ptr<Problem>> problems;
  for (int i = 0; i < std::min(launches, kMost); ++i)
    problems.push_back(std::make_unique<Problem>(*cases[i % kCases], variant));
  const int devices = op.devices(shape);
  Outcome outcome;
  const std::string where = problems[0]->context() + text(", %d launches in a row", launches);
  try {
    std::minstd_rand random(static_cast<unsigned>(seed) + 1);
    for (int first = 0; first < launches && outcome.failure.empty(); first += kMost) {
      const int count = std::min(launches - first, kMost);
      for (int i = 0; i < count; ++i) problems[i]->buffers.prepare(*cases[i % kCases]);
      cuda_check(synchronize(devices), "the preparation", __FILE__, __LINE__);
      for (int i = 0; i < count; ++i) {
        {
          const OnDevice late(static_cast<int>(random() % static_cast<unsigned>(devices)));
          launch_delay(random() % 3 == 0 ? static_cast<int>(random() % 30) : 0, cudaStreamPerThread);
        }
        problems[i]->launch(kernel, problems[i]->buffers.arguments(), cudaStreamPerThread);
      }
      const cudaError_t error = synchronize(devices);
      if (error != cudaSuccess) throw CudaError(error, "the kernels' run");
      for (int i = 0; i < count && outcome.failure.empty(); ++i) {
        outcome = problems[i]->buffers.verify(*cases[i % kCases], variant);
        outcome.failure += problems[i]->buffers.side_effects(*cases[i % kCases]);
        if (!outcome.failure.empty())
          outcome.failure = where + text(", number %d: ", first + i) + without_semicolon(outcome.failure);
      }
    }
  } catch (const CudaError& error) {
    outcome.failure = where + ": " + error.what();
  }
  return outcome;
}

std::string asked_thread_order(bool cpu_device) {
  const char* asked = cpu_device ? std::getenv("SIMT_ORDER") : nullptr;
  return asked ? asked : "";
}

std::vector<const char*> thread_orders(bool cpu_device) {
  static std::set<std::string> kept;  // the environment's own text is gone as soon as another order is set
  const std::string asked = asked_thread_order(cpu_device);
  if (!asked.empty()) return {kept.insert(asked).first->c_str()};
  if (cpu_device) return {"forward", "reversed"};
  return {nullptr, nullptr};
}

EdgeCases::EdgeCases(const Operator& op, bool cpu_device, uint64_t seed, int64_t most)
    : cpu_device_(cpu_device), seed_(seed) {
  int devices = 0;
  CUDA_CHECK(cudaGetDeviceCount(&devices));
  for (const Shape& shape : op.edge_cases(cpu_device)) {
    const std::vector<Tensor> tensors = op.tensors(shape);
    if (op.devices(shape) > devices) continue;
    if (std::all_of(tensors.begin(), tensors.end(),
                    [&](const Tensor& tensor) { return tensor.role == Role::scratch || tensor.count() <= most; }))
      cases_.push_back(std::make_unique<Case>(op, shape, seed));
  }
}

int EdgeCases::count() const {
  int result = 0;
  for (const auto& c : cases_) result += static_cast<int>(c->op.variants(c->shape).size());
  return result;
}

Outcome EdgeCases::check(const AnyStage& stage) const {
  for (const auto& c : cases_) {
    if (stage.needs.refuses && stage.needs.refuses(c->shape)) continue;
    for (const Variant& variant : c->op.variants(c->shape)) {
      Problem problem(*c, variant);
      Outcome outcome = problem.check(stage, thread_orders(cpu_device_));
      if (outcome.failure.empty()) outcome.failure = problem.launches_elsewhere(stage);
      if (!outcome.failure.empty()) return outcome;
    }
    if (c->op.devices(c->shape) == 1 || c->tensors[0].count() > kMostInARow) continue;
    const Outcome outcome = check_in_a_row(stage, c->op, c->shape, seed_, cpu_device_ ? 7 : 60);
    if (!outcome.failure.empty()) return outcome;
  }
  return {};
}

Outcome check_shape(const AnyStage& stage, const Shape& shape, uint64_t seed, bool cpu_device,
                    const std::function<void(const std::string&)>& say) {
  const auto now = [&](const char* what) {
    if (say) say(shape_text(*stage.op, shape) + ": " + what);
  };
  now("drawing the inputs and computing what is right");
  const Case c(*stage.op, shape, seed);
  now("copying the inputs to the device");
  Problem problem(c, stage.op->plain());
  now("running the kernel and comparing");
  return problem.check(stage, thread_orders(cpu_device));
}

}  // namespace ladder
