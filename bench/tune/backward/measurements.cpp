// What make tune S=backward measures: every form at every length and number of rows that a policy tells apart.
#include <algorithm>
#include <optional>

#include "bench/tune/backward/form.h"
#include "bench/tune/core.h"
#include "common/memory.h"
#include "common/operators/rms_norm_backward.h"

namespace tune {

const Job job = {"make tune S=backward", "include/rms_norm/policies/backward", 5};

namespace {

using ladder::text;
namespace places = ladder::rms_norm_backward;

constexpr int kWarps[] = {3, 4, 5, 6, 8, 10, 12, 16};  // of a row, with two packs of 16 bytes in each thread
constexpr int kColumnsOfWarp = 32 * 2 * 8, kMostWarps = 16, kBlocksAtOnce = 264;
constexpr int kRows[] = {1, 2, 4, 8, 16, 32, 48, 64, 96, 128, 192, 256};
constexpr int64_t kSampledRows = 8;
constexpr double kWarmUpMicroseconds = 4000;  // the GPU comes from measuring the form before

struct Measurement : Result {
  Form form;
  int warps;
  int64_t rows;
  bool dependent;
};

std::string name_of(const Form& form) {
  if (form.parts == 0) return "whole rows in blocks";
  return text("clusters of %d, %d rows at a time, %d a thread", form.parts, form.rows, form.rows_of_thread);
}

// A block has at most 16 warps, and so have the blocks of a row together; a GPU has room for so many blocks at once.
// More threads than there are rows for, or blocks than a row has warps for, have nothing to do.
std::vector<Form> forms_of(int warps, int64_t rows) {
  std::vector<Form> found = {{0, 1, 1}};
  for (const int parts : {1, 2, 3, 4, 8})
    for (const int at_once : {1, 2, 4, 8, 16})
      for (const int of_thread : {1, 2}) {
        const int own = (warps + parts - 1) / parts;
        const int64_t clusters = (rows + at_once * of_thread - 1) / (at_once * of_thread);
        if (parts <= warps && own * parts <= kMostWarps && own * at_once <= kMostWarps &&
            (at_once == 1 || at_once < 2 * rows) && (of_thread == 1 || rows > at_once) &&
            clusters * parts <= kBlocksAtOnce)
          found.push_back({parts, at_once, of_thread});
      }
  return found;
}

// The forms at one length and number of rows, one after the other on the same tensors.
class Contest {
 public:
  // Without samples nothing is timed, and every row is looked at.
  Contest(int warps, int64_t rows, const ladder::Device& device, int samples)
      : warps_(warps),
        device_(device),
        samples_(samples),
        case_(ladder::RmsNormBackward::get(), {{rows, int64_t{warps} * kColumnsOfWarp, 1}}, 1),
        problem_(case_, ladder::RmsNormBackward::get().plain()),
        workspace_(ladder::allocate<>(workspace_bytes(rows, int64_t{warps} * kColumnsOfWarp))) {
    if (samples > 0) pool_.emplace(problem_, device);
  }

  // One launch on fresh tensors, checked; why it is refused, or nothing.
  std::string launch_once(const Form& form, bool dependent) {
    if (form.parts > 0 && device_.compute_capability < 90) return kNeedsClusters;
    std::string refusal;
    const ladder::Outcome outcome = problem_.check(launcher(form, dependent, refusal), {nullptr}, sample());
    if (refusal.empty()) require_right(form, outcome);
    return refusal;
  }

  Measurement measure(const Form& form, bool dependent) {
    const ladder::Shape& shape = case_.shape;
    const double bytes = ladder::RmsNormBackward::get().bytes(shape, ladder::RmsNormBackward::get().plain());
    Measurement result{{bytes, pool_->copies()}, form, warps_, shape[0], dependent};
    result.refusal = launch_once(form, dependent);
    if (!result.refusal.empty()) return result;
    pool_->prepare();
    const ladder::Launcher launch = launcher(form, dependent, result.refusal);
    result.timing = ladder::measure(launch, problem_, *pool_, samples_, kWarmUpMicroseconds);
    require_right(form, pool_->verify(launch, sample()));
    ladder::require_possible(name_of(form), result.bytes, result.timing, device_);
    return result;
  }

