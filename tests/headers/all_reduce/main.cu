// The all-reduce of include/rms_norm: its sums to the last bit, its norms, and the same bits on all ranks.
//
//   all_reduce_test [--ranks N] [--launches N] [GROUP...]
//
// Ranks share the devices that there are. A GROUP is one of those that the program prints; without any, it runs all but
// "absent" and "dies", after which the devices cannot be used any more. The last line counts them. Exit code 1 if one
// fails.
#include "ranks.cuh"

namespace all_reduce_test {
namespace {

// --- Many launches ---------------------------------------------------------------------------------------------------

__global__ void delay(long long ticks) {
#ifdef __SIMT__
  static_cast<void>(ticks);
#else
  const long long begin = clock64();
  while (clock64() - begin < ticks) {
  }
#endif
}

// The same residual again and again, so that one wrong launch is seen at the end.
template <class T>
class Chain {
 public:
  static constexpr int kInputs = 5;
  Chain(const Group& group, int64_t rows, int64_t cols, unsigned seed) : group_(group), rows_(rows), cols_(cols) {
    std::mt19937 random(seed);
    const size_t count = static_cast<size_t>(rows * cols);
    expected_ = draw<T>(count, random);
    const std::vector<T> weight = draw<T>(static_cast<size_t>(cols), random);
    for (int rank = 0; rank < group.ranks(); ++rank) {
      group.use(rank);
      memories_.push_back(
          {allocate<T>(rows * cols * kInputs), allocate<T>(rows * cols), allocate<T>(rows * cols), allocate<T>(cols)});
      inputs_.push_back(draw<T>(count * kInputs, random, 0.1f));
      copy_in(memories_[rank].x.get(), inputs_[rank]);
      copy_in(memories_[rank].residual.get(), expected_);
      copy_in(memories_[rank].weight.get(), weight);
      CUDA_CHECK(cudaDeviceSynchronize());
    }
  }
  void launch(int rank, int number, int64_t rows, const AllReduceOptions& options) const {
    const Memory& m = memories_[rank];
    CUDA_CHECK(rms_norm::all_reduce_fused_add_rms_norm(group_.of(rank), m.x.get() + number % kInputs * rows_ * cols_,
                                                       m.residual.get(), m.residual.get(), m.weight.get(), m.y.get(),
                                                       rows, cols_, options, group_.stream(rank)));
  }
  void expect(int number, int64_t rows) {
    std::vector<const T*> parts;
    for (const auto& input : inputs_) parts.push_back(input.data() + number % kInputs * rows_ * cols_);
    add_all(parts, expected_.data(), static_cast<size_t>(rows * cols_));
  }
  void check_all() const {
    group_.synchronize();
    for (int rank = 0; rank < group_.ranks(); ++rank) {
      group_.use(rank);
      check(same_bits(copy_out(memories_[rank].residual.get(), expected_.size()), expected_),
            "the residual of rank " + std::to_string(rank) + " is another one after all launches");
    }
  }

