#include "tests/headers/rms_norm/trial.h"

#include <cstring>

namespace header_test {
namespace {

// Of rows that lie in one place, which a stride of 0 makes, all hold what the first does.
std::function<void(Case&)> with_one_place(const Problem& problem, const std::function<void(Case&)>& change) {
  const bool one_place = problem.variant.places[Op::kX].layout.stride == 0;
  return [=](Case& c) {
    if (change) change(c);
    const int64_t bytes = c.shape[1] * size_of(c.tensors[Op::kX].type);
    char* const x = c.inputs[Op::kX].data();
    for (int64_t row = 1; one_place && row < c.shape[0]; ++row) std::memcpy(x + row * bytes, x, bytes);
  };
}

}  // namespace

Workspace::Workspace()
    : memory_({"workspace", Type::uint32, ladder::Role::scratch, 1, static_cast<int64_t>(workspace_bytes() / 4)}, {}) {
  memory_.zero();
}

Trial::Trial(const Combination& combination, const Problem& problem, const std::function<void(Case&)>& change)
    : given(Op::get(combination.types), {{problem.rows, problem.cols}}, problem.seed, with_one_place(problem, change)),
      combination_(combination),
      asked_(problem),
      problem_(std::make_unique<ladder::Problem>(given, problem.variant)) {
  const ladder::Arguments arguments = buffers().arguments();
  tensors.assign(arguments.tensors, arguments.tensors + given.tensors.size());
  for (size_t i = 0; i < tensors.size(); ++i)
    if (tensors[i]) layouts_[i] = buffers()[i].layout();
}

Call Trial::call() const {
  const std::vector<double>& scalars = asked_.variant.scalars;
  Call call;
  call.x = tensors[Op::kX];
  call.weight = tensors[Op::kWeight];
  call.y = tensors[Op::kY];
  call.x_layout = layouts_[Op::kX];
  call.y_layout = layouts_[Op::kY];
  if (combination_.adds()) {
    call.residual = tensors[Op::kResidual];
    call.residual_out = tensors[Op::kResidualOut];
    call.residual_layout = layouts_[Op::kResidual];
    call.residual_out_layout = layouts_[Op::kResidualOut];
  }
  call.rows = asked_.rows;
  call.cols = asked_.cols;
  call.options = {static_cast<float>(scalars[Op::kEps]), static_cast<float>(scalars[Op::kWeightOffset]),
                  scalars[Op::kLlama] != 0.0, asked_.dependent_launch, asked_.workspace};
  call.options.batch_invariant = asked_.batch_invariant;
  return call;
}

std::string Trial::run(int times) {
  const auto launch_it = [&](const ladder::Arguments&, cudaStream_t stream) { CUDA_CHECK(launch(stream)); };
  const std::string failure = problem_->check(launch_it, std::vector<const char*>(times, nullptr)).failure;
  return failure.empty() || !asked_.workspace ? failure : failure + "; with a workspace";
}

std::string Trial::check(const Case& read) {
  CUDA_CHECK(cudaDeviceSynchronize());
  return failed(buffers().verify(read, asked_.variant).failure + buffers().side_effects(given));
}

std::vector<char> Trial::results() {
  CUDA_CHECK(cudaDeviceSynchronize());
  std::vector<char> all;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const ladder::Tensor& tensor = given.tensors[i];
    if (tensor.role != ladder::Role::output) continue;
    const size_t before = all.size();
    all.resize(before + tensor.count() * size_of(tensor.type));
    buffers()[i].download(all.data() + before);
  }
  return all;
}

bool Trial::untouched() {
  CUDA_CHECK(cudaDeviceSynchronize());
  if (!buffers().side_effects(given).empty()) return false;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const ladder::Tensor& tensor = given.tensors[i];
    if (tensor.role != ladder::Role::output) continue;
    std::vector<char> now(tensor.count() * size_of(tensor.type));
    buffers()[i].download(now.data());
    for (int64_t at = 0; at < tensor.count(); ++at)
      if (!is_poison(tensor.type, now.data(), at)) return false;
  }
  return true;
}

std::string Trial::name() const {
  return problem_->context() + (asked_.workspace ? ", workspace" : "") +
         (asked_.dependent_launch ? ", dependent launch" : "") + (asked_.batch_invariant ? ", batch-invariant" : "");
}

std::string Trial::failed(cudaError_t error) const {
  static_cast<void>(cudaGetLastError());
  return name() + ": the call returned " + cudaGetErrorName(error);
}

}  // namespace header_test
