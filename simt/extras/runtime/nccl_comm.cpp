// Communicators, and what went wrong.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <tuple>

#include "nccl_parts.h"

namespace simt::nccl {

namespace {

std::mutex all_mutex;  // guards what follows
std::set<const ncclComm*>& live() {
  static auto* live = new std::set<const ncclComm*>;
  return *live;
}
struct Id {  // what stands in an ncclUniqueId
  char mark[16];
  long process;
  uint64_t number;
};
constexpr char kMark[16] = "simt's NCCL";
uint64_t ids_made = 0;
std::map<uint64_t, std::pair<int, MeetingPtr>>& beginnings() {  // by the id: how many ranks, and where they meet
  static auto* beginnings = new std::map<uint64_t, std::pair<int, MeetingPtr>>;
  return *beginnings;
}

thread_local std::string last;

ncclComm* new_comm(int device, bool blocks) {
  auto* comm = new ncclComm;
  comm->device = device;
  comm->blocks = blocks;
  std::lock_guard<std::mutex> lock(all_mutex);
  live().insert(comm);
  return comm;
}

void take_place(ncclComm* comm, const CliquePtr& clique, size_t rank) {
  comm->rank = static_cast<int>(rank);
  comm->ranks = static_cast<int>(clique->ranks());
  comm->device = clique->devices[rank];
  comm->clique = clique;
}

ncclResult_t found(std::vector<Part>& parts) {
  std::vector<int> devices;
  for (const Part& part : parts) {
    const auto same = std::find(devices.begin(), devices.end(), part.device);
    if (same != devices.end())
      return refuse(ncclInvalidUsage, "ranks " + std::to_string(same - devices.begin()) + " and " +
                                          std::to_string(devices.size()) + " are both on device " +
                                          std::to_string(part.device) +
                                          "; each rank calls cudaSetDevice with a device of its own first");
    devices.push_back(part.device);
  }
  const auto clique = std::make_shared<Clique>(std::move(devices));
  for (size_t r = 0; r < parts.size(); ++r) take_place(parts[r].comm, clique, r);
  return ncclSuccess;
}

// Those of one color become a communicator, in the order of their keys.
ncclResult_t split(const CliquePtr& clique, const std::vector<int>& members, std::vector<Part>& parts) {
  std::map<int, std::vector<std::tuple<int, size_t>>> colors;
  for (size_t r = 0; r < parts.size(); ++r)
    if (parts[r].color != NCCL_SPLIT_NOCOLOR) colors[parts[r].color].emplace_back(parts[r].key, r);
  for (auto& [color, ranks] : colors) {
    std::sort(ranks.begin(), ranks.end());
    std::vector<int> devices;
    for (const auto& [key, r] : ranks) devices.push_back(clique->devices[static_cast<size_t>(members[r])]);
    const auto made = std::make_shared<Clique>(std::move(devices));
    for (size_t i = 0; i < ranks.size(); ++i) take_place(parts[std::get<1>(ranks[i])].comm, made, i);
  }
  return ncclSuccess;
}

ncclResult_t check_config(const ncclConfig_t* config, const char* function) {
  if (!config) return ncclSuccess;
  if (config->magic != 0xcafebeef)
    return refuse(ncclInvalidArgument,
                  std::string(function) + ": the ncclConfig_t does not begin as NCCL_CONFIG_INITIALIZER");
  if (config->blocking != NCCL_CONFIG_UNDEF_INT && config->blocking != 0 && config->blocking != 1)
    return refuse(ncclInvalidArgument,
                  std::string(function) + ": blocking is " + std::to_string(config->blocking) + "; it is 0 or 1");
  return ncclSuccess;
}

bool blocks(const ncclConfig_t* config, bool inherited) {
  return config && config->blocking != NCCL_CONFIG_UNDEF_INT ? config->blocking == 1 : inherited;
}

ncclResult_t begin(const char* function, ncclComm_t* made, int ranks, const ncclUniqueId& unique, int rank,
                   const ncclConfig_t* config) {
  if (const ncclResult_t wrong = check_pointer(made, "comm", function)) return wrong;
  if (const ncclResult_t wrong = check_config(config, function)) return wrong;
  if (ranks < 1 || rank < 0 || rank >= ranks)
    return refuse(ncclInvalidArgument, std::string(function) + ": rank " + std::to_string(rank) + " of " +
                                           std::to_string(ranks) + "; ranks are 0 to their number less one");
  Id id;
  std::memcpy(&id, unique.internal, sizeof id);
  if (std::memcmp(id.mark, kMark, sizeof kMark) != 0 || id.process != getpid())
    return refuse(ncclInvalidUsage,
                  std::string(function) +
                      ": the ncclUniqueId was not made by this process; on the CPU device the ranks of a "
                      "communicator are one process's: use ncclCommInitAll, or a thread for each rank");
  if (ranks > device_count())
    return refuse(ncclInvalidUsage, std::string(function) + ": " + std::to_string(ranks) +
                                        " ranks need as many devices, and there " +
                                        (device_count() == 1 ? "is 1" : "are " + std::to_string(device_count())) +
                                        "; SIMT_DEVICES is their number");
  {
    std::lock_guard<std::mutex> lock(all_mutex);
    auto& begun = beginnings()[id.number];
    if (!begun.second)
      begun = {ranks, std::make_shared<Meeting>("ncclCommInitRank", static_cast<size_t>(ranks), found)};
    if (begun.first != ranks)
      return refuse(ncclInvalidUsage, std::string(function) + ": rank " + std::to_string(rank) +
                                          " says that there are " + std::to_string(ranks) +
                                          " ranks, and another says " + std::to_string(begun.first));
  }
  Call call;
  call.meeting = [number = id.number] {
    std::lock_guard<std::mutex> lock(all_mutex);
    return beginnings()[number].second;
  };
  call.function = "ncclCommInitRank";
  call.rank = rank;
  call.part.device = current_device();
  call.blocks = blocks(config, true);
  call.part.comm = *made = new_comm(call.part.device, call.blocks);
  call.made = made;
  return add(std::move(call));
}

ncclResult_t forget(ncclComm* comm, const char* function) {
  std::lock_guard<std::mutex> lock(all_mutex);
  if (!live().erase(comm))
    return refuse(ncclInvalidArgument,
                  std::string(function) + ": the communicator was destroyed before, or never made");
  return ncclSuccess;
}

}  // namespace

const char* last_sentence() { return last.c_str(); }
void set_last_sentence(const std::string& sentence) { last = sentence; }

ncclResult_t refuse(ncclResult_t result, const std::string& sentence) {
  last = sentence;
  std::fflush(stdout);
  std::fprintf(stderr, "simt: %s\n", sentence.c_str());
  return result;
}

ncclResult_t result_of(cudaError_t error, const char* function) {
  if (error == cudaSuccess) return ncclSuccess;
  return refuse(ncclUnhandledCudaError, std::string(function) + ": " + cudaGetErrorName(error));
}

std::string list_of(const std::vector<int>& ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (size_t i = 0; i < ranks.size(); ++i)
    text += (i == 0 ? "" : i + 1 == ranks.size() ? " and " : ", ") + std::to_string(ranks[i]);
  return text;
}

ncclResult_t check_pointer(const void* pointer, const char* name, const char* function) {
  return pointer ? ncclSuccess : refuse(ncclInvalidArgument, std::string(function) + ": " + name + " is null");
}

ncclResult_t check(const ncclComm* comm, const char* function) {
  if (const ncclResult_t wrong = check_pointer(comm, "comm", function)) return wrong;
  {
    std::lock_guard<std::mutex> lock(all_mutex);
    if (!live().count(comm))
      return refuse(ncclInvalidArgument, std::string(function) + ": the communicator was destroyed, or never made");
  }
  if (comm->begun && comm->begun->result() == ncclInProgress)
    return refuse(ncclInvalidArgument, std::string(function) +
                                           ": the communicator is not ready; wait until "
                                           "ncclCommGetAsyncError says ncclSuccess");
  return comm->clique ? ncclSuccess
                      : refuse(ncclInvalidArgument, std::string(function) + ": the communicator's beginning failed");
}

}  // namespace simt::nccl

