// What make tune S=q4_gemm measures: every candidate at every product that a policy tells apart.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <optional>

#include "bench/tune/core.h"
#include "bench/tune/q4_gemm/candidate.h"
#include "bench/tune/q4_gemm/reference.h"
#include "common/cuda_check.h"
#include "common/launch.h"

namespace tune {

std::vector<Candidate>& candidates() {
  static std::vector<Candidate> all;
  return all;
}

const Job job = {"make tune S=q4_gemm", "include/q4_gemm/policies", 3};

static const char* table_name(Table table) {
  return table == Table::few ? "few" : table == Table::exact ? "exact" : "rounded";
}

std::string Candidate::name() const {
  if (table == Table::few)
    return ladder::text("few: columns %d, tiles %d, %d per warp, phases %d, depth %d, together %d%s", columns, tiles,
                        warp_tiles, phases, depth, together, x_in_slots ? ", x in slots" : "");
  return ladder::text("%s: columns %d, groups %d, ways %d, together %d", table_name(table), columns, groups, ways,
                      together);
}
int Candidate::rows() const { return 16 * tiles + 64 * groups; }
bool Candidate::has_parts(int parts) const {
  return parts <= most_parts && (table != Table::few || (parts & (parts - 1)) == 0);
}

namespace {

using ladder::text;

struct Size {
  int64_t m, n, k;
};

struct Measurement : Result {
  const Candidate* candidate;
  Size size;
  int parts, clusters;  // of k, and how many clusters of so many blocks the GPU holds at once
};

struct Matrix {
  int64_t m, k;
};
// The report's, and the layers of Qwen3-8B.
constexpr Matrix kMatrices[] = {{1024, 4096},  {4096, 4096},  {4096, 12288},
                                {12288, 4096}, {4096, 14336}, {151936, 4096}};
constexpr int64_t kFewColumns[] = {1, 2, 4, 8, 16, 17, 32}, kManyColumns[] = {17, 32, 64, 128, 256, 512};
constexpr int64_t kMostBlocks = 3;  // of a multiprocessor: with more, k is not worth parting
constexpr double kNear = 1.3;       // of many columns, parts are measured that are guessed to be so near to the best
constexpr double kWarmUpMicroseconds = 1000;  // the GPU comes from measuring the candidate before

// Whether a candidate is worth a try for n columns: a kernel for few columns has as many as there are, but for 16 of
// them at a time if there are more.
bool is_for(const Candidate& c, int64_t n) {
  if (c.table != Table::few) return c.columns < 2 * n;
  if (n == 1) return c.columns == 1;
  if (n <= 8) return c.columns == 8;
  return n <= 16 ? c.columns == 16 : c.columns >= 16;
}
// Into which parts of k a product is worth dividing. Of many columns, by a guess of the times that plan_of() in
// include/q4_gemm/launch.cuh estimates from what is measured here: to begin and to end takes as long as four chunks.
std::vector<int> parts_for(const Candidate& c, const Size& size, int multiprocessors) {
  const int64_t tiles = ladder::blocks_for(size.m, c.rows()) * ladder::blocks_for(size.n, c.columns),
                chunks = ladder::blocks_for(size.k, 64);
  std::vector<int> possible;
  for (int parts = 1; parts <= std::min<int64_t>(kMostParts, chunks); ++parts)
    if (c.has_parts(parts)) possible.push_back(parts);
  std::vector<int> worth;
  const auto estimate = [&](int parts) {
    return static_cast<double>(ladder::blocks_for(tiles, std::max(1, c.clusters(parts))) *
                               (ladder::blocks_for(chunks, parts) + 4));
  };
  double least = INFINITY;
  if (c.table != Table::few)
    for (const int parts : possible) least = std::min(least, estimate(parts));
  for (const int parts : possible)
    if (c.table == Table::few ? parts == 1 || tiles * parts <= kMostBlocks * multiprocessors
                              : estimate(parts) <= kNear * least)
      worth.push_back(parts);
  return worth;
}

// Several copies of one matrix, repacked.
class Weights {
 public:
  Weights(const Matrix& matrix, int64_t most_columns, const ladder::Device* timed_on)
      : m(matrix.m),
        k(matrix.k),
        blocks_(ladder::allocate<unsigned char>(m * (k / 32) * 18)),
        x_(ladder::allocate<float>(most_columns * k)),
        size_(packed_bytes(m, k)) {
    copies = timed_on == nullptr ? 1 : ladder::copies_for(static_cast<double>(size_), *timed_on);
    if (timed_on != nullptr) copies = std::max<int64_t>(copies, 2);
    packed_ = ladder::allocate(copies * size_);
    fill(blocks_.get(), m * (k / 32), x_.get(), most_columns * k);
    for (int64_t i = 0; i < copies; ++i) repack(blocks_.get(), packed_.get() + i * size_, m, k);
    CUDA_CHECK(cudaDeviceSynchronize());
  }

