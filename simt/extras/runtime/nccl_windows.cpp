// Memory that all ranks may read and write: its allocation, windows, and the buffer behind a device communicator.
#include <algorithm>

#include "memory.h"
#include "nccl_parts.h"

namespace simt::nccl {

namespace {

struct Window {
  const ncclComm* comm;
  void* memory;  // of a device communicator: freed with it
};
std::map<ncclWindow_t, Window>& windows() {  // guarded by api_mutex()
  static auto* windows = new std::map<ncclWindow_t, Window>;
  return *windows;
}

std::string bytes(size_t count) { return std::to_string(count) + (count == 1 ? " byte" : " bytes"); }

ncclResult_t make_window(const ncclWindow_vidmem& what, const ncclComm* comm, void* memory, ncclWindow_t* made) {
  const OnDevice here(comm->device);
  std::lock_guard<std::recursive_mutex> lock(api_mutex());
  void* place = nullptr;
  if (const cudaError_t error = allocate(&place, sizeof what, MemoryKind::managed, "ncclCommWindowRegister"))
    return result_of(error, "ncclCommWindowRegister");
  *made = static_cast<ncclWindow_t>(place);
  **made = what;
  windows()[*made] = {comm, memory};
  return ncclSuccess;
}

ncclResult_t destroy_window(ncclWindow_t window) {
  void* memory = nullptr;
  {
    std::lock_guard<std::recursive_mutex> lock(api_mutex());
    const auto found = windows().find(window);
    if (found == windows().end())
      return refuse(ncclInvalidArgument, "ncclCommWindowDeregister: there is no such window");
    memory = found->second.memory;
    windows().erase(found);
  }
  cudaFree(window);
  return memory ? result_of(cudaFree(memory), "ncclDevCommDestroy") : ncclSuccess;
}

ncclResult_t register_windows(std::vector<Part>& parts) {
  ncclWindow_vidmem window{};
  window.ranks = static_cast<int>(parts.size());
  window.size = parts[0].size;
  for (size_t r = 0; r < parts.size(); ++r) {
    const std::string whose = "ncclCommWindowRegister: the buffer of rank " + std::to_string(r);
    std::lock_guard<std::recursive_mutex> lock(api_mutex());
    Allocation a;
    const auto begin = reinterpret_cast<uintptr_t>(parts[r].buffer);
    if (!find_allocation(parts[r].buffer, a) || !a.symmetric)
      return refuse(ncclUnhandledCudaError, whose + " is not from ncclMemAlloc");
    if (a.device != parts[r].comm->device)
      return refuse(ncclUnhandledCudaError, whose + " is memory of device " + std::to_string(a.device) +
                                                ", and the rank's device is " + std::to_string(parts[r].comm->device));
    if ((begin - a.begin) % NCCL_WIN_REQUIRED_ALIGNMENT != 0)
      return refuse(ncclInvalidArgument,
                    whose + " begins " + bytes(begin - a.begin) + " into its allocation; that is a multiple of 4096");
    if (begin + parts[r].size > a.begin + a.size)
      return refuse(ncclInvalidArgument,
                    whose + " has " + bytes(a.begin + a.size - begin) + ", and the window " + bytes(parts[r].size));
    if (parts[r].size != parts[0].size)
      return refuse(ncclInvalidArgument, "ncclCommWindowRegister: the window has " + bytes(parts[0].size) +
                                             " on rank 0 and " + bytes(parts[r].size) + " on rank " +
                                             std::to_string(r));
    window.base[r] = static_cast<char*>(parts[r].buffer);
  }
  for (size_t r = 0; r < parts.size(); ++r) {
    window.lsaRank = static_cast<int>(r);
    if (const ncclResult_t wrong = make_window(window, parts[r].comm, nullptr, parts[r].window)) return wrong;
  }
  return ncclSuccess;
}

size_t units(size_t bytes) { return (bytes + kResourceUnit - 1) / kResourceUnit; }
size_t barrier_bytes(int barriers, size_t ranks) {
  return static_cast<size_t>(barriers) * (2 + ranks) * sizeof(uint32_t);
}

ncclResult_t check_wanted(const ncclDevCommRequirements& wanted) {
  const char* lacks = nullptr;
  for (const auto* team = wanted.teamRequirementsList; team; team = team->next)
    if (team->multimem) lacks = "NVLink multicast (multimem)";
  if (wanted.lsaMultimem) lacks = "NVLink multicast (lsaMultimem)";
  if (wanted.lsaLLA2ABlockCount) lacks = "NCCL's LL all-to-all (lsaLLA2ABlockCount)";
  if (wanted.ginForceEnable || wanted.ginSignalCount || wanted.ginCounterCount)
    lacks = "NCCL's GIN, which needs a network card";
  for (const auto* one = wanted.resourceRequirementsList; one; one = one->next)
    if (one->ginSignalCount || one->ginCounterCount) lacks = "NCCL's GIN, which needs a network card";
  return lacks ? refuse(ncclInvalidUsage, std::string("ncclDevCommCreate: the CPU device does not have ") + lacks)
               : ncclSuccess;
}

ncclResult_t zeroed(int device, size_t size, void** memory) {
  const OnDevice here(device);
  cudaError_t error;
  {
    std::lock_guard<std::recursive_mutex> lock(api_mutex());
    error = allocate(memory, size, MemoryKind::device, "ncclDevCommCreate", 0, true);
  }
  cudaStream_t stream = nullptr;
  if (error == cudaSuccess) error = cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  if (error == cudaSuccess) error = cudaMemsetAsync(*memory, 0, size, stream);
  if (error == cudaSuccess) error = cudaStreamSynchronize(stream);
  if (stream) cudaStreamDestroy(stream);
  return result_of(error, "ncclDevCommCreate");
}

int barriers_of(const ncclDevCommRequirements& wanted) { return std::max(wanted.lsaBarrierCount, wanted.barrierCount); }

// The barriers come first, then the buffers in the order of the list.
ncclResult_t create_dev_comms(std::vector<Part>& parts) {
  const size_t ranks = parts.size();
  const int barriers = barriers_of(parts[0].wanted);
  size_t most = 0;
  for (size_t r = 0; r < ranks; ++r) {
    if (barriers_of(parts[r].wanted) != barriers)
      return refuse(ncclInvalidUsage, "ncclDevCommCreate: rank 0 asks for " + std::to_string(barriers) +
                                          " barriers, and rank " + std::to_string(r) + " for " +
                                          std::to_string(barriers_of(parts[r].wanted)));
    size_t unit = units(barrier_bytes(barriers, ranks));
    for (const auto* one = parts[r].wanted.resourceRequirementsList; one; one = one->next) {
      const size_t alignment = std::max<size_t>(units(one->bufferAlign), 1);
      unit = (unit + alignment - 1) / alignment * alignment;
      if (one->outBufferHandle) *one->outBufferHandle = static_cast<ncclDevResourceHandle>(unit);
      unit += units(one->bufferSize);
    }
    most = std::max(most, unit);
  }
  ncclWindow_vidmem window{};
  window.ranks = static_cast<int>(ranks);
  window.size = std::max<size_t>(most, 1) * kResourceUnit;
  std::vector<void*> memory(ranks);
  for (size_t r = 0; r < ranks; ++r) {
    if (const ncclResult_t wrong = zeroed(parts[r].comm->device, window.size, &memory[r])) return wrong;
    window.base[r] = static_cast<char*>(memory[r]);
  }
  for (size_t r = 0; r < ranks; ++r) {
    const int rank = window.lsaRank = static_cast<int>(r);
    ncclDevComm made{rank, static_cast<int>(ranks), rank, static_cast<int>(ranks), nullptr, window, {}, {0, barriers}};
    if (const ncclResult_t wrong = make_window(window, parts[r].comm, memory[r], &made.resourceWindow)) return wrong;
    *parts[r].made = made;
  }
  return ncclSuccess;
}

ncclResult_t meet(ncclComm* comm, const char* function, const Part& part, Meeting::Act act) {
  Call call;
  call.meeting = [clique = comm->clique, rank = comm->rank, function, act] {
    return next_meeting(clique, rank, function, act);
  };
  call.function = function;
  call.rank = comm->rank;
  call.part = part;
  call.part.comm = comm;
  return spoil_group(add(std::move(call)));
}

}  // namespace

void forget_windows(const ncclComm* comm) {
  std::vector<ncclWindow_t> of_comm;
  {
    std::lock_guard<std::recursive_mutex> lock(api_mutex());
    for (const auto& [window, what] : windows())
      if (what.comm == comm) of_comm.push_back(window);
  }
  for (const ncclWindow_t window : of_comm) destroy_window(window);
}

}  // namespace simt::nccl