using namespace simt::nccl;

extern "C" {

ncclResult_t ncclGetVersion(int* version) {
  if (const ncclResult_t wrong = check_pointer(version, "version", "ncclGetVersion")) return wrong;
  *version = NCCL_VERSION_CODE;
  return ncclSuccess;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId* unique) {
  if (const ncclResult_t wrong = check_pointer(unique, "uniqueId", "ncclGetUniqueId")) return wrong;
  std::lock_guard<std::mutex> lock(all_mutex);
  Id id{{}, getpid(), ++ids_made};
  std::memcpy(id.mark, kMark, sizeof kMark);
  *unique = {};
  std::memcpy(unique->internal, &id, sizeof id);
  return ncclSuccess;
}

ncclResult_t ncclCommInitRank(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank) {
  return spoil_group(begin("ncclCommInitRank", comm, ranks, id, rank, nullptr));
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank, ncclConfig_t* config) {
  return spoil_group(begin("ncclCommInitRankConfig", comm, ranks, id, rank, config));
}

ncclResult_t ncclCommInitRankScalable(ncclComm_t* comm, int ranks, int rank, int count, ncclUniqueId* ids,
                                      ncclConfig_t* config) {
  const char* name = "ncclCommInitRankScalable";
  if (const ncclResult_t wrong = check_pointer(ids, "commIds", name)) return spoil_group(wrong);
  if (count < 1 || count > ranks)
    return spoil_group(refuse(ncclInvalidArgument, std::string(name) + ": there are " + std::to_string(count) +
                                                       " ids; there is one or more, and no more than ranks"));
  return spoil_group(begin(name, comm, ranks, ids[0], rank, config));
}

ncclResult_t ncclCommInitAll(ncclComm_t* comms, int count, const int* list) {
  const char* name = "ncclCommInitAll";
  if (const ncclResult_t wrong = check_pointer(comms, "comms", name)) return wrong;
  if (count < 1)
    return refuse(ncclInvalidArgument,
                  std::string(name) + ": there are " + std::to_string(count) + " devices; give 1 or more");
  std::vector<Part> parts(static_cast<size_t>(count));
  for (int r = 0; r < count; ++r) {
    Part& part = parts[static_cast<size_t>(r)];
    part.device = list ? list[r] : r;
    if (!simt::is_device(part.device))
      return refuse(ncclInvalidArgument, std::string(name) + ": there is no device " + std::to_string(part.device) +
                                             "; SIMT_DEVICES, the number of devices, is " +
                                             std::to_string(simt::device_count()));
  }
  for (Part& part : parts) part.comm = new_comm(part.device, true);
  const ncclResult_t result = found(parts);
  for (size_t r = 0; r < parts.size(); ++r) comms[r] = result == ncclSuccess ? parts[r].comm : nullptr;
  return result;
}

ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t* made, ncclConfig_t* config) {
  const char* name = "ncclCommSplit";
  ncclResult_t wrong = check(comm, name);
  if (!wrong) wrong = check_pointer(made, "newcomm", name);
  if (!wrong) wrong = check_config(config, name);
  if (!wrong && color < NCCL_SPLIT_NOCOLOR)
    wrong = refuse(ncclInvalidArgument, std::string(name) + ": the color is " + std::to_string(color) +
                                            "; it is 0 or more, or NCCL_SPLIT_NOCOLOR");
  if (wrong) return spoil_group(wrong);
  Call call;
  call.meeting = [clique = comm->clique, rank = comm->rank, name] {
    std::vector<int> members;
    for (size_t r = 0; r < clique->ranks(); ++r) members.push_back(static_cast<int>(r));
    return next_meeting(clique, rank, name,
                        [clique, members](std::vector<Part>& parts) { return split(clique, members, parts); });
  };
  call.function = name;
  call.rank = comm->rank;
  call.part.color = color;
  call.part.key = key;
  call.blocks = blocks(config, comm->blocks);
  *made = color == NCCL_SPLIT_NOCOLOR ? nullptr : new_comm(comm->device, call.blocks);
  call.part.comm = *made;
  call.made = made;
  return spoil_group(add(std::move(call)));
}