  const unsigned char* blocks() const { return blocks_.get(); }
  const float* x() const { return x_.get(); }
  const char* packed(int64_t copy) const { return packed_.get() + copy * size_; }
  double bytes() const { return static_cast<double>(size_); }

  int64_t m, k, copies;

 private:
  ladder::DeviceMemory<unsigned char> blocks_;
  ladder::DeviceMemory<float> x_;
  int64_t size_;
  ladder::DeviceMemory<> packed_;
};

// The candidates for one product, one after the other.
class Contest {
 public:
  Contest(const Weights& weights, int64_t n, const ladder::Device& device)
      : size{weights.m, n, weights.k},
        weights_(weights),
        device_(device),
        y_(ladder::allocate<float>(weights.m * n)),
        workspace_(ladder::allocate(workspace_bytes(weights.m, n, weights.k))),
        product_{nullptr, weights.x(), y_.get(), workspace_.get(), weights.m, n, weights.k} {}

  // One launch, checked; why it is refused, or nothing.
  std::string launch_once(const Candidate& candidate, int parts) {
    if (device_.compute_capability < 90 && (parts > 1 || candidate.table != Table::few)) return kNeedsClusters;
    CUDA_CHECK(cudaMemset(y_.get(), 0xff, sizeof(float) * size.m * size.n));  // NaN
    const cudaError_t error = launch(candidate, parts, 0, nullptr);
    if (error != cudaSuccess) return refusal_of(error);
    if (const int64_t wrong = reference(candidate.table == Table::rounded).wrong(y_.get()))
      throw std::runtime_error(text("%s, %d parts, of %lld x %lld x %lld: %lld elements are wrong",
                                    candidate.name().c_str(), parts, static_cast<long long>(size.m),
                                    static_cast<long long>(size.n), static_cast<long long>(size.k),
                                    static_cast<long long>(wrong)));
    return "";
  }

  Measurement measure(const Candidate& candidate, int parts, int samples) {
    Measurement result{{weights_.bytes(), weights_.copies}, &candidate, size, parts, candidate.clusters(parts)};
    result.refusal = launch_once(candidate, parts);
    if (!result.refusal.empty()) return result;
    const auto one = [&](int64_t number, cudaStream_t stream) { CUDA_CHECK(launch(candidate, parts, number, stream)); };
    result.timing = ladder::measure(one, weights_.copies, samples, kWarmUpMicroseconds);
    launch_once(candidate, parts);
    const double held = device_.l2_bytes / (static_cast<double>(weights_.copies) * weights_.bytes());
    ladder::require_possible(candidate.name(), weights_.bytes() * std::max(0.0, 1.0 - held), result.timing, device_);
    return result;
  }

  const Size size;

 private:
  cudaError_t launch(const Candidate& candidate, int parts, int64_t copy, cudaStream_t stream) {
    product_.packed = weights_.packed(copy);
    return candidate.launch(product_, parts, stream);
  }
  const Reference& reference(bool rounded) {
    std::optional<Reference>& wanted = references_[rounded];
    if (!wanted) wanted.emplace(weights_.blocks(), weights_.x(), size.m, size.n, size.k, rounded);
    return *wanted;
  }

