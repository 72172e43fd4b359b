// Several calls: on one workspace, in a row, in graphs, on streams, from threads, on devices.
#include <array>
#include <condition_variable>
#include <ctime>
#include <memory>
#include <mutex>
#include <thread>

#include "common/text.h"
#include "tests/headers/rms_norm/topics.h"

namespace header_test {
namespace {

using ladder::text;

using Stream = std::unique_ptr<std::remove_pointer_t<cudaStream_t>, ladder::CudaDeleter<cudaStreamDestroy>>;
Stream new_stream() {
  cudaStream_t stream = nullptr;
  CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  return Stream(stream);
}

// Calls in a row of which each reads what the one before it wrote; each is checked against what it read.
class Chain {
 public:
  Chain(const Combination& c, Problem problem, int length) : adds_(c.adds()) {
    for (int i = 0; i < length; ++i) {
      problem.seed = i + 1;
      links_.push_back(std::make_unique<Trial>(c, problem));
      if (i == 0) continue;
      links_[i]->tensors[Op::kX] = links_[i - 1]->tensors[Op::kY];
      if (adds_) links_[i]->tensors[Op::kResidual] = links_[i - 1]->tensors[Op::kResidualOut];
    }
  }
  void reset() {
    for (const auto& link : links_) link->reset();
    CUDA_CHECK(cudaDeviceSynchronize());
  }
  cudaError_t launch(cudaStream_t stream) {
    for (const auto& link : links_)
      if (const cudaError_t error = link->launch(stream)) return error;
    return cudaSuccess;
  }
  std::string check() {
    std::string failure = links_[0]->check();
    for (size_t i = 1; i < links_.size() && failure.empty(); ++i) {
      const auto read = [&](Case& c) {
        links_[i - 1]->buffers()[Op::kY].download(c.inputs[Op::kX].data());
        if (adds_) links_[i - 1]->buffers()[Op::kResidualOut].download(c.inputs[Op::kResidual].data());
      };
      const Case& drawn = links_[i]->given;
      failure = links_[i]->check(Case(drawn.op, drawn.shape, links_[i]->asked().seed, read));
    }
    return failure;
  }
  const Trial& first() const { return *links_.front(); }

 private:
  bool adds_;
  std::vector<std::unique_ptr<Trial>> links_;
};

std::vector<Problem> chained(const Combination& c, bool quick, void* workspace) {
  std::vector<Problem> result;
  int number = 0;
  for (const auto& [rows, cols] : Shapes{{1, 4096},
                                         {16, 4096},
                                         {300, 128},
                                         {3, 1000},
                                         {5, 8193},
                                         {1, 20001},
                                         {40, 40000},
                                         {1, 70000},
                                         {1, 1048576}}) {
    if ((quick || !c.uniform()) && rows * cols > 100000) continue;
    Problem p = in_mode({rows, cols}, number++);
    p.workspace = cols > 30000 ? workspace : nullptr;
    p.dependent_launch = true;
    result.push_back(p);
  }
  return result;
}

// A call that overtakes the one before it would spoil what that one still reads.
std::string in_place_many_times(const Combination& c, Problem problem, cudaStream_t stream) {
  problem.place(Op::kY).same_as = Op::kX;
  if (c.adds()) problem.place(Op::kResidualOut).same_as = Op::kResidual;
  Trial trial(c, problem);
  const ladder::Tensor& y = trial.given.tensors[Op::kY];
  std::vector<char> expected(y.count() * size_of(y.type));
  for (const bool one_by_one : {true, false}) {
    trial.reset();
    CUDA_CHECK(cudaDeviceSynchronize());
    for (int i = 0; i < 8; ++i) {
      if (const cudaError_t error = trial.launch(stream)) return trial.failed(error);
      if (one_by_one) CUDA_CHECK(cudaStreamSynchronize(stream));
    }
    CUDA_CHECK(cudaStreamSynchronize(stream));
    if (one_by_one) trial.buffers()[Op::kY].download(expected.data());
  }
  const bool same = trial.buffers()[Op::kY].holds(expected.data());
  return trial.failed(same ? "" : "eight calls in a row differ from the same one by one");
}

}  // namespace

void workspace(Tally& tally, const Combination& c, bool quick) {
  Workspace memory;
  int number = 0;
  for (int round = 0; round < (quick ? 1 : 3); ++round)
    for (const auto& [rows, cols] : Shapes{{1, 32768},
                                           {2, 65536},
                                           {1, 1048576},
                                           {3, 40000},
                                           {1, 65537},
                                           {1, 4096},
                                           {17, 32776},
                                           {1, 131072},
                                           {65, 33000},
                                           {2, 100001},
                                           {1, 262152},
                                           {1, 2000000},
                                           {4, 131080},
                                           {259, 131080},  // teams of blocks take these
                                           {65, 524296},
                                           {2801, 12003},
                                           {1100, 33001},
                                           {16, 4}}) {
      if (rows * cols > 30000000 && (quick || !c.uniform() || c.adds())) continue;
      if ((quick || !c.uniform()) && rows * cols > 300000 && cols != 1048576) continue;
      if (quick && !c.uniform() && cols > 100000) continue;
      Problem p = in_mode({rows, cols}, number++);
      p.workspace = memory.data();
      if (number % 4 == 1) p.place(Op::kX).offset = 1;
      if (number % 4 == 2) p.layout(Op::kY) = {cols + 8};
      if (number % 4 == 3 && c.types.x == c.types.y) p.place(Op::kY).same_as = Op::kX;
      if (number % 8 == 7 && c.adds()) p.place(Op::kResidualOut).same_as = Op::kResidual;
      p.dependent_launch = number % 3 == 0;
      check(tally, c, p);
    }
  tally.expect(!memory.is_overrun(), "wrote outside the workspace");
}

void dependent(Tally& tally, const Combination& c, bool quick) {
  Workspace memory;
  const Stream stream = new_stream();
  for (const Problem& p : chained(c, quick, memory.data())) {
    Chain chain(c, p, 6);
    for (int round = 0; round < (quick ? 1 : 5); ++round) {
      chain.reset();
      const cudaError_t error = chain.launch(stream.get());
      tally.expect(error ? chain.first().failed(error) : chain.check());
    }
    tally.expect(in_place_many_times(c, p, stream.get()));
  }
}

void graphs(Tally& tally, const Combination& c, bool quick) {
  Workspace memory;
  const Stream stream = new_stream();
  for (Problem p : chained(c, quick, memory.data()))
    for (const bool dependent_launch : {false, true}) {
      p.dependent_launch = dependent_launch;
      Chain chain(c, p, 4);
      cudaGraph_t graph = nullptr;
      cudaGraphExec_t executable = nullptr;
      CUDA_CHECK(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeThreadLocal));
      const cudaError_t error = chain.launch(stream.get());
      const cudaError_t ended = cudaStreamEndCapture(stream.get(), &graph);
      tally.expect(error || ended ? chain.first().failed(error ? error : ended) + " while it was captured" : "");
      if (error || ended) continue;
      CUDA_CHECK(cudaGraphInstantiate(&executable, graph, 0));
      for (int replay = 0; replay < 3; ++replay) {
        chain.reset();
        CUDA_CHECK(cudaGraphLaunch(executable, stream.get()));
        const std::string failure = chain.check();
        tally.expect(failure.empty() ? "" : failure + text(", replay %d of a graph", replay + 1));
      }
      CUDA_CHECK(cudaGraphExecDestroy(executable));
      CUDA_CHECK(cudaGraphDestroy(graph));
    }
}

