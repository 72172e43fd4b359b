#include "bench/tune/measurements.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "common/report.h"
#include "common/text.h"

namespace tune {

std::vector<Candidate>& candidates() {
  static std::vector<Candidate> all;
  return all;
}

const char* traffic_name(Traffic traffic) {
  return traffic == Traffic::few ? "few" : traffic == Traffic::stream ? "stream" : "hold";
}

namespace {

using ladder::text;

constexpr int kSizes[2][6] = {{64, 512, 4096, 32768, 131072, 524288}, {128, 1024, 4096, 32768, 131072, 524288}};
constexpr int kMostOfFew = 4096;              // above it, contiguous rows too are many
constexpr double kMostCopies = 64;            // as in make peers: short kernels are measured from the L2 cache
constexpr double kWarmUpMicroseconds = 4000;  // the GPU comes from measuring the candidate before

std::string name_of(const Candidate& candidate) {
  const Shape& s = candidate.shape;
  return text("vectors %d, block %d, parts %d, %s", s.vectors, s.block, s.parts, traffic_name(s.traffic));
}

std::string name_of(const Candidate& candidate, const Problem& problem) {
  return text("%s of %s, %s", candidate.adds ? "forward_add" : "forward",
              ladder::shape_text(problem.rows, problem.cols).c_str(), name_of(candidate).c_str());
}

std::vector<const Candidate*> candidates_of(bool adds, int packs, bool with_few) {
  std::vector<const Candidate*> found;
  for (const Candidate& c : candidates())
    if (c.adds == adds && c.shape.packs == packs && (with_few || c.shape.traffic != Traffic::few)) found.push_back(&c);
  return found;
}

void require_right(const Candidate& candidate, const Problem& problem, const std::string& failure) {
  if (!failure.empty()) throw std::runtime_error(name_of(candidate, problem) + ": " + failure);
}

// The problems of one size, on copies that outgrow the L2 cache if the problem is not small.
class Contest {
 public:
  Contest(const Problem& problem, int kilobytes, const ladder::Device& device, int samples)
      : problem_(problem), kilobytes_(kilobytes), device_(device), samples_(samples), pool_(problem, copies()) {}

  // One launch on fresh tensors, checked; why it is refused, or nothing.
  std::string launch_once(const Candidate& candidate, bool dependent) {
    if (candidate.shape.parts > 1 && device_.compute_capability < 90) return "clusters need compute capability 9.0";
    pool_.prepare_first();
    const cudaError_t error = candidate.launch(pool_.tensors(0), dependent, stopwatch_.stream());
    if (error != cudaSuccess) {
      static_cast<void>(cudaGetLastError());
      return text("%s (%s)", cudaGetErrorName(error), cudaGetErrorString(error));
    }
    CUDA_CHECK(cudaDeviceSynchronize());
    require_right(candidate, problem_, pool_.check_first());
    return "";
  }

  Measurement measure(const Candidate& candidate, bool dependent = false) {
    Measurement result{&candidate, problem_, kilobytes_, pool_.copies()};
    result.dependent = dependent;
    result.refusal = launch_once(candidate, dependent);
    if (!result.refusal.empty()) return result;
    pool_.prepare_all();
    const auto launch = [&](int64_t number, cudaStream_t stream) {
      CUDA_CHECK(candidate.launch(pool_.tensors(number), dependent, stream));
    };
    result.timing = ladder::measure(launch, pool_.copies(), samples_, kWarmUpMicroseconds);
    require_right(candidate, problem_, pool_.check_all());
    ladder::require_possible(name_of(candidate, problem_), problem_.bytes(), result.timing, device_);
    return result;
  }

 private:
  int64_t copies() const {
    if (samples_ == 0) return 1;
    const double larger_than_cache = std::ceil(std::max(600e6, 8.0 * device_.l2_bytes) / problem_.bytes());
    return static_cast<int64_t>(std::min(kMostCopies, larger_than_cache));
  }