ncclResult_t ncclCommShrink(ncclComm_t comm, int* excluded, int count, ncclComm_t* made, ncclConfig_t* config,
                            int flags) {
  const char* name = "ncclCommShrink";
  ncclResult_t wrong = check(comm, name);
  if (!wrong) wrong = check_pointer(made, "newcomm", name);
  if (!wrong) wrong = check_config(config, name);
  if (!wrong && count > 0) wrong = check_pointer(excluded, "excludeRanksList", name);
  if (wrong) return spoil_group(wrong);
  std::vector<int> left;
  for (int r = 0; r < comm->ranks; ++r)
    if (std::find(excluded, excluded + count, r) == excluded + count) left.push_back(r);
  const auto place = std::find(left.begin(), left.end(), comm->rank);
  if (count < 1 || place == left.end())
    return spoil_group(
        refuse(ncclInvalidArgument, std::string(name) + ": the ranks that stay call it, and name one that goes"));
  if (flags & NCCL_SHRINK_ABORT) comm->clique->stopped[static_cast<size_t>(comm->rank)] = true;
  Call call;
  call.meeting = [clique = comm->clique, left, name] {
    std::lock_guard<std::mutex> lock(clique->mutex);
    MeetingPtr& meeting = clique->shrinks[left];
    if (!meeting || meeting->result() != ncclInProgress)
      meeting = std::make_shared<Meeting>(
          name, left.size(), [clique, left](std::vector<Part>& parts) { return split(clique, left, parts); });
    return meeting;
  };
  call.function = name;
  call.rank = static_cast<int>(place - left.begin());
  call.part.key = call.rank;
  call.blocks = blocks(config, comm->blocks);
  call.part.comm = *made = new_comm(comm->device, call.blocks);
  call.made = made;
  return spoil_group(add(std::move(call)));
}

ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  if (const ncclResult_t wrong = check(comm, "ncclCommFinalize")) return wrong;
  if (comm->is_finalized || comm->is_revoked)
    return refuse(ncclInvalidArgument, std::string("ncclCommFinalize: the communicator was ") +
                                           (comm->is_revoked ? "revoked" : "finalized before"));
  comm->is_finalized = true;
  return ncclSuccess;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  if (!comm) return ncclSuccess;
  if (const ncclResult_t wrong = forget(comm, "ncclCommDestroy")) return wrong;
  forget_windows(comm);
  return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t comm) {
  if (!comm) return ncclSuccess;
  if (const ncclResult_t wrong = forget(comm, "ncclCommAbort")) return wrong;
  if (comm->clique) comm->clique->stopped[static_cast<size_t>(comm->rank)] = true;
  return ncclSuccess;
}