// What x holds arrives on the stream itself, after a pause, so that a launch on another stream would read poison.
void streams(Tally& tally, const Combination& c, bool) {
  Workspace memory;
  for (const auto& [rows, cols] : Shapes{{3, 4096}, {3, 1001}, {1, 40000}, {1, 300000}})
    for (const bool with_workspace : {false, true}) {
      const Stream stream = new_stream();
      Problem p = {rows, cols};
      p.workspace = with_workspace ? memory.data() : nullptr;
      Trial trial(c, p);
      trial.reset();
      const int64_t bytes = cols * size_of(c.types.x);
      CUDA_CHECK(cudaMemset(trial.tensors[Op::kX], 0xff, bytes));
      CUDA_CHECK(cudaDeviceSynchronize());
      const auto pause = [](void*) {
        const timespec time = {0, 20000000};
        nanosleep(&time, nullptr);
      };
      CUDA_CHECK(cudaLaunchHostFunc(stream.get(), pause, nullptr));
      CUDA_CHECK(cudaMemcpyAsync(trial.tensors[Op::kX], trial.given.inputs[Op::kX].data(), bytes,
                                 cudaMemcpyHostToDevice, stream.get()));
      const cudaError_t error = trial.launch(stream.get());
      tally.expect(error ? trial.failed(error) : trial.check());
    }
}

void determinism(Tally& tally, const Combination& c, bool quick) {
  Workspace memory;
  for (const auto& [rows, cols] :
       Shapes{{33, 128}, {3, 1000}, {17, 4096}, {5, 8193}, {2, 40000}, {1, 131072}, {1, 1048576}})
    for (const bool with_workspace : {false, true}) {
      if ((quick || !c.uniform()) && rows * cols > 200000) continue;
      if (with_workspace && cols < 30000) continue;
      Problem p = {rows, cols};
      p.workspace = with_workspace ? memory.data() : nullptr;
      tally.expect(Trial(c, p).run(5));
    }
}