  const Weights& weights_;
  const ladder::Device& device_;
  ladder::DeviceMemory<float> y_;
  ladder::DeviceMemory<> workspace_;
  Product product_;
  std::optional<Reference> references_[2];
};

void print_line(Table table, const std::vector<Measurement>& found) {
  const Measurement& best = *std::min_element(found.begin(), found.end(), is_faster);
  std::printf("%6lld x %3lld x %-5lld", static_cast<long long>(best.size.m), static_cast<long long>(best.size.n),
              static_cast<long long>(best.size.k));
  if (best.refusal.empty())
    std::printf(" %8.2f us  %s, parts %d", best.timing.microseconds, best.candidate->name().c_str(), best.parts);
  else
    std::printf(" no candidate of %s launched: %s", table_name(table), best.refusal.c_str());
  std::printf("\n");
  std::fflush(stdout);
}

void measure_product(Table table, const Weights& weights, int64_t n, const ladder::Device& device, int samples,
                     std::vector<Measurement>& all) {
  Contest contest(weights, n, device);
  ladder::Progress progress;
  std::vector<Measurement> found;
  for (const Candidate& candidate : candidates()) {
    if (candidate.table != table || !is_for(candidate, n)) continue;
    for (const int parts : parts_for(candidate, contest.size, device.multiprocessors)) {
      progress.show(candidate.name());
      found.push_back(contest.measure(candidate, parts, samples));
    }
  }
  progress.clear();
  if (found.empty()) return;
  print_line(table, found);
  all.insert(all.end(), found.begin(), found.end());
}

std::vector<Measurement> measure_all(const ladder::Device& device, int samples) {
  std::vector<Measurement> all;
  check(device);  // what is refused here is refused below, with its reason
  for (const Matrix& matrix : kMatrices) {
    const Weights weights(matrix, *std::max_element(std::begin(kManyColumns), std::end(kManyColumns)), &device);
    for (const int64_t n : kFewColumns) measure_product(Table::few, weights, n, device, samples, all);
    for (const Table table : {Table::exact, Table::rounded})
      for (const int64_t n : kManyColumns) measure_product(table, weights, n, device, samples, all);
  }
  return all;
}

}  // namespace

std::string list() {
  std::string lines;
  for (const Candidate& candidate : candidates()) lines += candidate.name() + "\n";
  return lines;
}

std::string measure(const ladder::Device& device, int samples) {
  const auto cells_of = [](const Measurement& m) {
    const Candidate& c = *m.candidate;
    std::vector<std::string> cells = {table_name(c.table)};
    for (const int64_t number : {m.size.m, m.size.n, m.size.k}) cells.push_back(std::to_string(number));
    for (const int number : {c.columns, c.tiles, c.warp_tiles, c.groups, c.phases, c.ways, c.depth, c.together,
                             int{c.x_in_slots}, m.parts, m.clusters})
      cells.push_back(std::to_string(number));
    return cells;
  };
  return csv("table,m,n,k,columns,tiles,warp_tiles,groups,phases,ways,depth,together,x_in_slots,parts,clusters",
             measure_all(device, samples), cells_of, device, samples);
}

// On small products, with up to 3 parts of k and with the most.
Checks check(const ladder::Device& device) {
  Checks checks = {candidates().size()};
  ladder::Progress progress;
  // One chunk; an odd number of chunks, the last one half empty; rows that fill no group.
  for (const Matrix& matrix : {Matrix{70, 32}, Matrix{136, 1056}})
    for (const Candidate& candidate : candidates()) {
      const int64_t n = candidate.columns == 1 ? 1 : candidate.table == Table::few ? candidate.columns - 1 : 130;
      const Weights weights(matrix, n, nullptr);
      Contest contest(weights, n, device);
      for (const int parts : {1, 2, 3, kMostParts}) {
        if (parts > ladder::blocks_for(matrix.k, 64) || !candidate.has_parts(parts)) continue;
        progress.show(candidate.name());
        checks.add(text("%s, parts %d", candidate.name().c_str(), parts), contest.launch_once(candidate, parts));
      }
    }
  return checks;
}

}  // namespace tune
