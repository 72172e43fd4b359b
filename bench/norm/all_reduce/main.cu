// All-reduce + residual + norm on the GPUs of this machine, in one process: the header, and NCCL with the header's
// single-GPU norm. Each is captured into a graph on each GPU; the time is that of the slowest rank.
//
//   make BACKEND=cuda bench/norm/all_reduce/program
//   build/cuda/bench/norm/all_reduce/all_reduce [--csv FILE] [--quick] [--raw]
//
// make peers ARGS=--all-reduce does both.
//
// --quick leaves out the largest calls, and --raw takes memory of cudaMalloc instead of NCCL's. A graph has 40 calls on
// as many tensors as fit into 128 MiB; the CSV has the median and the least time of seven measurements of several
// replays, which follow each other without a pause.
#include <nccl.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <rms_norm/all_reduce_nccl.cuh>
#include <rms_norm/rms_norm.cuh>
#include <stdexcept>
#include <string>
#include <vector>

#include "common/cuda_check.h"
#include "common/memory.h"

namespace {

using T = __nv_bfloat16;
using ladder::allocate, ladder::DeviceMemory;

void nccl_check(ncclResult_t result, const char* call) {
  if (result != ncclSuccess) throw std::runtime_error(std::string(ncclGetErrorString(result)) + " from " + call);
}
#define NCCL_CHECK(call) nccl_check((call), #call)

__global__ void fill(T* to, int64_t count, unsigned seed) {
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += int64_t{gridDim.x} * blockDim.x) {
    unsigned hash = static_cast<unsigned>(i) * 2654435761u + seed;
    hash ^= hash >> 15, hash *= 2246822519u, hash ^= hash >> 13;
    to[i] = __float2bfloat16(static_cast<float>(hash % 4096) / 2048.0f - 1.0f);
  }
}

constexpr int kCalls = 40;  // in a graph

struct Rank {
  ncclComm_t nccl = nullptr;
  rms_norm::Communicator communicator;
  cudaStream_t stream = nullptr;
  cudaEvent_t begin = nullptr, end = nullptr;
  DeviceMemory<T> x, residual, y, weight;
  std::unique_ptr<rms_norm::NcclRegion> region;
  DeviceMemory<char> raw;
};

using Call = std::function<void(std::vector<Rank>&, int call, int64_t rows, int64_t cols)>;
struct Competitor {
  std::string name;
  Call call;
};

int64_t g_pool = 0;  // of how many inputs
T* in(DeviceMemory<T>& memory, int call, int64_t count) { return memory.get() + call % g_pool * count; }

Call ours(rms_norm::Reduction reduction, bool dependent, bool sharded = false) {
  return [=](std::vector<Rank>& ranks, int call, int64_t rows, int64_t cols) {
    for (int r = 0; r < static_cast<int>(ranks.size()); ++r) {
      Rank& rank = ranks[r];
      CUDA_CHECK(cudaSetDevice(r));
      rms_norm::AllReduceOptions options;
      options.reduction = reduction, options.dependent_launch = dependent, options.residual_is_sharded = sharded;
      T* const x = in(rank.x, call, rows * cols);
      T* const residual = in(rank.residual, call, rows * cols);
      CUDA_CHECK(rms_norm::all_reduce_fused_add_rms_norm(rank.communicator, x, residual, residual, rank.weight.get(),
                                                         in(rank.y, call, rows * cols), rows, cols, options,
                                                         rank.stream));
    }
  };
}
Call nccl_and_norm(bool norm, bool dependent) {
  return [=](std::vector<Rank>& ranks, int call, int64_t rows, int64_t cols) {
    NCCL_CHECK(ncclGroupStart());
    for (Rank& rank : ranks) {
      T* const x = in(rank.x, call, rows * cols);
      NCCL_CHECK(
          ncclAllReduce(x, in(rank.y, call, rows * cols), rows * cols, ncclBfloat16, ncclSum, rank.nccl, rank.stream));
    }
    NCCL_CHECK(ncclGroupEnd());
    if (!norm) return;
    for (int r = 0; r < static_cast<int>(ranks.size()); ++r) {
      Rank& rank = ranks[r];
      CUDA_CHECK(cudaSetDevice(r));
      rms_norm::Options options;
      options.dependent_launch = dependent;
      T* const y = in(rank.y, call, rows * cols);
      T* const residual = in(rank.residual, call, rows * cols);
      CUDA_CHECK(
          rms_norm::fused_add_rms_norm(y, residual, residual, rank.weight.get(), y, rows, cols, options, rank.stream));
    }
  };
}

