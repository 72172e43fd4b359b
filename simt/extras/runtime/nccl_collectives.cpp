// Collectives, sends and receives: what the streams of the ranks do together.
#include <algorithm>
#include <cstdio>
#include <cstring>

#include "memory.h"
#include "nccl_parts.h"

namespace simt::nccl {

namespace {

std::string on_rank(size_t rank) { return "rank " + std::to_string(rank); }

// Ends the operations of all ranks.
cudaError_t fail(Clique& clique, cudaError_t error, const std::string& sentence) {
  std::lock_guard<std::recursive_mutex> lock(api_mutex());
  std::fflush(stdout);
  std::fprintf(stderr, "simt: %s: %s\n", cudaGetErrorName(error), sentence.c_str());
  for (ncclResult_t& of_rank : clique.errors)
    of_rank = error == cudaErrorIllegalAddress ? ncclUnhandledCudaError : ncclInvalidUsage;
  set_sticky(error);
  stop_others();
  return error;
}

struct Range {
  const char* begin;
  size_t size;
  const char* name;
};

bool reduces(Kind kind) { return kind == Kind::all_reduce || kind == Kind::reduce || kind == Kind::reduce_scatter; }

// What a rank's work reads and writes.
Range read_by(const Work& w, int rank, size_t ranks) {
  const size_t block = w.count * size_of(w.type);
  const bool all = w.kind == Kind::reduce_scatter || w.kind == Kind::all_to_all || w.kind == Kind::scatter;
  const bool none = rank != w.root && (w.kind == Kind::broadcast || w.kind == Kind::scatter);
  return {w.send, none ? 0 : all ? ranks * block : block, "sendbuff"};
}
Range written_by(const Work& w, int rank, size_t ranks) {
  const size_t block = w.count * size_of(w.type);
  const bool all = w.kind == Kind::all_gather || w.kind == Kind::all_to_all || w.kind == Kind::gather;
  const bool none = rank != w.root && (w.kind == Kind::reduce || w.kind == Kind::gather);
  return {w.receive, none ? 0 : all ? ranks * block : block, "recvbuff"};
}

// "" or what is wrong with a rank's buffer. Under api_mutex().
std::string wrong_with(const Range& range, const std::string& name, int rank, int device) {
  if (range.size == 0) return "";
  const std::string whose = name + ": the " + range.name + " of " + on_rank(static_cast<size_t>(rank));
  Allocation a;
  if (!range.begin || !find_allocation(range.begin, a)) return whose + " is " + describe_address(range.begin);
  const auto end = reinterpret_cast<uintptr_t>(range.begin) + range.size;
  if (end > a.begin + a.size)
    return whose + " has " + std::to_string(a.begin + a.size - reinterpret_cast<uintptr_t>(range.begin)) +
           " bytes, and the count makes " + std::to_string(range.size);
  if (a.kind == MemoryKind::device && a.device != device)
    return whose + " is memory of device " + std::to_string(a.device) + ", and the rank's device is " +
           std::to_string(device);
  return "";
}

// The block of the longer buffer that may be the shorter one.
bool is_in_place(const Work& w, int rank) {
  const size_t block = w.count * size_of(w.type);
  const size_t own = static_cast<size_t>(rank) * block;
  switch (w.kind) {
    case Kind::all_gather:
    case Kind::gather:
      return w.send == w.receive + own;
    case Kind::reduce_scatter:
    case Kind::scatter:
      return w.receive == w.send + own;
    case Kind::all_to_all:
      return false;
    default:
      return w.send == w.receive;
  }
}

std::string wrong_with(const Clique& clique, const Work& w, int rank) {
  const Range from = read_by(w, rank, clique.ranks()), to = written_by(w, rank, clique.ranks());
  for (const Range& range : {from, to}) {
    const std::string wrong = wrong_with(range, w.name, rank, clique.devices[static_cast<size_t>(rank)]);
    if (!wrong.empty()) return wrong;
  }
  const bool overlap = from.size && to.size && from.begin < to.begin + to.size && to.begin < from.begin + from.size;
  if (overlap && !is_in_place(w, rank))
    return std::string(w.name) + ": sendbuff and recvbuff of " + on_rank(static_cast<size_t>(rank)) +
           " overlap in another way than NCCL's in-place form" +
           (w.kind == Kind::all_to_all ? ", which it has not" : "");
  return "";
}

// "" or in what two ranks' calls differ.
std::string difference(const Work& a, const Work& b) {
  const auto both = [](const std::string& x, const std::string& y) {
    return x + " on one rank and " + y + " on another";
  };
  if (a.kind != b.kind) return both(a.name, b.name);
  if (a.type != b.type) return both(name_of(a.type), name_of(b.type));
  if (a.count != b.count) return both("a count of " + std::to_string(a.count), std::to_string(b.count));
  if (a.root != b.root) return both("root " + std::to_string(a.root), "root " + std::to_string(b.root));
  if (a.reduction.op != b.reduction.op)
    return both("operation " + std::to_string(a.reduction.op), std::to_string(b.reduction.op));
  return "";
}

constexpr size_t kChunk = 1 << 16;  // elements that are added at a time

void reduce_block(const std::vector<Work>& of, const std::vector<Reduction>& reductions, size_t first,
                  const std::vector<char*>& to) {
  const size_t size = size_of(of[0].type);
  std::vector<char> results(std::min(of[0].count, kChunk) * size);
  std::vector<const char*> sources(of.size());
  for (size_t begin = 0; begin < of[0].count; begin += kChunk) {
    const size_t count = std::min(kChunk, of[0].count - begin);
    for (size_t r = 0; r < of.size(); ++r) sources[r] = of[r].send + (first + begin) * size;
    reduce(reductions, sources, count, results.data());
    for (char* receive : to) std::memcpy(receive + begin * size, results.data(), count * size);
  }
}

void do_all(const std::vector<Work>& of, const std::vector<Reduction>& reductions) {
  const Work& w = of[0];
  const size_t ranks = of.size(), block = w.count * size_of(w.type), root = static_cast<size_t>(w.root);
  if (block == 0) return;
  const auto copy = [&](size_t to, size_t to_block, size_t from, size_t from_block) {
    std::memmove(of[to].receive + to_block * block, of[from].send + from_block * block, block);
  };
  std::vector<char*> receivers;
  for (const Work& each : of) receivers.push_back(each.receive);
  switch (w.kind) {
    case Kind::all_reduce:
      return reduce_block(of, reductions, 0, receivers);
    case Kind::reduce:
      return reduce_block(of, reductions, 0, {receivers[root]});
    case Kind::reduce_scatter:
      for (size_t r = 0; r < ranks; ++r) reduce_block(of, reductions, r * w.count, {receivers[r]});
      return;
    case Kind::broadcast:
      for (size_t r = 0; r < ranks; ++r) copy(r, 0, root, 0);
      return;
    case Kind::scatter:
      for (size_t r = 0; r < ranks; ++r) copy(r, 0, root, r);
      return;
    case Kind::gather:
      for (size_t r = 0; r < ranks; ++r) copy(root, r, r, 0);
      return;
    case Kind::all_gather:
      for (size_t to = 0; to < ranks; ++to)
        for (size_t from = 0; from < ranks; ++from) copy(to, from, from, 0);
      return;
    case Kind::all_to_all:
      for (size_t to = 0; to < ranks; ++to)
        for (size_t from = 0; from < ranks; ++from) copy(to, from, from, to);
  }
}

cudaError_t do_step(Clique& clique, const Step& step) {
  std::lock_guard<std::recursive_mutex> lock(api_mutex());
  std::vector<Work> of;
  std::vector<Reduction> reductions;
  for (size_t r = 0; r < step.of.size(); ++r) {
    of.push_back(*step.of[r]);
    const std::string differs = difference(of[0], of[r]);
    if (!differs.empty())
      return fail(clique, cudaErrorLaunchFailure,
                  "NCCL's ranks 0 and " + std::to_string(r) + " do not call the same collective: " + differs);
    const std::string wrong = wrong_with(clique, of[r], static_cast<int>(r));
    if (!wrong.empty()) return fail(clique, cudaErrorIllegalAddress, wrong);
    Reduction reduction = of[r].reduction;
    reduction.type = of[r].type;
    if (reduction.op == ncclNumOps && reduction.residence == ncclScalarDevice) {
      const Range scalar{static_cast<const char*>(reduction.scalar_place), size_of(reduction.type), "scalar"};
      const std::string wrong_scalar = wrong_with(scalar, of[r].name, static_cast<int>(r), clique.devices[r]);
      if (!wrong_scalar.empty()) return fail(clique, cudaErrorIllegalAddress, wrong_scalar);
      std::memcpy(reduction.scalar, scalar.begin, scalar.size);
    }
    reductions.push_back(reduction);
  }
  do_all(of, reductions);
  for (size_t r = 0; r < of.size(); ++r) {
    const Range to = written_by(of[r], static_cast<int>(r), of.size());
    note_written(to.begin, to.size);
  }
  return cudaSuccess;
}

// What comes before the end of the operation that runs.
Past own_past() {
  Past past = past_of_operation();
  past.add(stream_of_operation(), number_of_operation());
  return past;
}

// A rank has followed those whose data it got.
bool follows(const Work& work, int rank, size_t other) {
  switch (work.kind) {
    case Kind::broadcast:
    case Kind::scatter:
      return other == static_cast<size_t>(work.root);
    case Kind::reduce:
    case Kind::gather:
      return rank == work.root;
    default:
      return true;
  }
}

cudaError_t come(Clique& clique, int rank, const Work& work, uint64_t number) {
  Step& step = clique.steps[number];
  step.of.resize(clique.ranks());
  step.pasts->resize(clique.ranks());
  step.of[static_cast<size_t>(rank)] = work;
  (*step.pasts)[static_cast<size_t>(rank)] = own_past();
  if (++step.came < clique.ranks()) return cudaSuccess;
  const cudaError_t error = do_step(clique, step);
  clique.steps.erase(number);  // done
  return error;
}

cudaError_t move(Clique& clique, int from, int to) {
  auto& sends = clique.sends[{from, to}];
  auto& receives = clique.receives[{from, to}];
  while (!sends.empty() && !receives.empty()) {
    Transfer& send = sends.front().first->transfers[sends.front().second];
    Transfer& receive = receives.front().first->transfers[receives.front().second];
    const size_t bytes = send.count * size_of(send.type);
    const std::string pair = "ncclSend of rank " + std::to_string(from) + " and ncclRecv of rank " + std::to_string(to);
    if (send.type != receive.type || send.count != receive.count)
      return fail(clique, cudaErrorLaunchFailure,
                  pair + " differ: " + std::to_string(send.count) + " of " + name_of(send.type) + " and " +
                      std::to_string(receive.count) + " of " + name_of(receive.type));
    std::lock_guard<std::recursive_mutex> lock(api_mutex());
    for (const Transfer* t : {&send, &receive}) {
      const int rank = t->sends ? from : to;
      const std::string wrong =
          wrong_with(Range{t->buffer, bytes, t->sends ? "sendbuff" : "recvbuff"}, t->sends ? "ncclSend" : "ncclRecv",
                     rank, clique.devices[static_cast<size_t>(rank)]);
      if (!wrong.empty()) return fail(clique, cudaErrorIllegalAddress, wrong);
    }
    if (bytes) std::memmove(receive.buffer, send.buffer, bytes);
    note_written(receive.buffer, bytes);
    receive.past = send.past;
    send.is_done = receive.is_done = true;
    sends.pop_front();
    receives.pop_front();
  }
  return cudaSuccess;
}

// What a rank's operation still waits for.
std::string awaited(const Clique& clique, int rank, const std::vector<uint64_t>& numbers, const Plan& plan) {
  for (const uint64_t number : numbers) {
    const auto step = clique.steps.find(number);
    if (step == clique.steps.end()) continue;
    std::vector<int> missing;
    for (size_t r = 0; r < clique.ranks(); ++r)
      if (!step->second.of[r]) missing.push_back(static_cast<int>(r));
    return std::string(step->second.of[static_cast<size_t>(rank)]->name) + " of " + on_rank(static_cast<size_t>(rank)) +
           " waits for " + list_of(missing);
  }
  for (const Transfer& t : plan.transfers)
    if (!t.is_done)
      return std::string(t.sends ? "ncclSend" : "ncclRecv") + " of " + on_rank(static_cast<size_t>(rank)) +
             " waits for " + (t.sends ? "ncclRecv" : "ncclSend") + " of rank " + std::to_string(t.peer);
  return "";
}

cudaError_t run(const CliquePtr& shared, int rank, const Plan& captured) {
  Clique& clique = *shared;
  open_all_devices();
  const auto plan = std::make_shared<Plan>(captured);  // a graph runs it once more
  for (size_t i = 0; i < plan->transfers.size(); ++i) {
    Transfer& t = plan->transfers[i];
    if (t.sends) t.past = own_past();
    const std::pair<int, int> way = t.sends ? std::pair(rank, t.peer) : std::pair(t.peer, rank);
    (t.sends ? clique.sends : clique.receives)[way].emplace_back(plan, i);
    if (const cudaError_t error = move(clique, way.first, way.second)) return error;
  }
  std::vector<uint64_t> numbers;
  std::vector<std::shared_ptr<std::vector<Past>>> pasts;
  for (const Work& work : plan->works) {
    numbers.push_back(++clique.steps_of[static_cast<size_t>(rank)]);
    pasts.push_back(clique.steps[numbers.back()].pasts);
    if (const cudaError_t error = come(clique, rank, work, numbers.back())) return error;
  }
  const cudaError_t error = wait_until(
      [&] { return clique.stopped[static_cast<size_t>(rank)] || awaited(clique, rank, numbers, *plan).empty(); },
      [&] { return awaited(clique, rank, numbers, *plan); });
  if (error != cudaSuccess) return error;
  for (size_t i = 0; i < plan->works.size(); ++i)
    for (size_t other = 0; other < pasts[i]->size(); ++other)
      if (follows(plan->works[i], rank, other)) follow((*pasts[i])[other]);
  for (const Transfer& t : plan->transfers)
    if (!t.sends) follow(t.past);
  return cudaSuccess;
}

}  // namespace

cudaError_t enqueue_plan(const CliquePtr& clique, int rank, Plan plan, cudaStream_t stream) {
  const OnDevice here(clique->devices[static_cast<size_t>(rank)]);
  return enqueue(stream, [clique, rank, plan = std::move(plan)] { return run(clique, rank, plan); });
}

// --- The functions
// -----------------------------------------------------------------------------------------------------

namespace {

ncclResult_t check_buffer(const ncclComm* comm, const void* buffer, const char* name, const char* function) {
  std::lock_guard<std::recursive_mutex> lock(api_mutex());
  const std::string wrong =
      wrong_with(Range{static_cast<const char*>(buffer), 1, name}, function, comm->rank, comm->device);
  return wrong.empty() ? ncclSuccess : refuse(ncclInvalidArgument, wrong);
}

ncclResult_t check_common(const ncclComm* comm, const char* function, ncclDataType_t type, int root, const char* what) {
  if (const ncclResult_t wrong = check(comm, function)) return wrong;
  if (comm->is_revoked) return refuse(ncclInvalidUsage, std::string(function) + ": the communicator was revoked");
  if (comm->is_finalized) return refuse(ncclInvalidUsage, std::string(function) + ": the communicator was finalized");
  if (root < 0 || root >= comm->ranks)
    return refuse(ncclInvalidArgument, std::string(function) + ": the " + what + " is " + std::to_string(root) +
                                           "; it is 0 to " + std::to_string(comm->ranks - 1));
  if (!size_of(type))
    return refuse(ncclInvalidArgument, std::string(function) + ": there is no datatype " + std::to_string(type));
  return ncclSuccess;
}

ncclResult_t find_op(const ncclComm* comm, ncclRedOp_t op, Work& work) {
  if (op >= 0 && op < ncclNumOps) {
    work.reduction.op = op;
    return ncclSuccess;
  }
  const auto own = comm->own_ops.find(op);
  if (own == comm->own_ops.end())
    return refuse(ncclInvalidArgument,
                  std::string(work.name) + ": the communicator has no operation " + std::to_string(op));
  if (own->second.type != work.type)
    return refuse(ncclInvalidArgument, std::string(work.name) + ": the operation was made for " +
                                           name_of(own->second.type) + ", and the data is " + name_of(work.type));
  work.reduction = own->second;
  return ncclSuccess;
}

ncclResult_t collective(ncclComm* comm, Kind kind, const char* name, const void* send, void* receive, size_t count,
                        ncclDataType_t type, ncclRedOp_t op, int root, cudaStream_t stream) {
  ncclResult_t wrong = check_common(comm, name, type, root, "root");
  Work work{kind, name, static_cast<const char*>(send), static_cast<char*>(receive), count, type, root, {}};
  if (!wrong && reduces(kind)) wrong = find_op(comm, op, work);
  if (!wrong && read_by(work, comm->rank, 1).size) wrong = check_buffer(comm, send, "sendbuff", name);
  if (!wrong && written_by(work, comm->rank, 1).size) wrong = check_buffer(comm, receive, "recvbuff", name);
  return wrong ? spoil_group(wrong) : add(comm, work, stream);
}

ncclResult_t transfer(ncclComm* comm, bool sends, void* buffer, size_t count, ncclDataType_t type, int peer,
                      cudaStream_t stream) {
  const char* name = sends ? "ncclSend" : "ncclRecv";
  ncclResult_t wrong = check_common(comm, name, type, peer, "peer");
  if (!wrong && count) wrong = check_buffer(comm, buffer, sends ? "sendbuff" : "recvbuff", name);
  if (wrong) return spoil_group(wrong);
  return add(comm, Transfer{sends, static_cast<char*>(buffer), count, type, peer, false, {}}, stream);
}

}  // namespace

}  // namespace simt::nccl