 private:
  struct Memory {
    DeviceMemory<T> x, residual, y, weight;
  };
  const Group& group_;
  const int64_t rows_, cols_;
  std::vector<Memory> memories_;
  std::vector<std::vector<T>> inputs_;
  std::vector<T> expected_;
};

AllReduceOptions draw_options(std::mt19937& random) {
  AllReduceOptions options;
  options.reduction = random() % 2 == 0 ? Reduction::one_shot : Reduction::two_shot;
  options.dependent_launch = random() % 2 == 0;
  return options;
}

void delays(int ranks, int launches) {
  Group group(ranks, rms_norm::region_bytes(ranks, 1 << 15));
  Chain<float> chain(group, 12, 256, 5);
  // CUDA loads a kernel at its first launch, and may wait for those that run on the GPU: for a rank that shares it.
  for (int rank = 0; rank < ranks; ++rank) {
    group.use(rank);
    delay<<<1, 1, 0, group.stream(rank)>>>(0);
  }
  group.synchronize();
  std::mt19937 random(6);
  for (int number = 0; number < launches; ++number) {
    const int64_t rows = 1 + random() % 12;
    const int late = static_cast<int>(random() % ranks);
    const long long ticks = random() % 100000;
    const AllReduceOptions options = draw_options(random);
    for (int rank = 0; rank < ranks; ++rank) {
      group.use(rank);
      if (rank == late && number % 4 == 0) delay<<<1, 1, 0, group.stream(rank)>>>(ticks);
      chain.launch(rank, number, rows, options);
    }
    chain.expect(number, rows);
    if (number % 500 == 499) group.synchronize();
  }
  chain.check_all();
}

// The second group begins on device `begin`: where it has all devices for itself, each group is alone on its own.
void two_groups(int ranks, int launches, int begin) {
  const int at_once = begin >= ranks && begin + ranks <= device_count() ? 1 : 2;
  const size_t bytes = rms_norm::region_bytes(ranks, 1 << 15);
  Group first(ranks, bytes, at_once), second(ranks, bytes, at_once, begin);
  Chain<float> chains[] = {{first, 8, 256, 7}, {second, 12, 100, 8}};
  std::mt19937 random(9);
  for (int number = 0; number < launches; ++number) {
    const AllReduceOptions options = draw_options(random);
    const int64_t rows = 1 + random() % 8;
    for (int rank = 0; rank < ranks; ++rank)
      for (int i = 0; i < 2; ++i) {  // in another order on each rank
        const int which = (i + rank) % 2;
        (which == 0 ? first : second).use(rank);
        chains[which].launch(rank, number, rows, options);
      }
    for (auto& chain : chains) chain.expect(number, rows);
    if (number % 200 == 199) first.synchronize(), second.synchronize();
  }
  for (const auto& chain : chains) chain.check_all();
}

// The number of a launch is not in a graph: replays of two graphs follow each other.
void graphs(int ranks) {
  Group group(ranks, rms_norm::region_bytes(ranks, 1 << 15));
  Chain<float> chain(group, 8, 256, 10);
  std::mt19937 random(11);
  constexpr int kGraphs = 2, kLaunches = 3, kReplays = 6;
  struct Launch {
    int64_t rows;
    AllReduceOptions options;
  } launches[kGraphs][kLaunches];
  for (auto& of_graph : launches)
    for (Launch& launch : of_graph) launch = {static_cast<int64_t>(1 + random() % 8), draw_options(random)};
  std::vector<std::array<cudaGraphExec_t, kGraphs>> graphs(ranks);
  for (int rank = 0; rank < ranks; ++rank)
    for (int g = 0; g < kGraphs; ++g) {
      group.use(rank);
      cudaGraph_t graph = nullptr;
      CUDA_CHECK(cudaStreamBeginCapture(group.stream(rank), cudaStreamCaptureModeThreadLocal));
      for (int i = 0; i < kLaunches; ++i) chain.launch(rank, i, launches[g][i].rows, launches[g][i].options);
      CUDA_CHECK(cudaStreamEndCapture(group.stream(rank), &graph));
      CUDA_CHECK(cudaGraphInstantiate(&graphs[rank][g], graph, 0));
      CUDA_CHECK(cudaGraphDestroy(graph));
    }
  for (int replay = 0; replay < kReplays; ++replay) {
    const int g = replay % 3 == 0;
    for (int rank = 0; rank < ranks; ++rank) {
      group.use(rank);
      CUDA_CHECK(cudaGraphLaunch(graphs[rank][g], group.stream(rank)));
    }
    for (int i = 0; i < kLaunches; ++i) chain.expect(i, launches[g][i].rows);
  }
  chain.check_all();
  for (auto& of_rank : graphs)
    for (cudaGraphExec_t graph : of_rank) CUDA_CHECK(cudaGraphExecDestroy(graph));
}

// --- What is refused, and who is absent ------------------------------------------------------------------------------

void refusals(int ranks) {
  Group group(ranks, rms_norm::region_bytes(ranks, 1 << 15));
  auto memory = allocate<float>(3 * 4096);
  float *const x = memory.get(), *const residual = x + 4096, *const y = residual + 4096;
  Communicator c = group.of(0);
  const auto refuses = [&](const std::string& why, const float* from, float* out, int64_t rows = 1, int64_t cols = 16,
                           AllReduceOptions options = {}) {
    const char* const said = rms_norm::explain_all_reduce(c, from, residual, residual, x, out, rows, cols, options);
    check(said != nullptr && said == why, why + ": it says " + (said ? said : "nothing"));
    check(rms_norm::all_reduce_fused_add_rms_norm(c, from, residual, residual, x, out, rows, cols, options) ==
              cudaErrorInvalidValue,
          why + ": the call is not refused");
  };
  float* const after = x + 64;
  refuses("rows is negative", after, y, -1);
  refuses("cols is less than 1", after, y, 1, 0);
  refuses("x is nullptr", nullptr, y);
  refuses("y overlaps weight", after, x);
  refuses("y overlaps x, and may not be the same tensor", after, after + 1);
  refuses("y overlaps residual, and may not be the same tensor", after, residual + 1);
  refuses("y overlaps residual, and may not be the same tensor", after, residual);
  refuses("the communicator's region overlaps y", after, static_cast<float*>(c.regions[0]) + 4);
  refuses("a row is larger than the communicator's regions allow", after, y, 1, 1 << 24);
  refuses("rows * cols is too large for 64-bit addresses", after, y, INT64_MAX / 2, 4096);
  AllReduceOptions options;
  options.eps = -1;
  refuses("eps is negative or not finite", after, y, 1, 16, options);
  options = {};
  options.residual_is_sharded = true, options.reduction = Reduction::one_shot;
  refuses("a sharded residual takes two shots", after, y, 1, 16, options);
  c.rank = ranks;
  refuses("the communicator's rank is not below its ranks", after, y);
  c = group.of(0), c.ranks = 9;
  refuses("a communicator has 1 to 8 ranks", after, y);
  c = group.of(0), c.regions[ranks - 1] = nullptr;
  refuses("the communicator lacks a region", after, y);
  c = group.of(0), c.regions[ranks - 1] = static_cast<char*>(c.regions[ranks - 1]) + 8;
  refuses("a region is not aligned to 16 bytes", after, y);
  if (ranks > 1) {
    c = group.of(0), c.regions[1] = c.regions[0];
    refuses("two ranks of the communicator have one region", after, y);
  }
  c = group.of(0), c.groups = 1 << 20;
  check(rms_norm::all_reduce_fused_add_rms_norm(c, after, residual, residual, x, y, 1, 16) ==
            cudaErrorCooperativeLaunchTooLarge,
        "a GPU without room for a block is not refused");
  check(rms_norm::explain_all_reduce(group.of(0), after, residual, residual, x, y, 1, 16) == nullptr, "a good call");
}

__global__ void fail() {
#ifndef __SIMT__
  __trap();
#endif
}

// After some launches the last rank's next one never comes. The others fail, too, and say who it is; where the rank's
// GPU itself has failed, CUDA ends the launches on the process's other GPUs before these have to say it.
void absent(int ranks, int launches_before, bool dies) {
  Group group(ranks, rms_norm::region_bytes(ranks, 1 << 15));
  Chain<float> chain(group, 1, 256, 12);
  AllReduceOptions options;
  options.reduction = Reduction::one_shot;
  for (int number = 0; number < launches_before; ++number)
    for (int rank = 0; rank < ranks; ++rank) {
      group.use(rank);
      chain.launch(rank, number, 1, options);
    }
  group.synchronize();
  if (dies) {
    group.use(ranks - 1);
    fail<<<1, 1, 0, group.stream(ranks - 1)>>>();
  }
  for (int rank = 0; rank + 1 < ranks; ++rank) {
    group.use(rank);
    chain.launch(rank, launches_before, 1, options);
  }
  for (int rank = 0; rank + 1 < ranks; ++rank) {
    group.use(rank);
    check(cudaStreamSynchronize(group.stream(rank)) != cudaSuccess, "the launch of a rank that waits succeeds");
  }
  // Where one device's error ends the work of all, as on the CPU device, one rank says it.
  int said = 0;
  for (int rank = 0; rank + 1 < ranks; ++rank) {
    if (group.late(rank) < 0) continue;
    check(group.late(rank) == ranks - 1, "a rank says that it waits for rank " + std::to_string(group.late(rank)));
    ++said;
  }
  check(said > 0 || dies, "no rank says for whom it waits");
}

}  // namespace
}  // namespace all_reduce_test