double median(std::vector<double> times) {
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

struct Timed {
  double median, least;
};
Timed time_of(std::vector<Rank>& ranks, const Competitor& competitor, int64_t rows, int64_t cols) {
  std::vector<cudaGraphExec_t> graphs(ranks.size());
  for (int r = 0; r < static_cast<int>(ranks.size()); ++r) {
    CUDA_CHECK(cudaSetDevice(r));
    CUDA_CHECK(cudaStreamBeginCapture(ranks[r].stream, cudaStreamCaptureModeRelaxed));
  }
  for (int call = 0; call < kCalls; ++call) competitor.call(ranks, call, rows, cols);
  for (int r = 0; r < static_cast<int>(ranks.size()); ++r) {
    CUDA_CHECK(cudaSetDevice(r));
    cudaGraph_t graph = nullptr;
    CUDA_CHECK(cudaStreamEndCapture(ranks[r].stream, &graph));
    CUDA_CHECK(cudaGraphInstantiate(&graphs[r], graph, 0));
    CUDA_CHECK(cudaGraphDestroy(graph));
    CUDA_CHECK(cudaGraphUpload(graphs[r], ranks[r].stream));
  }
  const int replays =
      std::max<int>(2, static_cast<int>(std::min<int64_t>(20, 20 * 256 / std::max<int64_t>(256, rows))));
  std::vector<double> times;
  for (int measurement = 0; measurement < 8; ++measurement) {
    for (int phase = 0; phase < 3; ++phase)  // one graph as a warm-up that also lines the ranks up
      for (int replay = 0; replay < (phase == 1 ? replays : 1); ++replay)
        for (int r = 0; r < static_cast<int>(ranks.size()); ++r) {
          CUDA_CHECK(cudaSetDevice(r));
          if (phase == 1 && replay == 0) CUDA_CHECK(cudaEventRecord(ranks[r].begin, ranks[r].stream));
          if (phase == 2)
            CUDA_CHECK(cudaEventRecord(ranks[r].end, ranks[r].stream));
          else
            CUDA_CHECK(cudaGraphLaunch(graphs[r], ranks[r].stream));
        }
    double slowest = 0;
    for (int r = 0; r < static_cast<int>(ranks.size()); ++r) {
      float milliseconds = 0;
      CUDA_CHECK(cudaSetDevice(r));
      CUDA_CHECK(cudaEventSynchronize(ranks[r].end));
      CUDA_CHECK(cudaEventElapsedTime(&milliseconds, ranks[r].begin, ranks[r].end));
      slowest = std::max(slowest, milliseconds * 1e3 / (replays * kCalls));
    }
    if (measurement > 0) times.push_back(slowest);
  }
  for (cudaGraphExec_t graph : graphs) CUDA_CHECK(cudaGraphExecDestroy(graph));
  return {median(times), *std::min_element(times.begin(), times.end())};
}

}  // namespace

