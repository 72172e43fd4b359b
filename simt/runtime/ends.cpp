// How a kernel ends that goes wrong.
#include <map>

#include "scheduler_parts.h"

namespace simt {

void Worker::fail(cudaError_t error, const std::string& sentence, Site site) {
  in_kernel = false;
  if (!launch->failed.exchange(true)) {
    std::lock_guard<std::mutex> lock(launch->mutex);
    launch->error = error;
    launch->message = place(*this, site) + ": " + sentence;
#ifdef SIMT_ANALYSIS
    tell_fault(error, sentence, site);
#endif
  }
  leave_kernel(true);
}

void Worker::deadlock() {
  // Where the live lanes wait, and how many there are at each place.
  std::map<std::pair<std::string, std::string>, unsigned> waiting;
  uint64_t exited = 0;
  bool exited_could_arrive = false;  // at a barrier where SIMT_EXITED=arrive counts them
  const Lane* blocked = nullptr;
  [[maybe_unused]] const Lane* waits_elsewhere = nullptr;
  for (uint32_t i = 0; i < warp_count_; ++i) {
    const Warp& warp = warps_[i];
    exited += static_cast<unsigned>(__builtin_popcount(warp.exited));
    exited_could_arrive = exited_could_arrive || warp.at_barrier || warp.at_wide[kCluster];
    for (const Lane& l : warp.lanes) {
      if (!((warp.present & ~warp.exited) >> l.number & 1)) continue;
      ++waiting[{l.waits_for, at_line(l.site)}];
      if (!blocked) blocked = &l;
      if (!same_line(blocked->site, l.site)) waits_elsewhere = &l;
    }
  }
  std::string sentence = "deadlock:";
  const char* separator = " ";
  for (const auto& [what, lanes] : waiting) {
    sentence += separator + std::to_string(lanes) + (lanes == 1 ? " thread waits at " : " threads wait at ") +
                what.first + " (" + what.second + ")";
    separator = ", ";
  }
  if (exited) {
    sentence += separator + std::to_string(exited) + (exited == 1 ? " has exited" : " have exited");
    if (exited_could_arrive && !launch->exited_threads_arrive)
      sentence += " (SIMT_EXITED=arrive counts exited threads as arrived, as GPUs since Volta do)";
  }
  for (uint32_t i = 0; i < warp_count_; ++i)
    for (unsigned n = 0; n < warps_[i].rendezvous_count; ++n) {
      const Rendezvous& r = warps_[i].rendezvous[n];
      const std::string masks = "; the mask of " + std::string(r.what->name) + " (" + at_line(r.site) + ") names " +
                                std::to_string(__builtin_popcount(r.mask)) + " lanes of the warp, and " +
                                std::to_string(__builtin_popcount(r.arrived)) + " of them are there";
      if (sentence.find(masks) == std::string::npos) sentence += masks;
    }
  lane = const_cast<Lane*>(blocked);
  const Warp& warp = *blocked->warp;
  if ((warp.at_barrier | warp.at_wide[kCluster] | warp.at_wide[kGrid]) >> blocked->number & 1)
    SIMT_FAULT(barrier, waits_elsewhere);
  else
    SIMT_FAULT(mask, waits_elsewhere);
  fail(cudaErrorLaunchFailure, sentence, blocked->site);
}

void device_fault(int cuda_error, const char* sentence, Site site) {
  current("a device fault").fail(cudaError_t(cuda_error), sentence, site);
}

}  // namespace simt
