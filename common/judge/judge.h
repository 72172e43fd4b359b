// The judge of a student's kernels: a stage whose launcher has them run by another process, with the tensors of the
// judge's device. The judge draws the inputs, and has the oracle and the verdict; the runner has the kernels.
// LADDER_RUNNER is the command that starts the runner, a word per line.
#pragma once
#include <cuda_runtime.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cstdlib>
#include <cstring>
#include <random>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "common/cuda_check.h"
#include "common/judge/protocol.h"
#include "common/memory.h"
#include "common/operator.h"
#include "common/stage.h"
#include "common/text.h"
#include "simt/runtime/memory.h"

namespace simt {
extern bool is_profiling;
}

namespace ladder::judge {

// What the launcher threw; it may have been a failed CUDA call, or anything else.
class Thrown : public CudaError {
 public:
  explicit Thrown(const std::string& text) : CudaError(cudaErrorUnknown, "the launcher"), text_(text) {}
  const char* what() const noexcept override { return text_.c_str(); }

 private:
  std::string text_;
};

class Runner {
 public:
  Runner() {
    int requests[2], replies[2];
    if (memory_ < 0 || pipe2(requests, O_CLOEXEC) != 0 || pipe2(replies, O_CLOEXEC) != 0)
      throw std::runtime_error("the judge could not make memory and pipes to share with its runner");
    std::vector<std::string> words = command();
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    const int results = analysis();
    std::fflush(stdout);
    process_ = fork();
    if (process_ == 0) {
      // Above the places that they shall have, so that none overwrites another.
      const int files[] = {fcntl(memory_, F_DUPFD, 10), fcntl(requests[0], F_DUPFD, 10), fcntl(replies[1], F_DUPFD, 10),
                           fcntl(results, F_DUPFD, 10)};
      for (int i = 0; i < 4; ++i) dup2(files[i], kMemory + i), close(files[i]);
      execv(arguments[0], arguments.data());
      _exit(127);
    }
    for (const int file : {requests[0], replies[1], results}) close(file);
    requests_ = requests[1];
    replies_ = replies[0];
    signal(SIGPIPE, SIG_IGN);
    std::random_device random;
    nonce_ = static_cast<uint64_t>(random()) << 32 | random();
  }
  ~Runner() {  // it ends when there are no more requests; an analysis then writes its results
    close(requests_);
    if (process_ > 0) waitpid(process_, nullptr, 0);
  }
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;

  void launch(const Operator& op, const Arguments& arguments, cudaStream_t stream) {
    cudaStreamCaptureStatus capturing;
    CUDA_CHECK(cudaStreamIsCapturing(stream, &capturing));
    Request request = {};
    request.nonce = nonce_;
    request.number = ++number_;
    if (const char* order = std::getenv("SIMT_ORDER")) std::snprintf(request.order, sizeof request.order, "%s", order);
    request.is_counted = simt::is_profiling;
    request.is_captured = capturing != cudaStreamCaptureStatusNone;
    const std::vector<simt::Allocation> allocations = describe(op, arguments, request);
    if (const int devices = op.devices(arguments.shape); devices > 1) CUDA_CHECK(synchronize(devices));
    if (!request.is_captured) copy(allocations, request, cudaMemcpyDeviceToHost);
    const Reply reply = answer(request);
    if (reply.end == End::thrown) throw Thrown(reply.text);
    const auto error = static_cast<cudaError_t>(reply.error);
    if (reply.end == End::refused)
      throw CudaError(error, (std::string("the kernel's launch") + (reply.text[0] ? ": " : "") + reply.text).c_str());
    if (reply.end == End::failed) throw CudaError(error, "the kernel's run");
    if (reply.is_elsewhere) cudaStreamSynchronize(cudaStreamLegacy);  // leaves the same error
    if (!request.is_captured) copy(allocations, request, cudaMemcpyHostToDevice);
  }

 private:
  static std::vector<std::string> command() {
    const char* given = std::getenv("LADDER_RUNNER");
    if (!given) throw std::runtime_error("LADDER_RUNNER is not set: make grade says what runs the kernels");
    std::vector<std::string> words;
    std::istringstream lines(given);
    for (std::string word; std::getline(lines, word);) words.push_back(word);
    return words;
  }

