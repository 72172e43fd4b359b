// The workspaces with which many blocks share one long row.
#pragma once
#include <cuda_runtime_api.h>

namespace rms_norm_binding {

// A prepared workspace that nothing else uses while the next kernel of this stream of the current device does: each
// stream has one. What is captured into a graph gets one that belongs to the graph, since the graph may run on any
// stream.
cudaError_t find_workspace(cudaStream_t stream, void** workspace);

}  // namespace rms_norm_binding
