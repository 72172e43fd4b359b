// The process with a student's kernels: it has them, the CPU device and nothing else. It gets tensors, launches the
// kernels on them and hands the tensors back.
#include <cuda_profiler_api.h>
#include <cuda_runtime.h>
#include <signal.h>
#include <simt/stats.h>
#include <sys/prctl.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <utility>
#include <vector>

#include "common/judge/protocol.h"
#include "common/memory.h"
#include "common/stage.h"

namespace ladder::judged {
void launch(const Arguments& arguments, cudaStream_t stream);  // the student's object has it
}

namespace ladder::judge {
namespace {

class Runner {
 public:
  int run() {
    Request request;
    while (receive(kRequests, request)) {
      Reply reply = {request.nonce, request.number, End::done, cudaSuccess, false, {}};
      answer(request, reply);
      if (!send(kReplies, reply)) return 1;
    }
    return 0;
  }

 private:
  void answer(const Request& request, Reply& reply) {
    if (request.order[0])
      setenv("SIMT_ORDER", request.order, 1);
    else
      unsetenv("SIMT_ORDER");
    request.is_counted ? cudaProfilerStart() : cudaProfilerStop();
    try {
      if (!has_tensors_like(request)) allocate(request);
      if (request.is_captured)
        capture(request, reply);
      else
        launch(request, reply);
    } catch (const std::exception& error) {
      reply.end = End::thrown;
      std::snprintf(reply.text, sizeof reply.text, "%s", error.what());
    }
  }

  // What came last, in memory of its own.
  struct Tensors {
    Request request = {};
    std::vector<DeviceMemory<char>> memory;
  };

  bool has_tensors_like(const Request& request) const {
    const Request& last = now_.request;
    return request.allocations == last.allocations &&
           std::equal(request.bytes, request.bytes + request.allocations, last.bytes) &&
           std::equal(request.device, request.device + request.allocations, last.device) &&
           std::equal(request.shape, request.shape + 3, last.shape);
  }
  void allocate(const Request& request) {
    devices_ = 1;
    now_ = {};
    before_ = {};
    for (int i = 0; i < request.allocations; ++i) devices_ = std::max(devices_, request.device[i] + 1);
    for (Tensors* tensors : {&now_, &before_}) {
      for (int i = 0; i < request.allocations; ++i) {
        const OnDevice here(request.device[i]);
        tensors->memory.push_back(ladder::allocate<char>(request.bytes[i]));
      }
      tensors->request = request;
      if (devices_ == 1) break;
    }
    is_first_ = true;
  }

  static void start(const Tensors& given, cudaStream_t stream) {
    const Request& request = given.request;
    void* tensors[kMostTensors] = {};
    for (int i = 0; i < request.tensors; ++i) {
      const auto [allocation, offset] = request.tensor[i];
      if (allocation >= 0) tensors[i] = given.memory[allocation].get() + offset;
    }
    const Shape shape{{request.shape[0], request.shape[1], request.shape[2]}};
    judged::launch({tensors, shape, request.scalar}, stream);
  }

  // On several devices the launch before is made once more, without a wait between the two: what a rank still uses when
  // the next launch of another begins shows only so.
  void launch(const Request& request, Reply& reply) {
    if (devices_ > 1) std::swap(now_, before_);
    now_.request = request;
    char* const from = shared_.of(request, false);
    int64_t begin = 0;
    for (int i = 0; i < request.allocations; begin += whole(request.bytes[i++])) {
      const OnDevice here(request.device[i]);
      CUDA_CHECK(cudaMemcpy(now_.memory[i].get(), from + begin, static_cast<size_t>(request.bytes[i]),
                            cudaMemcpyHostToDevice));
    }
    if (devices_ > 1 && !is_first_ && !request.is_counted) start(before_, cudaStreamPerThread);
    is_first_ = false;
    start(now_, cudaStreamPerThread);
    if (const cudaError_t error = cudaGetLastError(); error != cudaSuccess) {
      reply.end = End::refused;
      reply.error = error;
      std::snprintf(reply.text, sizeof reply.text, "%s", simt::refused_launch().c_str());
      return;
    }
    if (const cudaError_t error = synchronize(devices_); error != cudaSuccess) {
      reply.end = End::failed;
      reply.error = error;
      return;
    }
    begin = 0;
    for (int i = 0; i < request.allocations; begin += whole(request.bytes[i++])) {
      const OnDevice here(request.device[i]);
      CUDA_CHECK(cudaMemcpy(from + begin, now_.memory[i].get(), static_cast<size_t>(request.bytes[i]),
                            cudaMemcpyDeviceToHost));
    }
  }

  void capture(const Request& request, Reply& reply) {
    now_.request = request;
    cudaStream_t stream;
    cudaGraph_t graph = nullptr;
    CUDA_CHECK(cudaStreamCreate(&stream));
    CUDA_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    try {
      start(now_, stream);
      reply.is_elsewhere = cudaGetLastError() == cudaErrorStreamCaptureImplicit;
    } catch (const std::exception&) {  // a launcher that copies or waits cannot be captured
    }
    if (cudaStreamEndCapture(stream, &graph) == cudaSuccess) CUDA_CHECK(cudaGraphDestroy(graph));
    cudaGetLastError();
    CUDA_CHECK(cudaStreamDestroy(stream));
  }

  Tensors now_, before_;
  int devices_ = 1;
  bool is_first_ = true;  // with tensors of these sizes
  SharedMemory shared_{kMemory};
};

}  // namespace
}  // namespace ladder::judge

int main() {
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // it ends with the judge
  signal(SIGINT, SIG_IGN);
  return ladder::judge::Runner().run();
}