  Problem problem_;
  int kilobytes_;
  const ladder::Device& device_;
  int samples_;
  ladder::Stopwatch stopwatch_;
  Pool pool_;
};

// The fastest first; those that did not launch last.
bool is_faster(const Measurement& a, const Measurement& b) {
  if (!a.refusal.empty() || !b.refusal.empty()) return a.refusal.empty() && !b.refusal.empty();
  return a.timing.microseconds < b.timing.microseconds;
}

void print_line(const Problem& problem, const std::vector<Measurement>& found) {
  const Measurement& best = found.front();
  std::printf("%-11s %7lld x %-6lld", problem.adds ? "forward_add" : "forward", static_cast<long long>(problem.rows),
              static_cast<long long>(problem.cols));
  if (best.refusal.empty()) {
    std::printf(" %8.2f us %6.0f GB/s  %-44s", best.timing.microseconds,
                problem.bytes() / best.timing.microseconds / 1e3, name_of(*best.candidate).c_str());
    if (found.size() > 1 && found[1].refusal.empty()) std::printf(" next %.2f us", found[1].timing.microseconds);
  } else {
    std::printf(" no candidate launched: %s", best.refusal.c_str());
  }
  const auto refused = std::count_if(found.begin(), found.end(), [](const auto& m) { return !m.refusal.empty(); });
  if (refused > 0) std::printf(", %lld of %zu refused", static_cast<long long>(refused), found.size());
  std::printf("\n");
  std::fflush(stdout);
}

}  // namespace

std::vector<Measurement> measure_all(const ladder::Device& device, int samples) {
  std::vector<Measurement> all;
  ladder::Progress progress;
  for (const bool adds : {false, true})
    for (const int packs : kPacks)
      for (const int kilobytes : kSizes[adds]) {
        const int64_t cols = int64_t{packs} * kElements;
        const int64_t rows = static_cast<int64_t>(1024.0 * kilobytes / Problem{adds, 1, cols}.bytes());
        const Problem problem{adds, std::max<int64_t>(1, rows), cols};
        Contest contest(problem, kilobytes, device, samples);
        std::vector<Measurement> found;
        for (const Candidate* candidate : candidates_of(adds, packs, kilobytes <= kMostOfFew)) {
          progress.show(name_of(*candidate, problem));
          found.push_back(contest.measure(*candidate));
        }
        progress.clear();
        if (found.empty()) continue;
        all.insert(all.end(), found.begin(), found.end());
        std::stable_sort(found.begin(), found.end(), is_faster);
        print_line(problem, found);
        if (!found[0].refusal.empty() || device.compute_capability < 90) continue;
        for (const bool dependent : {false, true}) {
          all.push_back(contest.measure(*found[0].candidate, dependent));
          all.back().winner = true;
        }
      }
  return all;
}

std::string csv(const std::vector<Measurement>& measurements, const ladder::Device& device, int samples) {
  std::string out =
      "operator,rows,cols,packs,kilobytes,vectors,block,parts,traffic,kernel_threads,role,launch,verdict,reason,"
      "microseconds,spread_percent,gb_per_s,copies,samples,device,sm,driver,runtime,date\n";
  for (const Measurement& m : measurements) {
    const Shape& s = m.candidate->shape;
    std::vector<std::string> cells = {m.problem.adds ? "forward_add" : "forward"};
    for (const int64_t number : {m.problem.rows, m.problem.cols, int64_t{s.packs}, int64_t{m.kilobytes},
                                 int64_t{s.vectors}, int64_t{s.block}, int64_t{s.parts}})
      cells.push_back(std::to_string(number));
    const bool timed = m.refusal.empty();
    const double rate = timed ? m.problem.bytes() / m.timing.microseconds / 1e3 : 0;
    for (const std::string& cell :
         {std::string(traffic_name(s.traffic)), std::to_string(m.candidate->kernel_threads),
          std::string(m.winner ? "winner" : "candidate"), std::string(m.dependent ? "dependent" : "plain"),
          std::string(timed ? "ok" : "refused"), m.refusal, timed ? text("%.3f", m.timing.microseconds) : "",
          timed ? text("%.1f", m.timing.spread_percent) : "", timed ? text("%.1f", rate) : "", std::to_string(m.copies),
          std::to_string(samples), device.name, std::to_string(device.compute_capability),
          std::to_string(device.driver), std::to_string(device.runtime), ladder::today()})
      cells.push_back(cell);
    out += ladder::csv_line(cells);
  }
  return out;
}

int check_all(const ladder::Device& device, std::vector<std::string>& refused) {
  int right = 0;
  ladder::Progress progress;
  for (const bool adds : {false, true})
    for (const int packs : kPacks)
      for (const int less : {0, 1}) {
        const int64_t cols = int64_t{packs - less} * kElements;
        const Problem problem{adds, std::max<int64_t>(3, 20000 / cols), cols};  // more rows than a block has
        Contest contest(problem, 0, device, 0);
        for (const Candidate* candidate : candidates_of(adds, packs, true)) {
          progress.show(name_of(*candidate, problem));
          const std::string refusal = contest.launch_once(*candidate, false);
          if (refusal.empty())
            ++right;
          else
            refused.push_back(name_of(*candidate, problem) + ": " + refusal);
        }
      }
  return right;
}

}  // namespace tune