ncclResult_t ncclCommRevoke(ncclComm_t comm, int flags) {
  if (const ncclResult_t wrong = check(comm, "ncclCommRevoke")) return wrong;
  if (flags != NCCL_REVOKE_DEFAULT)
    return refuse(ncclInvalidArgument,
                  "ncclCommRevoke: the flags are " + std::to_string(flags) + "; they are NCCL_REVOKE_DEFAULT");
  comm->is_revoked = true;
  comm->clique->stopped[static_cast<size_t>(comm->rank)] = true;
  return ncclSuccess;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* error) {
  if (const ncclResult_t wrong = check_pointer(comm, "comm", "ncclCommGetAsyncError")) return wrong;
  if (const ncclResult_t wrong = check_pointer(error, "asyncError", "ncclCommGetAsyncError")) return wrong;
  *error = ncclSuccess;
  if (comm->begun) *error = comm->begun->result();
  if (*error != ncclSuccess) return ncclSuccess;
  if (const ncclResult_t wrong = check(comm, "ncclCommGetAsyncError")) return wrong;
  std::lock_guard<std::recursive_mutex> lock(simt::api_mutex());
  *error = comm->clique->errors[static_cast<size_t>(comm->rank)];
  if (*error == ncclSuccess && simt::sticky() != cudaSuccess) *error = ncclUnhandledCudaError;
  return ncclSuccess;
}

