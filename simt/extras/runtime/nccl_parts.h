// What NCCL's functions share. The ranks of a communicator are one process's, so they share one object: what they do
// together on the host is a meeting, and what they do on their streams is a step. The last rank to come does the work
// for all of them.
#pragma once
#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "nccl.h"
#include "nccl_device.h"
#include "queues.h"
#include "state.h"

// Of a function of C.
#define SIMT_SECOND_NAME(name) decltype(name) p##name __attribute__((alias(#name)))

namespace simt::nccl {

ncclResult_t refuse(ncclResult_t result, const std::string& sentence);  // says it, and keeps it for ncclGetLastError
ncclResult_t result_of(cudaError_t error, const char* function);
std::string list_of(const std::vector<int>& ranks);  // "rank 1", "ranks 1 and 3"

class OnDevice {  // the current device, for a scope
 public:
  explicit OnDevice(int device) : before_(current_device()) { set_current_device(device); }
  ~OnDevice() { set_current_device(before_); }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;

 private:
  int before_;
};

// --- Reductions (nccl_reduce.cpp)
// ---------------------------------------------------------------------------------------
size_t size_of(ncclDataType_t type);  // 0 if there is no such type
const char* name_of(ncclDataType_t type);

struct Reduction {
  ncclRedOp_t op = ncclSum;  // or ncclNumOps: a sum of products with a scalar
  ncclDataType_t type = ncclInt8;
  ncclScalarResidence_t residence = ncclScalarHostImmediate;
  void* scalar_place = nullptr;
  unsigned char scalar[8] = {};
};
// results[i] = source 0's element i, op source 1's, and so on. Each source has its own scalar, if the op has one.
void reduce(const std::vector<Reduction>& reductions, const std::vector<const char*>& sources, size_t count,
            char* results);

// --- What streams do (nccl_collectives.cpp)
// -----------------------------------------------------------------------------
enum class Kind { all_reduce, reduce, reduce_scatter, broadcast, all_gather, all_to_all, gather, scatter };

struct Work {  // of one rank
  Kind kind;
  const char* name;
  const char* send;
  char* receive;
  size_t count;
  ncclDataType_t type;
  int root = 0;
  Reduction reduction;
};

struct Transfer {
  bool sends;
  char* buffer;
  size_t count;
  ncclDataType_t type;
  int peer;
  bool is_done = false;
  Past past;  // of the sender
};

struct Plan {  // of one rank in one group: all of it is in progress together
  std::vector<Work> works;
  std::vector<Transfer> transfers;
};

struct Step {
  std::vector<std::optional<Work>> of;  // each rank
  std::shared_ptr<std::vector<Past>> pasts = std::make_shared<std::vector<Past>>();
  size_t came = 0;
  bool is_done = false;
};

// --- Ranks
// ------------------------------------------------------------------------------------------------------------
struct Part {  // what a rank brings to a meeting
  ncclComm* comm = nullptr;
  int device = 0;
  int color = 0, key = 0;
  void* buffer = nullptr;
  size_t size = 0;
  ncclWindow_t* window = nullptr;
  ncclDevCommRequirements wanted{};
  ncclDevComm* made = nullptr;
};

class Meeting {
 public:
  using Act = std::function<ncclResult_t(std::vector<Part>& parts)>;
  Meeting(std::string name, size_t ranks, Act act)
      : name_(std::move(name)), act_(std::move(act)), parts_(ranks), has_come_(ranks) {}

  void come(const std::string& name, int rank, Part part);
  ncclResult_t wait();    // for the result
  ncclResult_t result();  // ncclInProgress while ranks are missing

 private:
  const std::string name_;
  const Act act_;
  std::mutex mutex_;
  std::condition_variable all_came_;
  std::vector<Part> parts_;
  std::vector<bool> has_come_;
  size_t came_ = 0;
  ncclResult_t result_ = ncclInProgress;
  std::string sentence_;  // about a failure
};
using MeetingPtr = std::shared_ptr<Meeting>;

struct Clique {
  explicit Clique(std::vector<int> devices)
      : devices(std::move(devices)),
        meetings_of(ranks()),
        stopped(ranks()),
        errors(ranks(), ncclSuccess),
        steps_of(ranks()) {}
  size_t ranks() const { return devices.size(); }

  const std::vector<int> devices;

  std::mutex mutex;  // guards these three
  std::map<uint64_t, MeetingPtr> meetings;
  std::map<std::vector<int>, MeetingPtr> shrinks;  // by the ranks that are left
  std::vector<uint64_t> meetings_of;               // how many each rank has come to

  std::deque<std::atomic<bool>> stopped;  // by ncclCommAbort

  // What operations use: one at a time runs.
  std::vector<ncclResult_t> errors;
  std::map<uint64_t, Step> steps;
  std::vector<uint64_t> steps_of;
  std::map<std::pair<int, int>, std::deque<std::pair<std::shared_ptr<Plan>, size_t>>> sends, receives;  // from, to
};
using CliquePtr = std::shared_ptr<Clique>;

cudaError_t enqueue_plan(const CliquePtr& clique, int rank, Plan plan, cudaStream_t stream);

}  // namespace simt::nccl

struct ncclComm {
  simt::nccl::CliquePtr clique;  // null until all ranks have come
  int rank = 0, ranks = 0, device = 0;
  bool blocks = true, is_finalized = false, is_revoked = false;
  simt::nccl::MeetingPtr begun;  // of a communicator that does not block
  std::map<int, simt::nccl::Reduction> own_ops;
  std::set<void*> registered;
};

namespace simt::nccl {

// Whether there is such a communicator, which is ready for use.
ncclResult_t check(const ncclComm* comm, const char* function);
ncclResult_t check_pointer(const void* pointer, const char* name, const char* function);
const char* last_sentence();
void set_last_sentence(const std::string& sentence);
MeetingPtr next_meeting(const CliquePtr& clique, int rank, const char* function, const Meeting::Act& act);
void forget_windows(const ncclComm* comm);  // when it is destroyed (nccl_windows.cpp)

// --- Groups (nccl_group.cpp)
// ------------------------------------------------------------------------------------------ Each of these is done at
// once outside a group, and in one when it ends.
struct Call {  // to a meeting
  std::function<MeetingPtr()> meeting;
  const char* function;
  int rank;
  Part part;
  ncclComm_t* made = nullptr;  // of which part.comm is the new communicator
  bool blocks = true;
};
ncclResult_t add(Call call);
ncclResult_t add(ncclComm* comm, const Work& work, cudaStream_t stream);
ncclResult_t add(ncclComm* comm, const Transfer& transfer, cudaStream_t stream);
ncclResult_t spoil_group(ncclResult_t result);  // a call in it was refused; returns the result

}  // namespace simt::nccl
