// NCCL on eight devices: every collective, type and operation against plain loops; groups, sends, parts of a
// communicator, windows and the barrier of the ranks in kernels, and what is refused.
#include <nccl.h>
#include <nccl_device.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <thread>

#include "testing.h"

namespace {

[[maybe_unused]] const int asked = setenv("SIMT_DEVICES", "8", 1);

#define OK(call) REQUIRE((call) == ncclSuccess)

struct On {  // the current device, for a scope
  int before = 0;
  explicit On(int device) {
    cudaGetDevice(&before);
    REQUIRE(cudaSetDevice(device) == cudaSuccess);
  }
  ~On() { cudaSetDevice(before); }
};

// Ranks on the devices from the last to the first, so that a rank is not its device.
struct Ranks {
  int count;
  std::vector<ncclComm_t> comm;
  std::vector<cudaStream_t> stream;
  explicit Ranks(int count) : count(count), comm(count), stream(count) {
    std::vector<int> devices;
    for (int r = 0; r < count; ++r) devices.push_back(7 - r);
    OK(ncclCommInitAll(comm.data(), count, devices.data()));
    for (int r = 0; r < count; ++r) {
      const On on(7 - r);
      REQUIRE(cudaStreamCreateWithFlags(&stream[r], cudaStreamNonBlocking) == cudaSuccess);
    }
  }
  ~Ranks() {
    for (int r = 0; r < count; ++r) {
      const On on(7 - r);
      cudaStreamDestroy(stream[r]);
      ncclCommDestroy(comm[r]);
    }
    cudaGetLastError();
  }
  template <class Use>
  void each(Use use) const {
    for (int r = 0; r < count; ++r) {
      const On on(7 - r);
      use(r);
    }
  }
  template <class Use>
  void group(Use use) const {  // on the current device 0: NCCL chooses the rank's
    OK(ncclGroupStart());
    for (int r = 0; r < count; ++r) OK(use(r));
    OK(ncclGroupEnd());
  }
  void wait() const {
    for (int r = 0; r < count; ++r) REQUIRE(cudaStreamSynchronize(stream[r]) == cudaSuccess);
  }
};

template <class T>
struct Buffers {  // an array on each rank's device
  const Ranks& ranks;
  std::vector<T*> data;
  size_t count;
  Buffers(const Ranks& ranks, size_t count) : ranks(ranks), data(ranks.count), count(count) {
    ranks.each([&](int r) { REQUIRE(cudaMalloc(&data[r], count * sizeof(T)) == cudaSuccess); });
  }
  ~Buffers() {
    for (T* each : data) cudaFree(each);
    cudaGetLastError();  // a reset may have freed them
  }
  void set(int r, const std::vector<T>& values) {
    REQUIRE(cudaMemcpy(data[r], values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice) == cudaSuccess);
  }
  std::vector<T> get(int r) const {
    std::vector<T> values(count);
    REQUIRE(cudaMemcpy(values.data(), data[r], count * sizeof(T), cudaMemcpyDeviceToHost) == cudaSuccess);
    return values;
  }
};

// The ranks' numbers: small, so that each type has them, and different for each rank and place.
int number(int rank, int i) { return 1 + (3 * rank + i * i) % 5 - (i % 3 == 0 ? 2 : 0); }

template <class T>
T as(double x) {
  return static_cast<T>(static_cast<std::conditional_t<std::is_arithmetic_v<T>, T, float>>(x));
}
template <class T>
double back(T x) {
  if constexpr (std::is_arithmetic_v<T>)
    return static_cast<double>(x);
  else
    return static_cast<float>(x);
}

double expected(ncclRedOp_t op, int ranks, int i, bool whole) {
  double result = 0;
  for (int r = 0; r < ranks; ++r) {
    const double x = number(r, i);
    if (r == 0)
      result = x;
    else if (op == ncclProd)
      result *= x;
    else if (op == ncclMax)
      result = std::max(result, x);
    else if (op == ncclMin)
      result = std::min(result, x);
    else
      result += x;
  }
  if (op == ncclAvg) result = whole ? std::trunc(result / ranks) : result / ranks;
  return result;
}

constexpr ncclRedOp_t kOps[] = {ncclSum, ncclProd, ncclMax, ncclMin, ncclAvg};

template <class T>
void check_type(ncclDataType_t type) {
  constexpr int kCount = 37;
  constexpr bool kWhole = std::is_integral_v<T>, kSigned = !std::is_unsigned_v<T>;
  for (const int count : {2, 3, 8}) {
    const Ranks ranks(count);
    Buffers<T> data(ranks, kCount), sums(ranks, kCount);
    for (int r = 0; r < count; ++r) {
      std::vector<T> values;
      for (int i = 0; i < kCount; ++i) values.push_back(as<T>(number(r, kSigned ? i : 3 * i + 1)));
      data.set(r, values);
    }
    for (const ncclRedOp_t op : kOps) {
      ranks.group([&](int r) {
        return ncclAllReduce(data.data[r], sums.data[r], kCount, type, op, ranks.comm[r], ranks.stream[r]);
      });
      ranks.wait();
      const std::vector<T> first = sums.get(0);
      for (int i = 0; i < kCount; ++i) {
        const double want = back(as<T>(expected(op, count, kSigned ? i : 3 * i + 1, kWhole)));
        const double error = std::fabs(back(first[i]) - want);
        // A mean multiplies by a rounded third, or eighth.
        CHECK_MESSAGE(error <= (op == ncclAvg && !kWhole ? std::fabs(want) / 8 : 0),
                      "type " << type << ", operation " << op << ", ranks " << count << ", element " << i);
      }
      for (int r = 1; r < count; ++r) CHECK(std::memcmp(sums.get(r).data(), first.data(), sizeof(T) * kCount) == 0);
    }
  }
}

}  // namespace