int main(int count, char** given) try {
  const char* csv = nullptr;
  bool quick = false, raw = false;
  for (int i = 1; i < count; ++i) {
    if (std::strcmp(given[i], "--quick") == 0) quick = true;
    if (std::strcmp(given[i], "--raw") == 0) raw = true;
    if (std::strcmp(given[i], "--csv") == 0 && i + 1 < count) csv = given[++i];
  }
  int devices = 0;
  CUDA_CHECK(cudaGetDeviceCount(&devices));
  devices = std::min(devices, rms_norm::kMostRanks);
  std::vector<Rank> ranks(static_cast<size_t>(devices));
  std::vector<int> numbers;
  std::vector<ncclComm_t> comms(ranks.size());
  for (int r = 0; r < devices; ++r) numbers.push_back(r);
  NCCL_CHECK(ncclCommInitAll(comms.data(), devices, numbers.data()));
  constexpr int64_t kMost = int64_t{128} << 20;  // bytes of a tensor's pool
  const size_t bytes = rms_norm::region_bytes(devices, size_t{64} << 20);
  for (int r = 0; r < devices; ++r) {
    Rank& rank = ranks[r];
    CUDA_CHECK(cudaSetDevice(r));
    for (int peer = 0; raw && peer < devices; ++peer)
      if (peer != r) CUDA_CHECK(cudaDeviceEnablePeerAccess(peer, 0));
    rank.nccl = comms[r];
    CUDA_CHECK(cudaStreamCreateWithFlags(&rank.stream, cudaStreamNonBlocking));
    CUDA_CHECK(cudaEventCreate(&rank.begin));
    CUDA_CHECK(cudaEventCreate(&rank.end));
    rank.x = allocate<T>(kMost / 2), rank.residual = allocate<T>(kMost / 2), rank.y = allocate<T>(kMost / 2);
    rank.weight = allocate<T>(8192);
    fill<<<1024, 256>>>(rank.x.get(), kMost / 2, r);
    fill<<<1024, 256>>>(rank.weight.get(), 8192, 7);
    CUDA_CHECK(cudaMemset(rank.residual.get(), 0, kMost));
    CUDA_CHECK(cudaDeviceSynchronize());
    rank.region = std::make_unique<rms_norm::NcclRegion>();
  }
  if (raw) {
    for (int r = 0; r < devices; ++r) {
      CUDA_CHECK(cudaSetDevice(r));
      ranks[r].raw = allocate<char>(static_cast<int64_t>(bytes));
      CUDA_CHECK(rms_norm::init_region(ranks[r].raw.get(), bytes));
      CUDA_CHECK(cudaDeviceSynchronize());
    }
    for (int r = 0; r < devices; ++r) {
      auto& c = ranks[r].communicator;
      c.rank = r, c.ranks = devices, c.bytes = bytes;
      for (int peer = 0; peer < devices; ++peer) c.regions[peer] = ranks[peer].raw.get();
    }
  } else {
    NCCL_CHECK(ncclGroupStart());
    for (int r = 0; r < devices; ++r) {
      CUDA_CHECK(cudaSetDevice(r));
      NCCL_CHECK(ranks[r].region->open(comms[r], bytes));
    }
    NCCL_CHECK(ncclGroupEnd());
    for (int r = 0; r < devices; ++r) {
      CUDA_CHECK(cudaSetDevice(r));
      NCCL_CHECK(ranks[r].region->find_peers(ranks[r].communicator));
    }
  }
  using rms_norm::Reduction;
  const std::vector<Competitor> competitors = {
      {"header_one_shot", ours(Reduction::one_shot, false)},
      {"header_one_shot_dependent", ours(Reduction::one_shot, true)},
      {"header_two_shot", ours(Reduction::two_shot, false)},
      {"header_two_shot_dependent", ours(Reduction::two_shot, true)},
      {"header_sharded", ours(Reduction::two_shot, false, true)},
      {"header_sharded_dependent", ours(Reduction::two_shot, true, true)},
      {"nccl_alone", nccl_and_norm(false, false)},
      {"nccl_header_norm", nccl_and_norm(true, false)},
      {"nccl_header_norm_dependent", nccl_and_norm(true, true)},
  };
  std::FILE* const file = csv ? std::fopen(csv, "w") : stdout;
  if (file == nullptr) throw std::runtime_error(std::string("cannot write ") + csv);
  cudaDeviceProp properties;
  CUDA_CHECK(cudaGetDeviceProperties(&properties, 0));
  std::fprintf(stderr, "%d x %s\n", devices, properties.name);
  std::fprintf(file, "ranks,rows,cols,dtype,competitor,us,least_us\n");
  for (const int64_t cols : {4096, 8192})
    for (const int64_t rows : {1, 16, 64, 256, 1024, 4096}) {
      if (quick && (cols != 4096 || rows > 1024)) continue;
      g_pool = std::clamp<int64_t>(kMost / 2 / (rows * cols), 1, kCalls);
      for (const Competitor& competitor : competitors) {
        const Timed timed = time_of(ranks, competitor, rows, cols);
        std::fprintf(file, "%d,%lld,%lld,bfloat16,%s,%.3f,%.3f\n", devices, static_cast<long long>(rows),
                     static_cast<long long>(cols), competitor.name.c_str(), timed.median, timed.least);
        std::fflush(file);
      }
    }
  if (!raw) {
    NCCL_CHECK(ncclGroupStart());
    for (int r = 0; r < devices; ++r) {
      CUDA_CHECK(cudaSetDevice(r));
      NCCL_CHECK(ranks[r].region->close());
    }
    NCCL_CHECK(ncclGroupEnd());
  }
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