 private:
  int64_t sample() const { return samples_ > 0 ? kSampledRows : INT64_MAX; }

  ladder::Launcher launcher(const Form& form, bool dependent, std::string& refusal) const {
    return [form, dependent, &refusal, workspace = workspace_.get()](const ladder::Arguments& a, cudaStream_t stream) {
      const cudaError_t error =
          launch(form,
                 {a.tensor<bf16>(places::kDy), a.tensor<bf16>(places::kX), a.tensor<bf16>(places::kWeight),
                  a.tensor<bf16>(places::kDx), a.tensor<bf16>(places::kDweight), workspace, a.shape[0], a.shape[1]},
                 dependent, stream);
      if (error == cudaSuccess) return;
      refusal = refusal_of(error);
      CUDA_CHECK(error);
    };
  }

  void require_right(const Form& form, const ladder::Outcome& outcome) const {
    if (!outcome.failure.empty())
      throw std::runtime_error(text("%lld rows of %d warps, %s: %s", static_cast<long long>(case_.shape[0]), warps_,
                                    name_of(form).c_str(), outcome.failure.c_str()));
  }

  int warps_;
  const ladder::Device& device_;
  int samples_;
  const ladder::Case case_;
  ladder::Problem problem_;
  ladder::DeviceMemory<> workspace_;
  std::optional<ladder::Pool> pool_;
};

}  // namespace

std::string list() {
  std::vector<std::vector<std::string>> rows = {{"parts", "rows", "rows_of_thread"}};
  for (const Form& form : forms_of(kMostWarps, kBlocksAtOnce / 8))
    rows.push_back({std::to_string(form.parts), std::to_string(form.rows), std::to_string(form.rows_of_thread)});
  return ladder::align(rows, 0);
}

std::string measure(const ladder::Device& device, int samples) {
  std::vector<Measurement> all;
  check(device);  // what is refused here is refused below, with its reason
  ladder::Progress progress;
  for (const int warps : kWarps)
    for (const int64_t rows : kRows) {
      Contest contest(warps, rows, device, samples);
      std::vector<Measurement> found;
      for (const Form& form : forms_of(warps, rows))
        for (const bool dependent : {false, true}) {
          if (dependent && device.compute_capability < 90) continue;
          progress.show(text("%lld rows of %d warps, %s", static_cast<long long>(rows), warps, name_of(form).c_str()));
          all.push_back(contest.measure(form, dependent));
          if (!dependent) found.push_back(all.back());
        }
      progress.clear();
      const Measurement& best = *std::min_element(found.begin(), found.end(), is_faster);
      std::printf("%4lld rows of %5d columns %8.2f us  %s\n", static_cast<long long>(rows), warps * kColumnsOfWarp,
                  best.timing.microseconds, name_of(best.form).c_str());
      std::fflush(stdout);
    }
  const auto cells_of = [](const Measurement& m) {
    std::vector<std::string> cells;
    for (const int64_t number : {m.rows, int64_t{m.warps} * kColumnsOfWarp, int64_t{m.warps}, int64_t{m.form.parts},
                                 int64_t{m.form.rows}, int64_t{m.form.rows_of_thread}})
      cells.push_back(std::to_string(number));
    cells.push_back(m.dependent ? "dependent" : "plain");
    return cells;
  };
  return csv("rows,cols,warps,parts,rows_at_once,rows_of_thread,launch", all, cells_of, device, samples);
}

Checks check(const ladder::Device& device) {
  Checks checks = {forms_of(kMostWarps, kBlocksAtOnce / 8).size()};
  ladder::Progress progress;
  for (const int warps : kWarps)
    for (const int64_t rows : {1, 3, 21}) {
      Contest contest(warps, rows, device, 0);
      for (const Form& form : forms_of(warps, rows)) {
        progress.show(text("%lld rows of %d warps, %s", static_cast<long long>(rows), warps, name_of(form).c_str()));
        checks.add(name_of(form), contest.launch_once(form, false));
      }
    }
  return checks;
}

}  // namespace tune