TEST_CASE("all types and operations") {
  check_type<int8_t>(ncclInt8);
  check_type<uint8_t>(ncclUint8);
  check_type<int32_t>(ncclInt32);
  check_type<uint32_t>(ncclUint32);
  check_type<int64_t>(ncclInt64);
  check_type<uint64_t>(ncclUint64);
  check_type<__half>(ncclFloat16);
  check_type<float>(ncclFloat32);
  check_type<double>(ncclFloat64);
  check_type<__nv_bfloat16>(ncclBfloat16);
  check_type<__nv_fp8_e4m3>(ncclFloat8e4m3);
  check_type<__nv_fp8_e5m2>(ncclFloat8e5m2);
}

TEST_CASE("a sum is in the order of the ranks, and 16-bit floats are rounded once") {
  const Ranks ranks(4);
  Buffers<float> floats(ranks, 1);
  Buffers<__nv_bfloat16> shorts(ranks, 1);
  const float values[] = {1e8f, 3.0f, -1e8f, 1.0f};  // in another order: 4, or 0
  const float steps[] = {256.0f, 1.0f, 1.0f, 1.0f};  // rounded at each step: 256
  for (int r = 0; r < 4; ++r) {
    floats.set(r, {values[r]});
    shorts.set(r, {__float2bfloat16(steps[r])});
  }
  ranks.group([&](int r) {
    return ncclAllReduce(floats.data[r], floats.data[r], 1, ncclFloat, ncclSum, ranks.comm[r], ranks.stream[r]);
  });
  ranks.group([&](int r) {
    return ncclAllReduce(shorts.data[r], shorts.data[r], 1, ncclBfloat16, ncclSum, ranks.comm[r], ranks.stream[r]);
  });
  ranks.wait();
  CHECK(floats.get(3)[0] == ((1e8f + 3.0f) + -1e8f) + 1.0f);
  CHECK(__bfloat162float(shorts.get(2)[0]) == 260.0f);
}

TEST_CASE("each collective, apart and in place") {
  for (const int n : {1, 2, 3, 4, 8}) {
    const Ranks ranks(n);
    constexpr int kBlock = 5;
    const int whole = n * kBlock, root = n - 1;
    Buffers<int> send(ranks, whole), receive(ranks, whole);
    const auto value = [](int r, int i) { return 1000 * r + i; };
    const auto sum = [&](int i) {
      int total = 0;
      for (int r = 0; r < n; ++r) total += value(r, i);
      return total;
    };
    const auto fill = [&] {
      for (int r = 0; r < n; ++r) {
        std::vector<int> values;
        for (int i = 0; i < whole; ++i) values.push_back(value(r, i));
        send.set(r, values);
        receive.set(r, std::vector<int>(whole, -1));
      }
    };
    const auto holds = [&](const Buffers<int>& buffers, int r, int first, int count, auto want) {
      const std::vector<int> values = buffers.get(r);
      bool same = true;
      for (int i = 0; i < count; ++i) same = same && values[first + i] == want(i);
      CHECK_MESSAGE(same, "ranks " << n << ", rank " << r);
    };
    for (const bool in_place : {false, true}) {
      const auto run = [&](auto call, auto check) {
        fill();
        ranks.group(call);
        ranks.wait();
        for (int r = 0; r < n; ++r) check(in_place ? send : receive, r);
      };
      const auto to = [&](int r, int first = 0) { return in_place ? send.data[r] + first : receive.data[r]; };
      const auto at = [&](int r) { return in_place ? r * kBlock : 0; };
      run(
          [&](int r) {
            return ncclAllReduce(send.data[r], to(r), whole, ncclInt, ncclSum, ranks.comm[r], ranks.stream[r]);
          },
          [&](auto& result, int r) { holds(result, r, 0, whole, sum); });
      run(
          [&](int r) {
            return ncclReduce(send.data[r], r == root ? to(r) : nullptr, whole, ncclInt, ncclSum, root, ranks.comm[r],
                              ranks.stream[r]);
          },
          [&](auto& result, int r) {
            holds(result, r, 0, whole, [&](int i) { return r == root ? sum(i) : in_place ? value(r, i) : -1; });
          });
      run(
          [&](int r) {
            return ncclReduceScatter(send.data[r], to(r, r * kBlock), kBlock, ncclInt, ncclSum, ranks.comm[r],
                                     ranks.stream[r]);
          },
          [&](auto& result, int r) { holds(result, r, at(r), kBlock, [&](int i) { return sum(r * kBlock + i); }); });
      run(
          [&](int r) {
            return in_place ? ncclBcast(send.data[r], whole, ncclInt, root, ranks.comm[r], ranks.stream[r])
                            : ncclBroadcast(send.data[r], receive.data[r], whole, ncclInt, root, ranks.comm[r],
                                            ranks.stream[r]);
          },
          [&](auto& result, int r) { holds(result, r, 0, whole, [&](int i) { return value(root, i); }); });
      run(
          [&](int r) {
            return in_place
                       ? ncclAllGather(send.data[r] + r * kBlock, send.data[r], kBlock, ncclInt, ranks.comm[r],
                                       ranks.stream[r])
                       : ncclAllGather(send.data[r], receive.data[r], kBlock, ncclInt, ranks.comm[r], ranks.stream[r]);
          },
          [&](auto& result, int r) {
            holds(result, r, 0, whole, [&](int i) { return value(i / kBlock, in_place ? i : i % kBlock); });
          });
      run(
          [&](int r) {
            return in_place ? ncclGather(send.data[r] + (r == root ? root * kBlock : 0), send.data[r], kBlock, ncclInt,
                                         root, ranks.comm[r], ranks.stream[r])
                            : ncclGather(send.data[r], receive.data[r], kBlock, ncclInt, root, ranks.comm[r],
                                         ranks.stream[r]);
          },
          [&](auto& result, int r) {
            holds(result, r, 0, whole, [&](int i) {
              if (r != root) return in_place ? value(r, i) : -1;
              return value(i / kBlock, in_place && i / kBlock == root ? i : i % kBlock);
            });
          });
      run(
          [&](int r) {
            return ncclScatter(send.data[r], in_place && r != root ? receive.data[r] : to(r, root * kBlock), kBlock,
                               ncclInt, root, ranks.comm[r], ranks.stream[r]);
          },
          [&](auto& result, int r) {
            if (in_place && r != root)
              holds(receive, r, 0, kBlock, [&](int i) { return value(root, r * kBlock + i); });
            else
              holds(result, r, in_place ? root * kBlock : 0, kBlock,
                    [&](int i) { return value(root, r * kBlock + i); });
          });
    }
    fill();
    ranks.group([&](int r) {
      return ncclAlltoAll(send.data[r], receive.data[r], kBlock, ncclInt, ranks.comm[r], ranks.stream[r]);
    });
    ranks.wait();
    for (int r = 0; r < n; ++r)
      holds(receive, r, 0, whole, [&](int i) { return value(i / kBlock, r * kBlock + i % kBlock); });
  }
}

