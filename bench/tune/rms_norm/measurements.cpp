// What make tune measures: every candidate at every size of problem that a policy tells apart.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "bench/tune/contest.h"
#include "bench/tune/rms_norm/candidate.h"
#include "common/operators/typed_rms_norm.h"

namespace tune {

std::vector<Candidate>& candidates() {
  static std::vector<Candidate> all;
  return all;
}

const Job job = {"make tune", "include/rms_norm/policies", 5};

namespace {

const char* access_name(Access access) { return access == Access::contiguous ? "contiguous" : "strided"; }

const char* reads_name(Eviction reads) { return reads == Eviction::first ? "first" : "last"; }

const char* operator_name(bool adds) { return adds ? "fused_add_rms_norm" : "forward"; }

struct Size {
  bool adds;
  int64_t rows, cols;
  int kilobytes = 0;  // that rows and cols are chosen for

  double bytes() const;  // that a launch reads and writes, all but the weight
};

struct Measurement : Result {
  const Candidate* candidate;
  Size size;
  bool dependent;       // programmatic dependent launch
  bool winner = false;  // measured once more as the best of its problem, for the two ways to launch it
};

using ladder::text;
using Op = ladder::TypedRmsNorm;

constexpr int kSizes[2][6] = {{64, 512, 4096, 32768, 131072, 524288}, {128, 1024, 4096, 32768, 131072, 524288}};
constexpr int kMostContiguous = 131072;   // KB; of larger problems, little stays in L2 from one kernel to the next
constexpr int kMostDependent = 131072;    // KB up to which the dependent launch counts as much as the plain one
constexpr double kNearTheFastest = 1.15;  // so long a candidate may take if its dependent launch is measured too

std::string name_of(const Candidate& candidate) {
  const Shape& s = candidate.shape;
  return text("vectors %d, block %d, parts %d, %s, reads %s", s.vectors, s.block, s.parts, access_name(s.access),
              reads_name(s.reads));
}

std::string name_of(const Candidate& candidate, const Size& size) {
  return text("%s of %lld x %lld, %s", operator_name(candidate.adds), static_cast<long long>(size.rows),
              static_cast<long long>(size.cols), name_of(candidate).c_str());
}

const ladder::Operator& operator_of(bool adds) {
  Op::Types types = {ladder::Type::bfloat16, ladder::Type::bfloat16, ladder::Type::bfloat16};
  if (adds) types.residual = ladder::Type::bfloat16;
  return Op::get(types);
}

// The residual is added in place.
ladder::Variant variant_of(bool adds) {
  ladder::Variant variant = operator_of(adds).plain();
  variant.scalars[Op::kEps] = static_cast<double>(kEps);
  if (adds) variant.places[Op::kResidualOut].same_as = Op::kResidual;
  return variant;
}

std::vector<const Candidate*> candidates_of(bool adds, int packs, bool with_contiguous) {
  std::vector<const Candidate*> found;
  for (const Candidate& c : candidates())
    if (c.adds == adds && c.shape.packs == packs && (with_contiguous || c.shape.access != Access::contiguous))
      found.push_back(&c);
  return found;
}

Contest contest_of(const Size& size, const ladder::Device& device, int samples) {
  return {operator_of(size.adds), {{size.rows, size.cols}}, variant_of(size.adds), device, samples};
}

Entrant entrant(const Candidate& candidate, const Size& size, bool dependent = false) {
  const auto launch = [&candidate, dependent](const ladder::Arguments& a, cudaStream_t stream) {
    bf16* const residual = candidate.adds ? a.tensor<bf16>(Op::kResidual) : nullptr;
    return candidate.launch(
        {a.tensor<bf16>(Op::kX), residual, a.tensor<bf16>(Op::kWeight), a.tensor<bf16>(Op::kY), a.shape[0], a.shape[1]},
        candidate.shape.reads, dependent, stream);
  };
  return {name_of(candidate, size), candidate.shape.parts > 1, launch};
}

Measurement measure(Contest& contest, const Candidate& candidate, const Size& size, bool dependent = false) {
  return {contest.measure(entrant(candidate, size, dependent), size.bytes()), &candidate, size, dependent};
}

// The best candidate, of those measured and sorted: the fastest, or in a small problem the one with the shortest mean
// of a plain and a dependent launch, which is added to `all` for each candidate that is not much slower than the
// fastest.
const Candidate& best_of(const std::vector<Measurement>& found, Contest& contest, const Size& size,
                         ladder::Progress& progress, std::vector<Measurement>& all) {
  const Measurement& fastest = found.front();
  if (size.kilobytes > kMostDependent) return *fastest.candidate;
  const Candidate* best = fastest.candidate;
  double shortest = INFINITY;
  for (const Measurement& plain : found) {
    if (!plain.refusal.empty() || plain.timing.microseconds > kNearTheFastest * fastest.timing.microseconds) break;
    progress.show(name_of(*plain.candidate, size) + ", dependent");
    all.push_back(measure(contest, *plain.candidate, size, true));
    const double both = plain.timing.microseconds + all.back().timing.microseconds;
    if (!all.back().refusal.empty() || both >= shortest) continue;
    shortest = both;
    best = plain.candidate;
  }
  progress.clear();
  return *best;
}

void print_line(const Size& size, const std::vector<Measurement>& found) {
  const Measurement& best = found.front();
  std::printf("%-18s %7lld x %-6lld", operator_name(size.adds), static_cast<long long>(size.rows),
              static_cast<long long>(size.cols));
  if (best.refusal.empty()) {
    std::printf(" %8.2f us %6.0f GB/s  %-62s", best.timing.microseconds, best.bytes / best.timing.microseconds / 1e3,
                name_of(*best.candidate).c_str());
    if (found.size() > 1 && found[1].refusal.empty()) std::printf(" next %.2f us", found[1].timing.microseconds);
  } else {
    std::printf(" no candidate launched: %s", best.refusal.c_str());
  }
  const auto refused = std::count_if(found.begin(), found.end(), [](const auto& m) { return !m.refusal.empty(); });
  if (refused > 0) std::printf(", %lld of %zu refused", static_cast<long long>(refused), found.size());
  std::printf("\n");
  std::fflush(stdout);
}

double Size::bytes() const {
  ladder::Variant variant = variant_of(adds);
  variant.places[Op::kWeight].absent = true;
  return operator_of(adds).bytes({{rows, cols}}, variant);
}

std::vector<Measurement> measure_all(const ladder::Device& device, int samples) {
  std::vector<Measurement> all;
  check(device);  // what is refused here is refused below, with its reason
  ladder::Progress progress;
  for (const bool adds : {false, true})
    for (const int packs : kPacks)
      for (const int kilobytes : kSizes[adds]) {
        const int64_t cols = int64_t{packs} * kElements;
        const int64_t rows = static_cast<int64_t>(1024.0 * kilobytes / Size{adds, 1, cols}.bytes());
        const Size size{adds, std::max<int64_t>(1, rows), cols, kilobytes};
        Contest contest = contest_of(size, device, samples);
        std::vector<Measurement> found;
        for (const Candidate* candidate : candidates_of(adds, packs, kilobytes <= kMostContiguous)) {
          progress.show(name_of(*candidate, size));
          found.push_back(measure(contest, *candidate, size));
        }
        progress.clear();
        if (found.empty()) continue;
        all.insert(all.end(), found.begin(), found.end());
        std::stable_sort(found.begin(), found.end(), is_faster);
        print_line(size, found);
        if (!found[0].refusal.empty() || device.compute_capability < 90) continue;
        const Candidate& best = best_of(found, contest, size, progress, all);
        for (const bool dependent : {false, true}) {
          all.push_back(measure(contest, best, size, dependent));
          all.back().winner = true;
        }
      }
  return all;
}

}  // namespace

std::string list() {
  std::vector<std::vector<std::string>> rows = {
      {"operator", "packs", "vectors", "block", "parts", "kernel_threads", "access", "reads"}};
  for (const Candidate& c : candidates()) {
    rows.push_back({operator_name(c.adds)});
    for (const int number : {c.shape.packs, c.shape.vectors, c.shape.block, c.shape.parts, c.kernel_threads})
      rows.back().push_back(std::to_string(number));
    rows.back().push_back(access_name(c.shape.access));
    rows.back().push_back(reads_name(c.shape.reads));
  }
  return ladder::align(rows, 1);
}

std::string measure(const ladder::Device& device, int samples) {
  const auto cells_of = [](const Measurement& m) {
    const Shape& s = m.candidate->shape;
    std::vector<std::string> cells = {operator_name(m.size.adds)};
    for (const int64_t number : {m.size.rows, m.size.cols, int64_t{s.packs}, int64_t{m.size.kilobytes},
                                 int64_t{s.vectors}, int64_t{s.block}, int64_t{s.parts}})
      cells.push_back(std::to_string(number));
    for (const char* word : {access_name(s.access), reads_name(s.reads)}) cells.push_back(word);
    cells.push_back(std::to_string(m.candidate->kernel_threads));
    for (const char* word : {m.winner ? "winner" : "candidate", m.dependent ? "dependent" : "plain"})
      cells.push_back(word);
    return cells;
  };
  return csv("operator,rows,cols,packs,kilobytes,vectors,block,parts,access,reads,kernel_threads,role,launch",
             measure_all(device, samples), cells_of, device, samples);
}

// On some rows of each candidate's length, and of one pack less.
Checks check(const ladder::Device& device) {
  Checks checks = {candidates().size()};
  ladder::Progress progress;
  for (const bool adds : {false, true})
    for (const int packs : kPacks)
      for (const int less : {0, 1}) {
        const int64_t cols = int64_t{packs - less} * kElements;
        const Size size{adds, std::max<int64_t>(3, 20000 / cols), cols};  // more rows than a block has
        Contest contest = contest_of(size, device, 0);
        for (const Candidate* candidate : candidates_of(adds, packs, true)) {
          const Entrant launched = entrant(*candidate, size);
          progress.show(launched.name);
          checks.add(launched.name, contest.launch_once(launched));
        }
      }
  return checks;
}

}  // namespace tune