// Several long rows on streams at once, each stream with a workspace of its own.
void side_by_side(Tally& tally, const Combination& c, bool quick) {
  constexpr int kStreams = 3;
  Workspace memory[kStreams];
  std::vector<Stream> streams;
  std::vector<std::unique_ptr<Trial>> trials;
  for (int i = 0; i < kStreams; ++i) {
    streams.push_back(new_stream());
    for (int k = 0; k < (quick ? 1 : 4); ++k) {
      Problem p = in_mode({1 + i, 60000 + 8 * k + i}, 4 * i + k);
      p.workspace = memory[i].data();
      trials.push_back(std::make_unique<Trial>(c, p));
      trials.back()->reset();
    }
  }
  CUDA_CHECK(cudaDeviceSynchronize());
  const size_t each = trials.size() / kStreams;
  std::vector<cudaError_t> errors;
  for (size_t i = 0; i < trials.size(); ++i) errors.push_back(trials[i]->launch(streams[i / each].get()));
  for (size_t i = 0; i < trials.size(); ++i)
    tally.expect(errors[i] ? trials[i]->failed(errors[i]) : trials[i]->check());
}

namespace {

// What one of two threads calls: on a device, a stream and a workspace of its own.
struct Side {
  Side(const Combination& c, int device, int number) : device(device) {
    CUDA_CHECK(cudaSetDevice(device));
    workspace = std::make_unique<Workspace>();
    stream = new_stream();
    // The first needs more shared memory than a kernel has without asking, and each thread another amount.
    for (const auto& [rows, cols] : Shapes{{1, 200000 + 100000 * number}, {3, 1000}, {16, 4096}, {1, 70000}}) {
      Problem p = in_mode({rows, cols}, number);
      p.workspace = cols == 70000 ? workspace->data() : nullptr;
      trials.push_back(std::make_unique<Trial>(c, p));
    }
  }
  void reset() {
    CUDA_CHECK(cudaSetDevice(device));
    for (const auto& trial : trials) trial->reset();
    CUDA_CHECK(cudaDeviceSynchronize());
    errors.assign(trials.size(), cudaSuccess);
  }
  // before() and after() stand around each call.
  template <class Before, class After>
  void call(int times, Before before, After after) {
    const cudaError_t chosen = cudaSetDevice(device);
    for (int i = 0; i < times; ++i)
      for (size_t t = 0; t < trials.size(); ++t) {
        before();
        const cudaError_t error = chosen ? chosen : trials[t]->launch(stream.get());
        after();
        if (error) errors[t] = error;
      }
  }
  void check(Tally& tally) {
    CUDA_CHECK(cudaSetDevice(device));
    for (size_t t = 0; t < trials.size(); ++t) {
      const std::string failure = errors[t] ? trials[t]->failed(errors[t]) : trials[t]->check();
      tally.expect(failure.empty() ? "" : failure + text(", on device %d, beside another thread", device));
    }
    tally.expect(!workspace->is_overrun(), "wrote outside the workspace");
  }

  int device;
  std::unique_ptr<Workspace> workspace;
  Stream stream;
  std::vector<std::unique_ptr<Trial>> trials;
  std::vector<cudaError_t> errors;
};

// Calls in turns, then as they come.
void from_two_threads(Tally& tally, const Combination& c, const std::array<int, 2>& devices, bool quick) {
  Side sides[] = {{c, devices[0], 0}, {c, devices[1], 1}};
  const auto run = [&](const auto& call) {
    for (Side& side : sides) side.reset();
    std::thread other([&] { call(1); });
    call(0);
    other.join();
    for (Side& side : sides) side.check(tally);
  };
  std::mutex mutex;
  std::condition_variable changed;
  int turn = 0;
  run([&](int number) {
    std::unique_lock<std::mutex> lock(mutex, std::defer_lock);
    const auto wait = [&] {
      lock.lock();
      changed.wait(lock, [&] { return turn == number; });
    };
    const auto pass_on = [&] {
      turn = 1 - number;
      lock.unlock();
      changed.notify_one();
    };
    sides[number].call(2, wait, pass_on);
  });
  const auto nothing = [] {};
  run([&](int number) { sides[number].call(quick ? 2 : 100, nothing, nothing); });
  CUDA_CHECK(cudaSetDevice(0));
}

}  // namespace

void two_threads(Tally& tally, const Combination& c, bool quick) { from_two_threads(tally, c, {0, 0}, quick); }

// The second GPU, where there is one, after the first has been used, and then both.
void two_devices(Tally& tally, bool quick) {
  int devices = 0;
  CUDA_CHECK(cudaGetDeviceCount(&devices));
  if (devices < 2) return tally.skip("there is one device");
  for (const Combination& c : combinations())
    if (c.uniform()) {
      check(tally, c, {1, 200000});
      CUDA_CHECK(cudaSetDevice(1));
      check(tally, c, {1, 200000});
      lengths(tally, c, true);
      workspace(tally, c, true);
      dependent(tally, c, true);
      CUDA_CHECK(cudaSetDevice(0));
      from_two_threads(tally, c, {0, 1}, quick);
    }
}

}  // namespace header_test