TEST_CASE("a sum of products has each rank's own scalar, also one in device memory") {
  const Ranks ranks(3);
  Buffers<float> data(ranks, 2), scalars(ranks, 1);
  std::vector<ncclRedOp_t> op(3);
  for (int r = 0; r < 3; ++r) {
    float scalar = 0.5f * (r + 1);
    data.set(r, {2.0f, float(r)});
    scalars.set(r, {scalar});
    OK(ncclRedOpCreatePreMulSum(&op[r], r == 2 ? scalars.data[r] : &scalar, ncclFloat,
                                r == 2 ? ncclScalarDevice : ncclScalarHostImmediate, ranks.comm[r]));
  }
  ranks.group([&](int r) {
    return ncclAllReduce(data.data[r], data.data[r], 2, ncclFloat, op[r], ranks.comm[r], ranks.stream[r]);
  });
  ranks.wait();
  CHECK(data.get(0) == std::vector<float>{6.0f, 4.0f});
  const std::string text = stderr_of([&] {
    CHECK(ncclAllReduce(data.data[0], data.data[0], 2, ncclInt, op[0], ranks.comm[0], ranks.stream[0]) ==
          ncclInvalidArgument);
    CHECK(ncclAllReduce(data.data[0], data.data[0], 2, ncclFloat, op[1], ranks.comm[0], ranks.stream[0]) ==
          ncclInvalidArgument);
    CHECK(ncclRedOpDestroy(ncclSum, ranks.comm[0]) == ncclInvalidArgument);
  });
  CHECK(contains(text, "the operation was made for ncclFloat32, and the data is ncclInt32"));
  OK(ncclRedOpDestroy(op[0], ranks.comm[0]));
}

TEST_CASE("rings of sends, several transfers between two ranks, and a rank to itself") {
  const Ranks ranks(4);
  Buffers<int> data(ranks, 4), got(ranks, 4);
  for (int r = 0; r < 4; ++r) data.set(r, {10 * r, 10 * r + 1, 10 * r + 2, 10 * r + 3});
  OK(ncclGroupStart());
  for (int r = 0; r < 4; ++r) {
    const int next = (r + 1) % 4, before = (r + 3) % 4;
    OK(ncclSend(data.data[r], 2, ncclInt, next, ranks.comm[r], ranks.stream[r]));
    OK(ncclRecv(got.data[r], 2, ncclInt, before, ranks.comm[r], ranks.stream[r]));
    OK(ncclSend(data.data[r] + 2, 1, ncclInt, next, ranks.comm[r], ranks.stream[r]));
    OK(ncclRecv(got.data[r] + 2, 1, ncclInt, before, ranks.comm[r], ranks.stream[r]));
    OK(ncclSend(data.data[r] + 3, 1, ncclInt, r, ranks.comm[r], ranks.stream[r]));
    OK(ncclRecv(got.data[r] + 3, 1, ncclInt, r, ranks.comm[r], ranks.stream[r]));
  }
  OK(ncclGroupEnd());
  ranks.wait();
  for (int r = 0; r < 4; ++r) {
    const int before = 10 * ((r + 3) % 4);
    CHECK(got.get(r) == std::vector<int>{before, before + 1, before + 2, 10 * r + 3});
  }
}

