// Groups: what a thread asks for between ncclGroupStart and ncclGroupEnd is done when the group ends.
#include <algorithm>
#include <chrono>

#include "environment.h"
#include "nccl_parts.h"

namespace simt::nccl {

namespace {

struct Planned {
  ncclComm* comm;
  Plan plan;
  std::vector<cudaStream_t> streams;
};

struct Group {
  int depth = 0;
  ncclResult_t error = ncclSuccess;
  std::vector<Call> calls;
  std::vector<Planned> planned;
};
thread_local Group group;

ncclResult_t hold(const std::vector<Call>& calls) {
  std::vector<MeetingPtr> meetings;
  for (const Call& call : calls) {
    meetings.push_back(call.meeting());
    if (call.part.comm && call.made) call.part.comm->begun = meetings.back();
    meetings.back()->come(call.function, call.rank, call.part);
  }
  ncclResult_t result = ncclSuccess;
  for (size_t i = 0; i < calls.size(); ++i) {
    const ncclResult_t one = calls[i].blocks ? meetings[i]->wait() : meetings[i]->result();
    if (one == ncclInProgress && result == ncclSuccess) result = one;
    if (one == ncclSuccess || one == ncclInProgress) continue;
    if (calls[i].made) *calls[i].made = nullptr;
    result = one;
  }
  return result;
}

// The streams that a communicator got in one group wait for each other before and after its plan.
ncclResult_t wait_for_each(const std::vector<cudaStream_t>& before, const std::vector<cudaStream_t>& after) {
  for (const cudaStream_t first : before) {
    cudaEvent_t event;
    cudaError_t error = cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
    if (error == cudaSuccess) error = cudaEventRecord(event, first);
    for (const cudaStream_t then : after)
      if (error == cudaSuccess && then != first) error = cudaStreamWaitEvent(then, event, 0);
    if (error == cudaSuccess) error = cudaEventDestroy(event);
    if (error != cudaSuccess) return result_of(error, "ncclGroupEnd");
  }
  return ncclSuccess;
}

ncclResult_t check_transfers_to_self(const Planned& p) {
  int balance = 0;
  for (const Transfer& t : p.plan.transfers)
    if (t.peer == p.comm->rank) balance += t.sends ? 1 : -1;
  if (balance == 0) return ncclSuccess;
  const std::string own = balance > 0 ? "ncclSend" : "ncclRecv", other = balance > 0 ? "ncclRecv" : "ncclSend";
  return refuse(ncclInvalidUsage, own + " of rank " + std::to_string(p.comm->rank) + " to itself needs its " + other +
                                      " in the same group");
}

ncclResult_t submit(const std::vector<Planned>& all) {
  for (const Planned& p : all)
    if (const ncclResult_t wrong = check_transfers_to_self(p)) return wrong;
  for (const Planned& p : all) {
    const OnDevice here(p.comm->device);
    const std::vector<cudaStream_t> first{p.streams[0]};
    if (p.streams.size() > 1)
      if (const ncclResult_t wrong = wait_for_each(p.streams, first)) return wrong;
    if (const cudaError_t error = enqueue_plan(p.comm->clique, p.comm->rank, p.plan, p.streams[0]))
      return result_of(error, p.plan.works.empty() ? "ncclSend or ncclRecv" : p.plan.works[0].name);
    if (p.streams.size() > 1)
      if (const ncclResult_t wrong = wait_for_each(first, p.streams)) return wrong;
  }
  return ncclSuccess;
}

ncclResult_t end_group() {
  Group ended;
  std::swap(ended, group);
  if (ended.error != ncclSuccess) {
    for (const Call& call : ended.calls)
      if (call.made) *call.made = nullptr;
    return ended.error;
  }
  const ncclResult_t result = hold(ended.calls);
  return result == ncclSuccess || result == ncclInProgress ? std::max(result, submit(ended.planned)) : result;
}

struct OwnGroup {  // a call outside any group is one of its own
  OwnGroup() { ++group.depth; }
  ncclResult_t end() { return --group.depth ? ncclSuccess : end_group(); }
};

ncclResult_t planned(ncclComm* comm, const char* function, cudaStream_t stream, Plan*& plan) {
  {
    const OnDevice here(comm->device);
    std::lock_guard<std::recursive_mutex> lock(api_mutex());
    const int device = device_of(stream);
    if (device != comm->device)
      return refuse(ncclUnhandledCudaError,
                    std::string(function) + ": the stream " +
                        (device < 0 ? "does not exist" : "belongs to device " + std::to_string(device)) +
                        ", and the rank's device is " + std::to_string(comm->device));
  }
  auto& all = group.planned;
  auto found = std::find_if(all.begin(), all.end(), [&](const Planned& p) { return p.comm == comm; });
  if (found == all.end()) found = all.insert(all.end(), Planned{comm, {}, {}});
  if (std::find(found->streams.begin(), found->streams.end(), stream) == found->streams.end())
    found->streams.push_back(stream);
  plan = &found->plan;
  return ncclSuccess;
}

}  // namespace

ncclResult_t spoil_group(ncclResult_t result) {
  if (group.depth && group.error == ncclSuccess) group.error = result;
  return result;
}

ncclResult_t add(Call call) {
  OwnGroup own;
  group.calls.push_back(std::move(call));
  return own.end();
}

ncclResult_t add(ncclComm* comm, const Work& work, cudaStream_t stream) {
  OwnGroup own;
  Plan* plan = nullptr;
  if (const ncclResult_t wrong = planned(comm, work.name, stream, plan)) {
    spoil_group(wrong);
    own.end();
    return wrong;
  }
  plan->works.push_back(work);
  return own.end();
}

ncclResult_t add(ncclComm* comm, const Transfer& transfer, cudaStream_t stream) {
  OwnGroup own;
  Plan* plan = nullptr;
  if (const ncclResult_t wrong = planned(comm, transfer.sends ? "ncclSend" : "ncclRecv", stream, plan)) {
    spoil_group(wrong);
    own.end();
    return wrong;
  }
  plan->transfers.push_back(transfer);
  return own.end();
}

// --- Meetings
// ------------------------------------------------------------------------------------------------------------

void Meeting::come(const std::string& name, int rank, Part part) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (result_ != ncclInProgress) return;
  const auto at = static_cast<size_t>(rank);
  if (name != name_)
    sentence_ = "rank " + std::to_string(rank) + " calls " + name + " where another rank calls " + name_;
  else if (has_come_[at])
    sentence_ = name + ": there are two ranks " + std::to_string(rank);
  if (!sentence_.empty()) {
    result_ = refuse(ncclInvalidUsage, sentence_);
  } else {
    has_come_[at] = true;
    parts_[at] = part;
    if (++came_ < parts_.size()) return all_came_.notify_all();
    result_ = act_(parts_);
    if (result_ != ncclSuccess) sentence_ = last_sentence();
  }
  all_came_.notify_all();
}

