#include "worker_pool.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <system_error>
#include <thread>

#include "devices.h"
#include "environment.h"
#include "fault.h"
#include "scheduler.h"

namespace simt {

namespace {

constexpr uint64_t kInlineThreads = 1024;  // launches of fewer threads run on the calling thread alone

// Worker 0 is the launching thread; the others wait for work. Launches come one at a time, under api_mutex().
class Pool {
 public:
  Pool() {
    const unsigned count = kAnalysis ? 1 : workers_asked();  // the observers see one event at a time
    workers_.push_back(new Worker);
    const WithoutInterrupts without;
    try {
      while (workers_.size() < count) {
        auto* own = new Worker;
        std::thread([this, own] { serve(*own); }).detach();
        workers_.push_back(own);
      }
    } catch (const std::system_error&) {  // no more threads: those that there are do the work
    }
  }

  void run(Launch& launch) {
    const bool alone = workers_.size() == 1 || launch.gangs == 1 ||
                       launch.gangs * launch.blocks_per_gang * launch.threads < kInlineThreads;
    if (!alone) {
      std::lock_guard<std::mutex> lock(mutex_);
      launch_ = &launch;
      busy_ = workers_.size() - 1;
      ++generation_;
      work_.notify_all();
    }
    workers_[0]->run(launch);
    if (alone) return;
    std::unique_lock<std::mutex> lock(mutex_);
    done_.wait(lock, [this] { return busy_ == 0; });
  }

  const std::vector<Worker*>& workers() const { return workers_; }

 private:
  [[noreturn]] void serve(Worker& own) {
    uint64_t served = 0;
    for (;;) {
      std::unique_lock<std::mutex> lock(mutex_);
      work_.wait(lock, [&] { return generation_ != served; });
      served = generation_;
      Launch& launch = *launch_;
      lock.unlock();
      own.run(launch);
      lock.lock();
      if (--busy_ == 0) done_.notify_one();
    }
  }

  std::vector<Worker*> workers_;
  std::mutex mutex_;
  std::condition_variable work_, done_;
  Launch* launch_ = nullptr;
  uint64_t generation_ = 0;
  size_t busy_ = 0;
};

// Never destroyed: its threads outlive main. A process that was forked has none of them, and gets a pool of its own.
Pool& pool() {
  static std::atomic<Pool*> known{nullptr};
  static const int forgotten_after_fork = pthread_atfork(nullptr, nullptr, [] { known = nullptr; });
  static_cast<void>(forgotten_after_fork);
  static std::mutex mutex;
  if (known == nullptr) {
    const std::lock_guard<std::mutex> lock(mutex);
    if (known == nullptr) known = new Pool;
  }
  return *known;
}

}  // namespace

// With several devices: each thread that runs operations has a worker, and each launch has one.
namespace {
std::mutex own_workers_mutex;
std::vector<Worker*>& own_workers() {
  static auto* workers = new std::vector<Worker*>;
  return *workers;
}
Worker& own_worker() {
  static thread_local Worker* own = nullptr;
  if (own) return *own;
  std::lock_guard<std::mutex> lock(own_workers_mutex);
  own_workers().push_back(own = new Worker);
  return *own;
}
}  // namespace

void run_on_workers(Launch& launch) {
  if (launch.takes_turns)
    own_worker().run(launch);
  else
    pool().run(launch);
}

std::vector<Worker*> all_workers() {
  if (!several_devices()) return pool().workers();
  std::lock_guard<std::mutex> lock(own_workers_mutex);
  return own_workers();
}

uint64_t oldest_running_block() {
  uint64_t oldest = ~static_cast<uint64_t>(0);
  for (const Worker* w : pool().workers()) oldest = std::min<uint64_t>(oldest, w->oldest);
  return oldest;
}

}  // namespace simt