TEST_CASE("a thread for each rank, streams that a group has in common, and a graph that is replayed") {
  constexpr int kRanks = 3;
  const Ranks memory(kRanks);
  Buffers<float> data(memory, 1);
  ncclUniqueId id;
  OK(ncclGetUniqueId(&id));
  std::vector<std::thread> threads;
  for (int r = 0; r < kRanks; ++r) {
    data.set(r, {float(r + 1)});
    threads.emplace_back([&, r] {
      cudaSetDevice(7 - r);
      ncclComm_t comm;
      int count = 0, rank = -1, device = -1;
      CHECK(ncclCommInitRank(&comm, kRanks, id, r) == ncclSuccess);
      CHECK(ncclCommCount(comm, &count) == ncclSuccess);
      CHECK(ncclCommUserRank(comm, &rank) == ncclSuccess);
      CHECK(ncclCommCuDevice(comm, &device) == ncclSuccess);
      CHECK((count == kRanks && rank == r && device == 7 - r));
      CHECK(ncclAllReduce(data.data[r], data.data[r], 1, ncclFloat, ncclSum, comm, nullptr) == ncclSuccess);
      CHECK(cudaStreamSynchronize(nullptr) == cudaSuccess);
      CHECK(ncclCommFinalize(comm) == ncclSuccess);
      CHECK(ncclCommDestroy(comm) == ncclSuccess);
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(data.get(1)[0] == 6.0f);

  cudaStream_t other;
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  std::vector<cudaEvent_t> events(kRanks);
  {
    const On on(7);
    REQUIRE(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking) == cudaSuccess);
  }
  Buffers<float> second(memory, 1);
  for (int r = 0; r < kRanks; ++r) second.set(r, {1.0f});
  OK(ncclGroupStart());
  for (int r = 0; r < kRanks; ++r) {
    OK(ncclAllReduce(data.data[r], data.data[r], 1, ncclFloat, ncclSum, memory.comm[r], memory.stream[r]));
    OK(ncclAllReduce(second.data[r], second.data[r], 1, ncclFloat, ncclSum, memory.comm[r],
                     r ? memory.stream[r] : other));
  }
  OK(ncclGroupEnd());
  REQUIRE(cudaStreamSynchronize(other) == cudaSuccess);
  memory.wait();
  CHECK(data.get(0)[0] == 18.0f);
  CHECK(second.get(2)[0] == 3.0f);

  memory.each([&](int r) { REQUIRE(cudaEventCreate(&events[r]) == cudaSuccess); });
  REQUIRE(cudaStreamBeginCapture(memory.stream[0], cudaStreamCaptureModeGlobal) == cudaSuccess);
  REQUIRE(cudaEventRecord(events[0], memory.stream[0]) == cudaSuccess);
  for (int r = 1; r < kRanks; ++r) REQUIRE(cudaStreamWaitEvent(memory.stream[r], events[0], 0) == cudaSuccess);
  memory.group([&](int r) {
    return ncclAllReduce(second.data[r], second.data[r], 1, ncclFloat, ncclSum, memory.comm[r], memory.stream[r]);
  });
  for (int r = 1; r < kRanks; ++r) {
    REQUIRE(cudaEventRecord(events[r], memory.stream[r]) == cudaSuccess);
    REQUIRE(cudaStreamWaitEvent(memory.stream[0], events[r], 0) == cudaSuccess);
  }
  REQUIRE(cudaStreamEndCapture(memory.stream[0], &graph) == cudaSuccess);
  REQUIRE(cudaGraphInstantiate(&exec, graph, 0) == cudaSuccess);
  for (int replay = 0; replay < 3; ++replay) REQUIRE(cudaGraphLaunch(exec, memory.stream[0]) == cudaSuccess);
  memory.wait();
  for (int r = 0; r < kRanks; ++r) CHECK(second.get(r)[0] == 81.0f);
  cudaGraphExecDestroy(exec);
  cudaGraphDestroy(graph);
}

TEST_CASE("parts of a communicator, and what is left of it") {
  const Ranks ranks(4);
  std::vector<ncclComm_t> part(4), rest(4);
  ranks.group(
      [&](int r) { return ncclCommSplit(ranks.comm[r], r == 3 ? NCCL_SPLIT_NOCOLOR : r % 2, -r, &part[r], nullptr); });
  CHECK(part[3] == nullptr);
  int count = 0, rank = -1, device = -1;
  OK(ncclCommCount(part[0], &count));
  OK(ncclCommUserRank(part[0], &rank));
  OK(ncclCommCuDevice(part[0], &device));
  CHECK((count == 2 && rank == 1 && device == 7));  // its key is greater than that of rank 2
  OK(ncclCommCount(part[1], &count));
  CHECK(count == 1);
  Buffers<int> data(ranks, 1);
  for (int r = 0; r < 4; ++r) data.set(r, {1 << r});
  OK(ncclGroupStart());
  for (const int r : {0, 2}) OK(ncclBroadcast(data.data[r], data.data[r], 1, ncclInt, 0, part[r], ranks.stream[r]));
  OK(ncclGroupEnd());
  ranks.wait();
  CHECK(data.get(0)[0] == 4);
  int gone = 1;
  OK(ncclGroupStart());
  for (const int r : {0, 2, 3}) OK(ncclCommShrink(ranks.comm[r], &gone, 1, &rest[r], nullptr, NCCL_SHRINK_DEFAULT));
  OK(ncclGroupEnd());
  OK(ncclCommUserRank(rest[3], &rank));
  CHECK(rank == 2);
  OK(ncclGroupStart());
  for (const int r : {0, 2, 3})
    OK(ncclAllReduce(data.data[r], data.data[r], 1, ncclInt, ncclSum, rest[r], ranks.stream[r]));
  OK(ncclGroupEnd());
  ranks.wait();
  CHECK(data.get(3)[0] == 16);
  for (const ncclComm_t comm : {part[0], part[1], part[2], rest[0], rest[2], rest[3]}) OK(ncclCommDestroy(comm));
}

TEST_CASE("communicators that do not block") {
  ncclUniqueId id;
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  ncclComm_t comm[2];
  ncclResult_t state;
  int count;
  OK(ncclGetUniqueId(&id));
  CHECK(ncclCommInitRankConfig(&comm[0], 2, id, 0, &config) == ncclInProgress);
  OK(ncclCommGetAsyncError(comm[0], &state));
  CHECK(state == ncclInProgress);
  CHECK(contains(stderr_of([&] { CHECK(ncclCommCount(comm[0], &count) == ncclInvalidArgument); }), "not ready"));
  const On on(1);
  OK(ncclCommInitRankConfig(&comm[1], 2, id, 1, &config));
  OK(ncclCommGetAsyncError(comm[0], &state));
  CHECK(state == ncclSuccess);
  OK(ncclCommCount(comm[0], &count));
  CHECK(count == 2);
  for (const ncclComm_t each : comm) OK(ncclCommDestroy(each));
}

namespace {

// Each rank adds up its share of the elements, and writes the sums into all ranks' windows.
__global__ void all_reduce(ncclWindow_t from, ncclWindow_t to, int count, ncclDevComm comm) {
  ncclBarrierSession<ncclCoopCta> session(ncclCoopCta(), ncclTeamTagLsa(), comm, blockIdx.x);
  session.sync(ncclCoopCta(), cuda::memory_order_acquire, ncclGinFenceLevel::Relaxed);
  ncclLsaBarrierSession<ncclCoopCta>& barrier = session.lsaBarrier();
  const int first = threadIdx.x + blockDim.x * (comm.rank + blockIdx.x * comm.nRanks);
  for (int i = first; i < count; i += blockDim.x * gridDim.x * comm.nRanks) {
    float sum = 0;
    for (int peer = 0; peer < comm.lsaSize; ++peer) sum += static_cast<float*>(ncclGetLsaPointer(from, 0, peer))[i];
    for (int peer = 0; peer < comm.lsaSize; ++peer) ncclSymPtr<float>(to, 4096).lsaPtr(peer)[i] = sum;
  }
  barrier.arrive(ncclCoopCta(), cuda::memory_order_release);
  barrier.wait(ncclCoopCta(), cuda::memory_order_relaxed);
}
__global__ void own_rank(ncclWindow_t window) {
  static_cast<float*>(ncclGetLocalPointer(window, 0))[threadIdx.x] = float(window->lsaRank + 1) * float(threadIdx.x);
}
__global__ void wrong_rank(ncclWindow_t window, ncclDevComm comm) {
  *static_cast<float*>(ncclGetLsaPointer(window, 0, comm.nRanks)) = 1;
}
__global__ void wrong_barrier(ncclDevComm comm) {
  ncclLsaBarrierSession<ncclCoopCta> barrier(ncclCoopCta(), comm, ncclTeamTagLsa(), 2);
}
__global__ void same_barrier(ncclDevComm comm) {
  ncclLsaBarrierSession<ncclCoopCta> one(ncclCoopCta(), comm, ncclTeamTagLsa(), 1);
  ncclLsaBarrierSession<ncclCoopCta> two(ncclCoopCta(), comm, ncclTeamTagLsa(), 1);
}
__global__ void multicast_load(float* sum, const float* from) {
  asm volatile("multimem.ld_reduce.global.add.f32 %0, [%1];" : "=f"(*sum) : "l"(from) : "memory");
}
__global__ void multicast(ncclWindow_t window, ncclDevComm comm) {
  *static_cast<float*>(ncclGetLsaMultimemPointer(window, 0, comm)) = 1;
}
// A warp for each barrier, behind a handle of its own.
__global__ void warps_meet(ncclDevComm comm, ncclLsaBarrierHandle handle, ncclWindow_t window, int* seen) {
  const int warp = threadIdx.x / 32;
  const ncclTeam team = ncclTeamLsa(comm);
  float* mine = static_cast<float*>(ncclGetPeerPointer(window, 8192, team, team.rank));
  if (threadIdx.x % 32 == 0) mine[warp] = 1 + comm.rank;
  const auto coop = ncclCoopCoalesced(ncclCoopCta());
  static_assert(ncclCoopWithinWarp(ncclCoopWarp()) && !ncclCoopWithinWarp(ncclCoopCta()), "");
  static_assert(ncclCoopIsThread(ncclCoopThread()) && !ncclCoopIsThread(ncclCoopWarp()), "");
  ncclLsaBarrierSession<ncclCoopWarp> barrier(coop, comm, team, handle, warp);
  barrier.sync(coop, cuda::memory_order_acq_rel);
  if (ncclCoopGetLaneMask(ncclCoopCoalesced()) == ncclCoopGetLaneMask(coop) && threadIdx.x % 32 < team.nRanks)
    atomicAdd(seen, int(static_cast<float*>(ncclGetPeerPointer(window, 8192, threadIdx.x % 32))[warp]));
}

struct Device_part {
  static constexpr size_t kBytes = 3 * 4096;
  const Ranks& ranks;
  std::vector<void*> memory;
  std::vector<ncclWindow_t> window;
  std::vector<ncclDevComm> comm;
  std::vector<ncclLsaBarrierHandle> handle;
  explicit Device_part(const Ranks& ranks)
      : ranks(ranks), memory(ranks.count), window(ranks.count), comm(ranks.count), handle(ranks.count) {
    std::vector<ncclDevResourceRequirements> more(ranks.count);
    ranks.each([&](int r) { OK(ncclMemAlloc(&memory[r], kBytes)); });
    ranks.group([&](int r) {
      return ncclCommWindowRegister(ranks.comm[r], memory[r], kBytes, &window[r], NCCL_WIN_COLL_SYMMETRIC);
    });
    OK(ncclGroupStart());
    for (int r = 0; r < ranks.count; ++r) {
      ncclDevCommRequirements wanted = {};
      wanted.lsaBarrierCount = 2;
      OK(ncclLsaBarrierCreateRequirement(ncclTeamLsa(ranks.comm[r]), 4, &handle[r], &more[r]));
      wanted.resourceRequirementsList = &more[r];
      OK(ncclDevCommCreate(ranks.comm[r], &wanted, &comm[r]));
    }
    OK(ncclGroupEnd());
  }
  ~Device_part() {
    for (int r = 0; r < ranks.count; ++r) {
      ncclDevCommDestroy(ranks.comm[r], &comm[r]);
      ncclCommWindowDeregister(ranks.comm[r], window[r]);
      ncclMemFree(memory[r]);
    }
  }
};

void reset_all() {
  for (int device = 0; device < 8; ++device) {
    const On on(device);
    cudaDeviceReset();
  }
  cudaGetLastError();
}

}  // namespace

TEST_CASE("kernels load and store in the other ranks' windows, with barriers between") {
  for (const int n : {2, 3, 4, 8}) {
    const Ranks ranks(n);
    const Device_part part(ranks);
    CHECK(reinterpret_cast<uintptr_t>(part.memory[0]) % NCCL_WIN_REQUIRED_ALIGNMENT == 0);
    constexpr int kCount = 1000;
    Buffers<int> seen(ranks, 1);
    for (int launch = 0; launch < 3; ++launch)
      ranks.each([&](int r) {
        own_rank<<<1, kCount, 0, ranks.stream[r]>>>(part.window[r]);
        all_reduce<<<2, 64, 0, ranks.stream[r]>>>(part.window[r], part.window[r], kCount, part.comm[r]);
      });
    ranks.wait();
    for (int r = 0; r < n; ++r) {
      std::vector<float> sums(kCount);
      REQUIRE(cudaMemcpy(sums.data(), static_cast<char*>(part.memory[r]) + 4096, 4 * kCount, cudaMemcpyDeviceToHost) ==
              cudaSuccess);
      int wrong = 0;
      for (int i = 0; i < kCount; ++i) wrong += sums[i] != float(n * (n + 1) / 2 * i);
      CHECK(wrong == 0);
      seen.set(r, {0});
    }
    ranks.each([&](int r) {
      warps_meet<<<1, 128, 0, ranks.stream[r]>>>(part.comm[r], part.handle[r], part.window[r], seen.data[r]);
    });
    ranks.wait();
    for (int r = 0; r < n; ++r) CHECK(seen.get(r)[0] == 4 * n * (n + 1) / 2);
  }
}

TEST_CASE("teams") {
  const Ranks ranks(4);
  const ncclTeam world = ncclTeamWorld(ranks.comm[2]), rail = ncclTeamRail(ranks.comm[2]);
  CHECK((world.nRanks == 4 && world.rank == 2 && world.stride == 1 && rail.nRanks == 1 && rail.rank == 0));
  const ncclTeam inner = ncclTeamInnerFactor(world, 2), outer = ncclTeamOuterFactor(world, 2);
  CHECK((inner.nRanks == 2 && inner.rank == 0 && outer.nRanks == 2 && outer.rank == 1 && outer.stride == 2));
  CHECK(ncclTeamRankToWorld(ranks.comm[2], inner, 1) == 3);
  CHECK(ncclTeamRankToWorld(ranks.comm[2], outer, 0) == 0);
  CHECK(ncclTeamRankToTeam(inner, world, 3) == 1);
  CHECK(ncclTeamRankIsMember(outer, world, 0));
  CHECK(!ncclTeamRankIsMember(outer, world, 1));
  CHECK(ncclTeamRankInDifference(world, outer, 1) == 3);
}

TEST_CASE("errors are NCCL's, with a sentence") {
  const Ranks ranks(2);
  Buffers<float> data(ranks, 4);
  ncclComm_t comm[3];
  const auto refused = [](ncclResult_t expected, auto call) {
    const std::string text = stderr_of([&] { CHECK(call() == expected); });
    CHECK(text == std::string("simt: ") + ncclGetLastError(nullptr) + "\n");
    return text;
  };
  const auto reduce = [&](void* buffer, size_t count, int type, int op) {
    return ncclAllReduce(buffer, buffer, count, ncclDataType_t(type), ncclRedOp_t(op), ranks.comm[0], ranks.stream[0]);
  };
  const int twice[] = {1, 1}, absent[] = {0, 9};
  CHECK(contains(refused(ncclInvalidUsage, [&] { return ncclCommInitAll(comm, 2, twice); }),
                 "ranks 0 and 1 are both on device 1"));
  CHECK(
      contains(refused(ncclInvalidArgument, [&] { return ncclCommInitAll(comm, 2, absent); }), "there is no device 9"));
  CHECK(contains(refused(ncclInvalidArgument, [&] { return reduce(data.data[0], 4, 12, ncclSum); }), "no datatype 12"));
  CHECK(
      contains(refused(ncclInvalidArgument, [&] { return reduce(data.data[0], 4, ncclFloat, 5); }), "no operation 5"));
  CHECK(contains(refused(ncclInvalidArgument, [&] { return reduce(nullptr, 4, ncclFloat, ncclSum); }),
                 "the sendbuff of rank 0 is null"));
  CHECK(contains(refused(ncclInvalidArgument, [&] { return reduce(data.data[1], 4, ncclFloat, ncclSum); }),
                 "memory of device 6, and the rank's device is 7"));
  CHECK(contains(refused(ncclInvalidArgument,
                         [&] {
                           return ncclBroadcast(data.data[0], data.data[0], 1, ncclFloat, 2, ranks.comm[0],
                                                ranks.stream[0]);
                         }),
                 "the root is 2; it is 0 to 1"));
  CHECK(contains(refused(ncclUnhandledCudaError,
                         [&] {
                           return ncclBroadcast(data.data[0], data.data[0], 1, ncclFloat, 0, ranks.comm[0],
                                                ranks.stream[1]);
                         }),
                 "the stream belongs to device 6, and the rank's device is 7"));
  CHECK(contains(refused(ncclInvalidUsage, [&] { return ncclGroupEnd(); }), "there was no ncclGroupStart"));
  CHECK(contains(refused(ncclInvalidUsage,
                         [&] { return ncclSend(data.data[0], 1, ncclFloat, 0, ranks.comm[0], ranks.stream[0]); }),
                 "needs its ncclRecv in the same group"));
  CHECK(contains(refused(ncclInvalidArgument, [&] { return ncclCommDestroy(reinterpret_cast<ncclComm_t>(comm)); }),
                 "never made"));
  ncclUniqueId foreign = {};
  CHECK(contains(refused(ncclInvalidUsage, [&] { return ncclCommInitRank(comm, 2, foreign, 0); }),
                 "the ranks of a communicator are one process's: use ncclCommInitAll, or a thread for each rank"));
  void* plain;
  ncclWindow_t window;
  REQUIRE(cudaMalloc(&plain, 4096) == cudaSuccess);
  const Ranks alone(1);
  CHECK(contains(
      refused(ncclUnhandledCudaError,
              [&] { return ncclCommWindowRegister(alone.comm[0], plain, 4096, &window, NCCL_WIN_COLL_SYMMETRIC); }),
      "is not from ncclMemAlloc"));
  cudaFree(plain);
  ncclDevCommRequirements wanted = {};
  ncclDevComm made;
  wanted.lsaMultimem = true;
  CHECK(contains(refused(ncclInvalidUsage, [&] { return ncclDevCommCreate(alone.comm[0], &wanted, &made); }),
                 "NVLink multicast"));
  // In a group the first refusal is the group's result, and nothing of it is done.
  data.set(0, {1, 2, 3, 4});
  stderr_of([&] {
    OK(ncclGroupStart());
    OK(ncclBroadcast(data.data[0], data.data[0], 4, ncclFloat, 1, ranks.comm[0], ranks.stream[0]));
    CHECK(reduce(nullptr, 4, ncclFloat, ncclSum) == ncclInvalidArgument);
    CHECK(ncclGroupEnd() == ncclInvalidArgument);
  });
  ranks.wait();
  CHECK(data.get(0)[3] == 4);
  const Environment timeout("SIMT_TIMEOUT", "0.3");
  ncclUniqueId id;
  OK(ncclGetUniqueId(&id));
  CHECK(contains(refused(ncclSystemError, [&] { return ncclCommInitRank(comm, 3, id, 1); }),
                 "ncclCommInitRank waits for ranks 0 and 2"));
  CHECK(comm[0] == nullptr);
}

TEST_CASE("what differs between the ranks, and a rank that does not come, are named") {
  const Environment timeout("SIMT_TIMEOUT", "0.3");
  const auto text_of = [](cudaError_t expected, ncclResult_t async, auto call) {
    std::string text;
    {
      const Ranks ranks(2);
      Buffers<float> data(ranks, 4);
      text = stderr_of([&] {
        call(ranks, data);
        CHECK(cudaStreamSynchronize(ranks.stream[0]) == expected);
        ncclResult_t state = ncclSuccess;
        OK(ncclCommGetAsyncError(ranks.comm[1], &state));
        CHECK(state == async);
      });
      reset_all();
    }
    reset_all();
    return text;
  };
  const auto each = [&](auto call) {
    return [call](const Ranks& ranks, Buffers<float>& data) {
      for (int r = 0; r < 2; ++r) OK(call(r, data.data[r], ranks.comm[r], ranks.stream[r]));
    };
  };
  CHECK(contains(
      text_of(cudaErrorLaunchFailure, ncclInvalidUsage, each([](int r, float* p, ncclComm_t c, cudaStream_t s) {
                return ncclAllReduce(p, p, 3 + r, ncclFloat, ncclSum, c, s);
              })),
      "ranks 0 and 1 do not call the same collective: a count of 3 on one rank and 4 on another"));
  CHECK(contains(
      text_of(cudaErrorLaunchFailure, ncclInvalidUsage, each([](int r, float* p, ncclComm_t c, cudaStream_t s) {
                return ncclAllReduce(p, p, 3, r ? ncclInt : ncclFloat, ncclSum, c, s);
              })),
      "ncclFloat32 on one rank and ncclInt32 on another"));
  CHECK(contains(
      text_of(cudaErrorLaunchFailure, ncclInvalidUsage, each([](int r, float* p, ncclComm_t c, cudaStream_t s) {
                return r ? ncclSend(p, 1, ncclFloat, 0, c, s) : ncclRecv(p, 2, ncclFloat, 1, c, s);
              })),
      "ncclSend of rank 1 and ncclRecv of rank 0 differ: 1 of ncclFloat32 and 2 of ncclFloat32"));
  CHECK(contains(
      text_of(cudaErrorIllegalAddress, ncclUnhandledCudaError, each([](int, float* p, ncclComm_t c, cudaStream_t s) {
                return ncclAllReduce(p, p, 5, ncclFloat, ncclSum, c, s);
              })),
      "the sendbuff of rank 0 has 16 bytes, and the count makes 20"));
  CHECK(contains(
      text_of(cudaErrorIllegalAddress, ncclUnhandledCudaError, each([](int, float* p, ncclComm_t c, cudaStream_t s) {
                return ncclAllGather(p, p, 2, ncclFloat, c, s);
              })),
      "sendbuff and recvbuff of rank 1 overlap in another way than NCCL's in-place form"));
  CHECK(contains(text_of(cudaErrorLaunchTimeout, ncclUnhandledCudaError,
                         [](const Ranks& ranks, Buffers<float>& data) {
                           OK(ncclAllReduce(data.data[0], data.data[0], 4, ncclFloat, ncclSum, ranks.comm[0],
                                            ranks.stream[0]));
                         }),
                 "ncclAllReduce of rank 0 waits for rank 1"));
  CHECK(contains(text_of(cudaErrorLaunchTimeout, ncclUnhandledCudaError,
                         [](const Ranks& ranks, Buffers<float>& data) {
                           OK(ncclRecv(data.data[0], 4, ncclFloat, 1, ranks.comm[0], ranks.stream[0]));
                         }),
                 "ncclRecv of rank 0 waits for ncclSend of rank 1"));
  const auto kernel = [&](cudaError_t expected, auto launch) {
    return text_of(expected, ncclUnhandledCudaError, [launch](const Ranks& ranks, Buffers<float>&) {
      const Device_part part(ranks);
      const On on(7);
      launch(ranks, part);
      cudaStreamSynchronize(ranks.stream[0]);
    });
  };
  CHECK(contains(kernel(cudaErrorIllegalAddress,
                        [](const Ranks& ranks, const Device_part& part) {
                          wrong_rank<<<1, 1, 0, ranks.stream[0]>>>(part.window[0], part.comm[0]);
                        }),
                 "rank 2 is none of the window's 2 ranks"));
  CHECK(contains(kernel(cudaErrorIllegalAddress,
                        [](const Ranks& ranks, const Device_part& part) {
                          wrong_barrier<<<1, 32, 0, ranks.stream[0]>>>(part.comm[0]);
                        }),
                 "barrier 2 is none of the 2 that lsaBarrierCount asked for"));
  CHECK(contains(kernel(cudaErrorLaunchFailure,
                        [](const Ranks& ranks, const Device_part& part) {
                          same_barrier<<<1, 32, 0, ranks.stream[0]>>>(part.comm[0]);
                        }),
                 "two sessions use barrier 1 of rank 0 at once"));
  CHECK(contains(kernel(cudaErrorNotSupported,
                        [](const Ranks& ranks, const Device_part& part) {
                          multicast<<<1, 1, 0, ranks.stream[0]>>>(part.window[0], part.comm[0]);
                        }),
                 "does not have NVLink multicast"));
  CHECK(contains(kernel(cudaErrorNotSupported,
                        [](const Ranks& ranks, const Device_part& part) {
                          auto* memory = static_cast<float*>(part.memory[0]);
                          multicast_load<<<1, 1, 0, ranks.stream[0]>>>(memory, memory + 1);
                        }),
                 "multimem is NVLink multicast"));
  CHECK(contains(kernel(cudaErrorLaunchTimeout,
                        [](const Ranks& ranks, const Device_part& part) {
                          all_reduce<<<1, 32, 0, ranks.stream[0]>>>(part.window[0], part.window[0], 1, part.comm[0]);
                        }),
                 "waits as rank 0 at NCCL's barrier 0 for rank 1, which has not come"));
}