ncclResult_t Meeting::result() {
  std::lock_guard<std::mutex> lock(mutex_);
  if (!sentence_.empty()) set_last_sentence(sentence_);
  return result_;
}

ncclResult_t Meeting::wait() {
  using Clock = std::chrono::steady_clock;
  std::unique_lock<std::mutex> lock(mutex_);
  size_t came = came_;
  uint64_t ended = operations_ended();
  auto moved = Clock::now();
  while (result_ == ncclInProgress) {
    all_came_.wait_for(lock, std::chrono::milliseconds(50));
    if (came != came_ || ended != operations_ended()) moved = Clock::now();
    came = came_;
    ended = operations_ended();
    if (result_ != ncclInProgress || Clock::now() - moved < std::chrono::duration<double>(timeout_seconds())) continue;
    std::vector<int> missing;
    for (size_t r = 0; r < has_come_.size(); ++r)
      if (!has_come_[r]) missing.push_back(static_cast<int>(r));
    sentence_ = name_ + " waits for " + list_of(missing) +
                "; a thread that calls it for several ranks does so between ncclGroupStart() and ncclGroupEnd()";
    result_ = refuse(ncclSystemError, sentence_);
    all_came_.notify_all();
  }
  if (!sentence_.empty()) set_last_sentence(sentence_);
  return result_;
}

MeetingPtr next_meeting(const CliquePtr& clique, int rank, const char* function, const Meeting::Act& act) {
  std::lock_guard<std::mutex> lock(clique->mutex);
  const uint64_t number = clique->meetings_of[static_cast<size_t>(rank)]++;
  const auto slowest = *std::min_element(clique->meetings_of.begin(), clique->meetings_of.end());
  const MeetingPtr meeting =
      clique->meetings.try_emplace(number, std::make_shared<Meeting>(function, clique->ranks(), act)).first->second;
  clique->meetings.erase(clique->meetings.begin(), clique->meetings.lower_bound(slowest));  // all ranks have these
  return meeting;
}

}  // namespace simt::nccl

using namespace simt::nccl;

extern "C" {

ncclResult_t ncclGroupStart() {
  ++group.depth;
  return ncclSuccess;
}

ncclResult_t ncclGroupEnd() {
  if (group.depth == 0) return refuse(ncclInvalidUsage, "ncclGroupEnd: there was no ncclGroupStart");
  return --group.depth ? ncclSuccess : end_group();
}

ncclResult_t ncclGroupSimulateEnd(ncclSimInfo_t*) {
  group = {};
  return refuse(ncclInvalidUsage, "ncclGroupSimulateEnd: the CPU device does not tell how long a group would take");
}

SIMT_SECOND_NAME(ncclGroupStart);
SIMT_SECOND_NAME(ncclGroupEnd);
SIMT_SECOND_NAME(ncclGroupSimulateEnd);

}  // extern "C"
