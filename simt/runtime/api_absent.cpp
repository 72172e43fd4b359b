// Calls that programs make and that the CPU device has no answer to, each with a sentence about what to do instead.
#include "state.h"

using namespace simt;

namespace {

cudaError_t absent(const char* function, const char* sentence) {
  return api([&] { return not_supported(std::string(function) + ": " + sentence); });
}

constexpr char kGraphMemory[] =
    "the CPU device has no allocations inside graphs; allocate with cudaMalloc before the graph is launched";
constexpr char kOtherProcess[] =
    "the CPU device's memory and events belong to one process; copy through host memory that the processes share";

}  // namespace

cudaError_t cudaGraphAddMemAllocNode(cudaGraphNode_t*, cudaGraph_t, const cudaGraphNode_t*, size_t,
                                     cudaMemAllocNodeParams*) {
  return absent("cudaGraphAddMemAllocNode", kGraphMemory);
}
cudaError_t cudaGraphAddMemFreeNode(cudaGraphNode_t*, cudaGraph_t, const cudaGraphNode_t*, size_t, void*) {
  return absent("cudaGraphAddMemFreeNode", kGraphMemory);
}

cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t*, void*) { return absent("cudaIpcGetMemHandle", kOtherProcess); }
cudaError_t cudaIpcOpenMemHandle(void**, cudaIpcMemHandle_t, unsigned int) {
  return absent("cudaIpcOpenMemHandle", kOtherProcess);
}
cudaError_t cudaIpcCloseMemHandle(void*) { return absent("cudaIpcCloseMemHandle", kOtherProcess); }
cudaError_t cudaIpcGetEventHandle(cudaIpcEventHandle_t*, cudaEvent_t) {
  return absent("cudaIpcGetEventHandle", kOtherProcess);
}
cudaError_t cudaIpcOpenEventHandle(cudaEvent_t*, cudaIpcEventHandle_t) {
  return absent("cudaIpcOpenEventHandle", kOtherProcess);
}
