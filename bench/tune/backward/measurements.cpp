// What make tune S=backward measures: every form at every length and number of rows that a policy tells apart.
#include <algorithm>

#include "bench/tune/backward/form.h"
#include "bench/tune/contest.h"
#include "common/memory.h"
#include "common/operators/rms_norm_backward.h"

namespace tune {

const Job job = {"make tune S=backward", "include/rms_norm/policies/backward", 5};

namespace {

using ladder::text;
namespace places = ladder::rms_norm_backward;

constexpr int kWarps[] = {2, 3, 4, 5, 6, 8, 10, 12, 16};  // of a row, with two packs of 16 bytes in each thread
constexpr int kColumnsOfWarp = 32 * 2 * 8, kMostWarps = 16, kBlocksAtOnce = 264;
constexpr int64_t kMostClusters = 200;  // a workspace has room for them at any of these lengths
constexpr int64_t kRows[] = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 4096, 16384};
constexpr int64_t kFewRows = 1024;  // so many may all be on the GPU at once
constexpr int64_t kMostElements = 64 << 20;

constexpr Form kWholeRows = {0, 1, 1}, kSixteenWarps = {0, 2, 1};

struct Measurement : Result {
  Form form;
  int warps;
  int64_t rows;
  bool stored_rstd, dependent;
};

std::string name_of(const Form& form) {
  if (form.parts == 0) return text("whole rows in blocks, %d warps on a multiprocessor", 8 * form.rows);
  return text("clusters of %d, %d rows at a time, %d a thread", form.parts, form.rows, form.rows_of_thread);
}

// The warps of a row, which have one pack in each thread here, divide evenly among its blocks or almost; a GPU has room
// for all blocks at once; and there are rows for all threads of a block. Blocks with whole rows have turns only where
// there are more rows.
std::vector<Form> forms_of(int warps, int64_t rows) {
  if (rows > kFewRows) return {kWholeRows, kSixteenWarps};
  std::vector<Form> found = {kWholeRows};
  for (const int parts : {1, 2, 3, 4, 8})
    for (const int at_once : {1, 2, 4, 8, 16, 32})
      for (const int of_thread : {1, 2}) {
        const int row_warps = 2 * warps, own = (row_warps + parts - 1) / parts;
        const int64_t for_threads = (rows + of_thread - 1) / of_thread,
                      clusters = (for_threads + at_once - 1) / at_once;
        if (own * parts * 4 <= row_warps * 5 && own * parts <= 32 && own * at_once <= 32 && of_thread <= rows &&
            (at_once == 1 || at_once < 2 * for_threads) && clusters <= kMostClusters &&
            clusters * parts <= kBlocksAtOnce)
          found.push_back({parts, at_once, of_thread});
      }
  return found;
}

std::vector<Form> all_forms() {
  std::vector<Form> found = forms_of(kMostWarps, kBlocksAtOnce / 8);
  found.push_back(kSixteenWarps);
  return found;
}

const ladder::Operator& gradients() { return ladder::RmsNormBackward::get(); }

// One length and number of rows, whose rstd the forward pass has stored or not.
struct Size {
  Size(int warps, int64_t rows, bool stored_rstd)
      : warps(warps),
        stored_rstd(stored_rstd),
        shape{{rows, int64_t{warps} * kColumnsOfWarp, 1}},
        variant(gradients().plain()),
        workspace(ladder::allocate<>(workspace_bytes(rows, shape[1]))) {
    variant.places[places::kRstd].absent = !stored_rstd;
  }

  Contest contest(const ladder::Device& device, int samples) const {
    return {gradients(), shape, variant, device, samples};
  }
  double bytes() const { return gradients().bytes(shape, variant); }
  std::string name() const {
    return text("%lld rows of %lld columns, rstd %s", static_cast<long long>(shape[0]),
                static_cast<long long>(shape[1]), stored_rstd ? "stored" : "computed");
  }

  Entrant entrant(const Form& form, bool dependent = false) const {
    const auto launched = [form, dependent, scratch = workspace.get()](const ladder::Arguments& a,
                                                                       cudaStream_t stream) {
      return launch(form,
                    {a.tensor<bf16>(places::kDy), a.tensor<bf16>(places::kX), a.tensor<bf16>(places::kWeight),
                     a.tensor<float>(places::kRstd), a.tensor<bf16>(places::kDx), a.tensor<bf16>(places::kDweight),
                     scratch, a.shape[0], a.shape[1]},
                    dependent, stream);
    };
    return {name() + ", " + name_of(form), form.parts > 0, launched};
  }

  int warps;
  bool stored_rstd;
  ladder::Shape shape;
  ladder::Variant variant;
  ladder::DeviceMemory<> workspace;
};

}  // namespace

std::string list() {
  std::vector<std::vector<std::string>> rows = {{"parts", "rows", "rows_of_thread"}};
  for (const Form& form : all_forms())
    rows.push_back({std::to_string(form.parts), std::to_string(form.rows), std::to_string(form.rows_of_thread)});
  return ladder::align(rows, 0);
}

std::string measure(const ladder::Device& device, int samples) {
  std::vector<Measurement> all;
  check(device);  // what is refused here is refused below, with its reason
  ladder::Progress progress;
  const auto measure_size = [&](const Size& size) {
    Contest contest = size.contest(device, samples);
    std::vector<Measurement> found;
    for (const Form& form : forms_of(size.warps, size.shape[0]))
      for (const bool dependent : {false, true}) {
        if (dependent && device.compute_capability < 90) continue;
        const Entrant entrant = size.entrant(form, dependent);
        progress.show(entrant.name);
        all.push_back(
            {contest.measure(entrant, size.bytes()), form, size.warps, size.shape[0], size.stored_rstd, dependent});
        if (!dependent) found.push_back(all.back());
      }
    progress.clear();
    const Measurement& best = *std::min_element(found.begin(), found.end(), is_faster);
    std::printf("%-43s %8.2f us  %s\n", size.name().c_str(), best.timing.microseconds, name_of(best.form).c_str());
    std::fflush(stdout);
  };
  for (const int warps : kWarps)
    for (const int64_t rows : kRows)
      for (const bool stored_rstd : {false, true})
        if (rows * warps * kColumnsOfWarp <= kMostElements) measure_size({warps, rows, stored_rstd});
  const auto cells_of = [](const Measurement& m) {
    std::vector<std::string> cells;
    for (const int64_t number : {m.rows, int64_t{m.warps} * kColumnsOfWarp, int64_t{m.warps}, int64_t{m.form.parts},
                                 int64_t{m.form.rows}, int64_t{m.form.rows_of_thread}})
      cells.push_back(std::to_string(number));
    cells.push_back(text("%s%s", m.dependent ? "dependent" : "plain", m.stored_rstd ? "_rstd" : ""));
    return cells;
  };
  return csv("rows,cols,warps,parts,rows_at_once,rows_of_thread,launch", all, cells_of, device, samples);
}

Checks check(const ladder::Device& device) {
  Checks checks = {all_forms().size()};
  ladder::Progress progress;
  for (const int warps : kWarps)
    for (const int64_t rows : {1, 3, 21, 257, 1025})
      for (const bool stored_rstd : {false, true}) {
        if (rows > 200 && warps > 4) continue;  // takes long
        const Size size(warps, rows, stored_rstd);
        Contest contest = size.contest(device, 0);
        for (const Form& form : forms_of(warps, rows)) {
          const Entrant entrant = size.entrant(form);
          progress.show(entrant.name);
          checks.add(entrant.name, contest.launch_once(entrant));
        }
      }
  return checks;
}

}  // namespace tune