using namespace simt::nccl;

extern "C" {

ncclResult_t ncclAllReduce(const void* send, void* receive, size_t count, ncclDataType_t type, ncclRedOp_t op,
                           ncclComm_t comm, cudaStream_t stream) {
  return collective(comm, Kind::all_reduce, "ncclAllReduce", send, receive, count, type, op, 0, stream);
}
ncclResult_t ncclReduce(const void* send, void* receive, size_t count, ncclDataType_t type, ncclRedOp_t op, int root,
                        ncclComm_t comm, cudaStream_t stream) {
  return collective(comm, Kind::reduce, "ncclReduce", send, receive, count, type, op, root, stream);
}
ncclResult_t ncclReduceScatter(const void* send, void* receive, size_t count, ncclDataType_t type, ncclRedOp_t op,
                               ncclComm_t comm, cudaStream_t stream) {
  return collective(comm, Kind::reduce_scatter, "ncclReduceScatter", send, receive, count, type, op, 0, stream);
}
ncclResult_t ncclBroadcast(const void* send, void* receive, size_t count, ncclDataType_t type, int root,
                           ncclComm_t comm, cudaStream_t stream) {
  return collective(comm, Kind::broadcast, "ncclBroadcast", send, receive, count, type, ncclSum, root, stream);
}
ncclResult_t ncclBcast(void* buffer, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
                       cudaStream_t stream) {
  return collective(comm, Kind::broadcast, "ncclBcast", buffer, buffer, count, type, ncclSum, root, stream);
}
ncclResult_t ncclAllGather(const void* send, void* receive, size_t count, ncclDataType_t type, ncclComm_t comm,
                           cudaStream_t stream) {
  return collective(comm, Kind::all_gather, "ncclAllGather", send, receive, count, type, ncclSum, 0, stream);
}
ncclResult_t ncclAlltoAll(const void* send, void* receive, size_t count, ncclDataType_t type, ncclComm_t comm,
                          cudaStream_t stream) {
  return collective(comm, Kind::all_to_all, "ncclAlltoAll", send, receive, count, type, ncclSum, 0, stream);
}
ncclResult_t ncclGather(const void* send, void* receive, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
                        cudaStream_t stream) {
  return collective(comm, Kind::gather, "ncclGather", send, receive, count, type, ncclSum, root, stream);
}
ncclResult_t ncclScatter(const void* send, void* receive, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
                         cudaStream_t stream) {
  return collective(comm, Kind::scatter, "ncclScatter", send, receive, count, type, ncclSum, root, stream);
}
ncclResult_t ncclSend(const void* send, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return transfer(comm, true, const_cast<void*>(send), count, type, peer, stream);
}
ncclResult_t ncclRecv(void* receive, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return transfer(comm, false, receive, count, type, peer, stream);
}

ncclResult_t ncclRedOpCreatePreMulSum(ncclRedOp_t* op, void* scalar, ncclDataType_t type,
                                      ncclScalarResidence_t residence, ncclComm_t comm) {
  static std::atomic<int> made{ncclNumOps};
  if (const ncclResult_t wrong = check_common(comm, "ncclRedOpCreatePreMulSum", type, 0, "")) return wrong;
  for (const void* pointer : {static_cast<const void*>(op), static_cast<const void*>(scalar)})
    if (const ncclResult_t wrong = check_pointer(pointer, pointer == op ? "op" : "scalar", "ncclRedOpCreatePreMulSum"))
      return wrong;
  Reduction reduction{ncclNumOps, type, residence, scalar, {}};
  if (residence == ncclScalarHostImmediate) std::memcpy(reduction.scalar, scalar, size_of(type));
  *op = static_cast<ncclRedOp_t>(made++);
  comm->own_ops[*op] = reduction;
  return ncclSuccess;
}

ncclResult_t ncclRedOpDestroy(ncclRedOp_t op, ncclComm_t comm) {
  if (const ncclResult_t wrong = check(comm, "ncclRedOpDestroy")) return wrong;
  if (op >= 0 && op < ncclNumOps)
    return refuse(ncclInvalidArgument, "ncclRedOpDestroy: the operation is one of NCCL's own");
  return comm->own_ops.erase(op)
             ? ncclSuccess
             : refuse(ncclInvalidArgument, "ncclRedOpDestroy: the communicator has no operation " + std::to_string(op));
}

SIMT_SECOND_NAME(ncclAllReduce);
SIMT_SECOND_NAME(ncclReduce);
SIMT_SECOND_NAME(ncclReduceScatter);
SIMT_SECOND_NAME(ncclBroadcast);
SIMT_SECOND_NAME(ncclBcast);
SIMT_SECOND_NAME(ncclAllGather);
SIMT_SECOND_NAME(ncclAlltoAll);
SIMT_SECOND_NAME(ncclGather);
SIMT_SECOND_NAME(ncclScatter);
SIMT_SECOND_NAME(ncclSend);
SIMT_SECOND_NAME(ncclRecv);
SIMT_SECOND_NAME(ncclRedOpCreatePreMulSum);
SIMT_SECOND_NAME(ncclRedOpDestroy);

}  // extern "C"
