// The process with a student's kernels: it has them, the CPU device and nothing else. It gets tensors, launches the
// kernels on them and hands the tensors back.
#include <cuda_profiler_api.h>
#include <cuda_runtime.h>
#include <signal.h>
#include <simt/stats.h>
#include <sys/prctl.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
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
      allocate(request);
      void* tensors[kMostTensors] = {};
      for (int i = 0; i < request.tensors; ++i) {
        const auto [allocation, offset] = request.tensor[i];
        if (allocation >= 0) tensors[i] = memory_[allocation].get() + offset;
      }
      const Shape shape{{request.shape[0], request.shape[1], request.shape[2]}};
      const Arguments arguments{tensors, shape, request.scalar};
      if (request.is_captured)
        capture(arguments, reply);
      else
        launch(request, arguments, reply);
    } catch (const std::exception& error) {
      reply.end = End::thrown;
      std::snprintf(reply.text, sizeof reply.text, "%s", error.what());
    }
  }

  void allocate(const Request& request) {
    const std::vector<int64_t> bytes(request.bytes, request.bytes + request.allocations);
    if (bytes == bytes_) return;
    memory_.clear();
    bytes_.clear();
    for (const int64_t one : bytes) memory_.push_back(ladder::allocate<char>(one));
    bytes_ = bytes;
  }

  void launch(const Request& request, const Arguments& arguments, Reply& reply) {
    char* const from = shared_.of(request, false);
    int64_t begin = 0;
    for (size_t i = 0; i < bytes_.size(); begin += whole(bytes_[i++]))
      CUDA_CHECK(cudaMemcpy(memory_[i].get(), from + begin, static_cast<size_t>(bytes_[i]), cudaMemcpyHostToDevice));
    judged::launch(arguments, cudaStreamPerThread);
    if (const cudaError_t error = cudaGetLastError(); error != cudaSuccess) {
      reply.end = End::refused;
      reply.error = error;
      std::snprintf(reply.text, sizeof reply.text, "%s", simt::refused_launch().c_str());
      return;
    }
    if (const cudaError_t error = cudaDeviceSynchronize(); error != cudaSuccess) {
      reply.end = End::failed;
      reply.error = error;
      return;
    }
    begin = 0;
    for (size_t i = 0; i < bytes_.size(); begin += whole(bytes_[i++]))
      CUDA_CHECK(cudaMemcpy(from + begin, memory_[i].get(), static_cast<size_t>(bytes_[i]), cudaMemcpyDeviceToHost));
  }

  static void capture(const Arguments& arguments, Reply& reply) {
    cudaStream_t stream;
    cudaGraph_t graph = nullptr;
    CUDA_CHECK(cudaStreamCreate(&stream));
    CUDA_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    try {
      judged::launch(arguments, stream);
      reply.is_elsewhere = cudaGetLastError() == cudaErrorStreamCaptureImplicit;
    } catch (const std::exception&) {  // a launcher that copies or waits cannot be captured
    }
    if (cudaStreamEndCapture(stream, &graph) == cudaSuccess) CUDA_CHECK(cudaGraphDestroy(graph));
    cudaGetLastError();
    CUDA_CHECK(cudaStreamDestroy(stream));
  }

  std::vector<int64_t> bytes_;
  std::vector<DeviceMemory<char>> memory_;
  SharedMemory shared_{kMemory};
};

}  // namespace
}  // namespace ladder::judge

int main() {
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // it ends with the judge
  signal(SIGINT, SIG_IGN);
  return ladder::judge::Runner().run();
}