using namespace simt::nccl;

extern "C" {

ncclResult_t ncclMemAlloc(void** pointer, size_t size) {
  if (const ncclResult_t wrong = check_pointer(pointer, "ptr", "ncclMemAlloc")) return wrong;
  const cudaError_t error = simt::api([&] {
    const cudaError_t unsafe = simt::check_unsafe_call();
    if (unsafe != cudaSuccess) return unsafe;
    return simt::allocate(pointer, std::max<size_t>(size, 1), simt::MemoryKind::device, "ncclMemAlloc", 0, true);
  });
  return result_of(error, "ncclMemAlloc");
}

ncclResult_t ncclMemFree(void* pointer) { return result_of(cudaFree(pointer), "ncclMemFree"); }

ncclResult_t ncclCommRegister(const ncclComm_t comm, void* buffer, size_t size, void** handle) {
  const char* name = "ncclCommRegister";
  if (const ncclResult_t wrong = check(comm, name)) return wrong;
  if (const ncclResult_t wrong = check_pointer(buffer, "buff", name)) return wrong;
  if (const ncclResult_t wrong = check_pointer(handle, "handle", name)) return wrong;
  if (size == 0) return refuse(ncclInvalidArgument, std::string(name) + ": the size is 0");
  *handle = buffer;  // a copy needs no registration here
  comm->registered.insert(buffer);
  return ncclSuccess;
}

ncclResult_t ncclCommDeregister(const ncclComm_t comm, void* handle) {
  if (const ncclResult_t wrong = check(comm, "ncclCommDeregister")) return wrong;
  return comm->registered.erase(handle) ? ncclSuccess
                                        : refuse(ncclInvalidArgument, "ncclCommDeregister: there is no such handle");
}

ncclResult_t ncclCommWindowRegister(ncclComm_t comm, void* buffer, size_t size, ncclWindow_t* window, int) {
  const char* name = "ncclCommWindowRegister";
  ncclResult_t wrong = check(comm, name);
  if (!wrong) wrong = check_pointer(window, "win", name);
  if (wrong) return spoil_group(wrong);
  *window = nullptr;
  if (!buffer || !size) return ncclSuccess;
  Part part;
  part.buffer = buffer;
  part.size = size;
  part.window = window;
  return meet(comm, name, part, register_windows);
}

ncclResult_t ncclCommWindowDeregister(ncclComm_t comm, ncclWindow_t window) {
  if (const ncclResult_t wrong = check(comm, "ncclCommWindowDeregister")) return wrong;
  return window ? destroy_window(window) : ncclSuccess;
}

ncclResult_t ncclCommQueryProperties(ncclComm_t comm, ncclCommProperties_t* properties) {
  if (const ncclResult_t wrong = check(comm, "ncclCommQueryProperties")) return wrong;
  if (const ncclResult_t wrong = check_pointer(properties, "props", "ncclCommQueryProperties")) return wrong;
  *properties = {comm->rank, comm->ranks, comm->device, comm->device, true, false, NCCL_GIN_TYPE_NONE, 1};
  return ncclSuccess;
}

ncclResult_t ncclDevCommCreate(ncclComm_t comm, const ncclDevCommRequirements* wanted, ncclDevComm* made) {
  const char* name = "ncclDevCommCreate";
  ncclResult_t wrong = check(comm, name);
  if (!wrong) wrong = check_pointer(wanted, "reqs", name);
  if (!wrong) wrong = check_pointer(made, "outDevComm", name);
  if (!wrong) wrong = check_wanted(*wanted);
  if (wrong) return spoil_group(wrong);
  Part part;
  part.wanted = *wanted;
  part.made = made;
  return meet(comm, name, part, create_dev_comms);
}

ncclResult_t ncclDevCommDestroy(ncclComm_t comm, const ncclDevComm* made) {
  if (const ncclResult_t wrong = check(comm, "ncclDevCommDestroy")) return wrong;
  if (const ncclResult_t wrong = check_pointer(made, "devComm", "ncclDevCommDestroy")) return wrong;
  return destroy_window(made->resourceWindow);
}

ncclResult_t ncclLsaBarrierCreateRequirement(ncclTeam team, int barriers, ncclLsaBarrierHandle* handle,
                                             ncclDevResourceRequirements* requirement) {
  *handle = {0, barriers};
  *requirement = {};
  requirement->bufferSize = barrier_bytes(barriers, static_cast<size_t>(team.nRanks));
  requirement->bufferAlign = alignof(uint32_t);
  requirement->outBufferHandle = &handle->bufHandle;
  return ncclSuccess;
}

static ncclTeam team_of(const ncclComm* comm, const char* function, bool is_rail) {
  if (check(comm, function)) return {};
  return is_rail ? ncclTeam{1, 0, comm->ranks} : ncclTeam{comm->ranks, comm->rank, 1};
}
ncclTeam ncclTeamWorld(ncclComm_t comm) { return team_of(comm, "ncclTeamWorld", false); }
ncclTeam ncclTeamLsa(ncclComm_t comm) { return team_of(comm, "ncclTeamLsa", false); }
ncclTeam ncclTeamRail(ncclComm_t comm) { return team_of(comm, "ncclTeamRail", true); }
int ncclTeamRankToWorld(ncclComm_t comm, ncclTeam team, int rank) {
  return comm->rank + (rank - team.rank) * team.stride;
}
int ncclTeamRankToLsa(ncclComm_t comm, ncclTeam team, int rank) { return ncclTeamRankToWorld(comm, team, rank); }

SIMT_SECOND_NAME(ncclMemAlloc);
SIMT_SECOND_NAME(ncclMemFree);
SIMT_SECOND_NAME(ncclCommRegister);
SIMT_SECOND_NAME(ncclCommDeregister);
SIMT_SECOND_NAME(ncclCommWindowRegister);
SIMT_SECOND_NAME(ncclCommWindowDeregister);

}  // extern "C"