static ncclResult_t tell(const ncclComm* comm, int* to, const char* function, int ncclComm::*what) {
  if (const ncclResult_t wrong = check(comm, function)) return wrong;
  if (const ncclResult_t wrong = check_pointer(to, "the result", function)) return wrong;
  *to = comm->*what;
  return ncclSuccess;
}
ncclResult_t ncclCommCount(const ncclComm_t comm, int* count) {
  return tell(comm, count, "ncclCommCount", &ncclComm::ranks);
}
ncclResult_t ncclCommCuDevice(const ncclComm_t comm, int* device) {
  return tell(comm, device, "ncclCommCuDevice", &ncclComm::device);
}
ncclResult_t ncclCommUserRank(const ncclComm_t comm, int* rank) {
  return tell(comm, rank, "ncclCommUserRank", &ncclComm::rank);
}

const char* ncclGetErrorString(ncclResult_t result) {
  switch (result) {
    case ncclSuccess:
      return "no error";
    case ncclUnhandledCudaError:
      return "unhandled cuda error (run with NCCL_DEBUG=INFO for details)";
    case ncclSystemError:
      return "unhandled system error (run with NCCL_DEBUG=INFO for details)";
    case ncclInternalError:
      return "internal error - please report this issue to the NCCL developers";
    case ncclInvalidArgument:
      return "invalid argument (run with NCCL_DEBUG=WARN for details)";
    case ncclInvalidUsage:
      return "invalid usage (run with NCCL_DEBUG=WARN for details)";
    case ncclRemoteError:
      return "remote process exited or there was a network error";
    case ncclInProgress:
      return "NCCL operation in progress";
    default:
      return "unknown result code";
  }
}

const char* ncclGetLastError(ncclComm_t) { return last_sentence(); }

SIMT_SECOND_NAME(ncclGetVersion);
SIMT_SECOND_NAME(ncclGetUniqueId);
SIMT_SECOND_NAME(ncclCommInitRank);
SIMT_SECOND_NAME(ncclCommInitRankConfig);
SIMT_SECOND_NAME(ncclCommInitRankScalable);
SIMT_SECOND_NAME(ncclCommInitAll);
SIMT_SECOND_NAME(ncclCommSplit);
SIMT_SECOND_NAME(ncclCommShrink);
SIMT_SECOND_NAME(ncclCommFinalize);
SIMT_SECOND_NAME(ncclCommDestroy);
SIMT_SECOND_NAME(ncclCommAbort);
SIMT_SECOND_NAME(ncclCommRevoke);
SIMT_SECOND_NAME(ncclCommGetAsyncError);
SIMT_SECOND_NAME(ncclCommCount);
SIMT_SECOND_NAME(ncclCommCuDevice);
SIMT_SECOND_NAME(ncclCommUserRank);
SIMT_SECOND_NAME(ncclGetErrorString);
SIMT_SECOND_NAME(ncclGetLastError);

}  // extern "C"