int main(int count, char** given) try {
  using namespace all_reduce_test;
  int ranks = std::clamp(device_count(), 2, 8), launches = 10000;
  std::vector<std::string> wanted;
  for (int i = 1; i < count; ++i) {
    const std::string word = given[i];
    if (word == "--ranks" && i + 1 < count)
      ranks = std::atoi(given[++i]);
    else if (word == "--launches" && i + 1 < count)
      launches = std::atoi(given[++i]);
    else
      wanted.push_back(word);
  }
  if (ranks < 1 || ranks > 8 || launches < 1)
    return std::fprintf(stderr, "--ranks is from 1 to 8, and --launches at least 1\n"), 2;
  let_devices_see_each_other();
  struct Named {
    std::string name;
    std::function<void()> run;
  };
  std::vector<Named> groups;
  for (const char* name : {"shapes", "sharded", "many_rows", "sentinels"}) {
    groups.push_back({name + std::string(", bfloat16"), [=] { run_group<__nv_bfloat16>(name, ranks); }});
    groups.push_back({name + std::string(", float16"), [=] { run_group<__half>(name, ranks); }});
    groups.push_back({name + std::string(", float32"), [=] { run_group<float>(name, ranks); }});
  }
  for (const Named& group : std::initializer_list<Named>{
           {"graphs", [&] { graphs(ranks); }},
           {"two_groups", [&] { two_groups(ranks, std::max(1, launches / 10), 0); }},
           {"two_halves", [&] { two_groups(ranks / 2, launches, ranks / 2); }},
           {"delays", [&] { delays(ranks, launches); }},
           {"refusals", [&] { refusals(ranks); }},
           {"absent", [&] { absent(ranks, 0, false); }},
           {"dies", [&] { absent(ranks, 20, true); }},
       })
    groups.push_back(group);
  int passed = 0, failed = 0;
  for (const Named& group : groups) {
    const bool is_wanted = std::find(wanted.begin(), wanted.end(), group.name) != wanted.end();
    if (wanted.empty() ? group.name == "absent" || group.name == "dies" : !is_wanted) continue;
    if (group.name == "two_halves" && ranks < 4 && wanted.empty()) continue;
    try {
      group.run();
      std::printf("pass  %s, %d ranks\n", group.name.c_str(), ranks), ++passed;
    } catch (const std::exception& error) {
      std::printf("fail  %s, %d ranks: %s\n", group.name.c_str(), ranks, error.what()), ++failed;
      if (cudaDeviceSynchronize() != cudaSuccess) break;
    }
    std::fflush(stdout);
  }
  std::printf("%d passed, %d failed\n", passed, failed);
  return failed > 0 || passed == 0 ? 1 : 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 2;
}