  // The file for the runner's analysis, -1 if there is none. The runner may open no file for writing, so it gets this
  // one open.
  static int analysis() {
    const char* path = std::getenv("SIMT_ANALYSIS");
    if (!path || !*path) return -1;
    const int file = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    if (file < 0 || fchmod(file, 0666) != 0)
      throw std::runtime_error(text("the judge could not make %s for the analysis of the kernels", path));
    setenv("SIMT_ANALYSIS", text("/proc/self/fd/%d", kAnalysis).c_str(), 1);
    return file;
  }

  // Fills in where the tensors are; returns the allocations that they lie in.
  static std::vector<simt::Allocation> describe(const Operator& op, const Arguments& arguments, Request& request) {
    std::vector<simt::Allocation> allocations;
    request.tensors = static_cast<int>(op.tensors(arguments.shape).size());
    request.scalars = static_cast<int>(op.scalars().size());
    if (request.tensors > kMostTensors || request.scalars > kMostScalars)
      throw std::runtime_error("the operator has more tensors or scalars than common/judge/protocol.h");
    for (int i = 0; i < 3; ++i) request.shape[i] = arguments.shape[i];
    for (int i = 0; i < request.scalars; ++i) request.scalar[i] = arguments.scalars[i];
    for (int i = 0; i < request.tensors; ++i) {
      request.tensor[i].allocation = -1;
      if (!arguments.tensors[i]) continue;
      const auto address = reinterpret_cast<uintptr_t>(arguments.tensors[i]);
      simt::Allocation found;
      if (!simt::find_allocation(arguments.tensors[i], found))
        throw std::runtime_error("a tensor is not in the device's memory");
      int place = 0;
      while (place < request.allocations && allocations[place].begin != found.begin) ++place;
      if (place == request.allocations) {
        allocations.push_back(found);
        request.device[place] = found.device;
        request.bytes[request.allocations++] = static_cast<int64_t>(found.size);
      }
      request.tensor[i] = {place, static_cast<int64_t>(address - found.begin)};
    }
    return allocations;
  }

  void copy(const std::vector<simt::Allocation>& allocations, const Request& request, cudaMemcpyKind kind) {
    char* host = shared_.of(request, true);
    for (const simt::Allocation& one : allocations) {
      const OnDevice here(one.device);
      void* device = reinterpret_cast<void*>(one.begin);
      const bool there = kind == cudaMemcpyHostToDevice;
      CUDA_CHECK(cudaMemcpy(there ? device : host, there ? host : device, one.size, kind));
      host += whole(static_cast<int64_t>(one.size));
    }
  }

  Reply answer(const Request& request) {
    Reply reply;
    if (ended_.empty() && send(requests_, request) && receive(replies_, reply)) {
      if (reply.nonce == request.nonce && reply.number == request.number) {
        reply.text[sizeof reply.text - 1] = '\0';
        return reply;
      }
      ended_ = "the process with your kernels answered out of turn";
      kill(process_, SIGKILL);
    }
    if (ended_.empty()) ended_ = how_it_ended();
    throw std::runtime_error(ended_);
  }

  std::string how_it_ended() {
    int status = 0;
    waitpid(process_, &status, 0);
    process_ = -1;
    const int code = WEXITSTATUS(status);  // a sandbox adds 128 to the number of a signal
    const int by = WIFSIGNALED(status) ? WTERMSIG(status) : code > 128 ? code - 128 : 0;
    if (by == SIGXCPU) return "SIGXCPU";
    return by ? text("the process with your kernels was ended by a signal: %s", strsignal(by))
              : text("the process with your kernels ended with exit code %d", code);
  }

  int memory_ = memfd_create("tensors", MFD_CLOEXEC), requests_ = -1, replies_ = -1;
  pid_t process_ = -1;
  uint64_t nonce_ = 0, number_ = 0;
  std::string ended_;  // how, if it has
  SharedMemory shared_{memory_};
};

// The operator of a stage that another process launches.
template <class Op>
struct Elsewhere {
  using Launch = void (*)(const Arguments&, cudaStream_t);
  static const Operator& get() { return Op::get(); }
};

template <class Op>
int run(const Stage<Op>& stage, int argc, char** argv) {
  const auto launch = [](const Arguments& arguments, cudaStream_t stream) {
    static Runner runner;
    runner.launch(Op::get(), arguments, stream);
  };
  const Stage<Elsewhere<Op>> elsewhere{stage.name, stage.summary, launch, stage.needs};
  return run_all({elsewhere}, argc, argv);
}

}  // namespace ladder::judge
