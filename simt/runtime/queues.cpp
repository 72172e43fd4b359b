#include "queues.h"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <system_error>
#include <thread>

#include "device_variables.h"
#include "fault.h"
#include "memory.h"
#include "streams.h"

namespace simt {

struct Task : Submission {
  uint64_t number = 0;
  int turn = 0;  // of its device
  Past past;
  bool has_followed = false;  // others in its run, so that its past is longer than its successors know
  size_t open = 0;            // operations that it waits for
  Tasks after;                // that wait for it
  enum State { submitted, running, ended } state = submitted;
  bool may_begin = false;
  uint64_t launched = 0;
  DeviceSet reach = 0;  // whose memory is open while it runs
  const std::function<std::string()>* waits_for = nullptr;
  std::string name = "a copy or a host function";
  cudaError_t stopped = cudaSuccess;
  std::condition_variable its_turn;
};

namespace {

thread_local Task* own_task = nullptr;
Past& host_past() {                           // what this thread has waited for
  static thread_local auto* past = new Past;  // outlives what waits when the thread ends
  return *past;
}

using Key = std::pair<int, uint64_t>;
Key key_of(const Task& t) { return {t.turn, t.number}; }

struct Thread {
  TaskPtr task;
  std::condition_variable has_task;
};

constexpr auto kPause = std::chrono::milliseconds(10);  // without a submission: then what was submitted begins

class Queues {
 public:
  TaskPtr submit(Submission submission) {
    auto task = std::make_shared<Task>();
    static_cast<Submission&>(*task) = std::move(submission);
    task->turn = turn_of_device(task->device);
    std::lock_guard<std::mutex> lock(mutex_);
    if (!started_) start();
    task->number = ++submitted_;
    task->past = own_task ? own_task->past : host_past();
    for (const TaskPtr& before : task->before) {
      if (!before) continue;
      task->past.add(before->past);
      task->past.add(before->stream, before->number);
      if (before->state == Task::ended) continue;
      ++task->open;
      before->after.push_back(task);
    }
    task->before.clear();
    for (int device = 0; device < device_count(); ++device) {
      if (!(task->comes_after_blocking >> device & 1)) continue;
      task->past.add(blocking_[device]);
      for (const auto& [number, other] : unfinished_) {
        if (!other->blocking || other->device != device) continue;
        ++task->open;
        other->after.push_back(task);
      }
    }
    if (task->launch_before) {
      task->past.add(task->launch_before->past);
      task->past.add(task->launch_before->stream, task->launch_before->number);
    }
    if (own_task) task->may_begin = true;  // a graph is under way
    unfinished_.emplace(task->number, task);
    for (Past* all : {&all_[task->device], task->blocking ? &blocking_[task->device] : nullptr}) {
      if (!all) continue;
      all->add(task->past);
      all->add(task->stream, task->number);
    }
    latest_ = std::chrono::steady_clock::now();
    if (!task->may_begin) waiting_to_begin_.push_back(task);
    if (is_ready(*task)) ready_.emplace(key_of(*task), task);
    submitted_one_.notify_one();
    return task;
  }

  bool have_ended(DeviceSet devices) {
    std::lock_guard<std::mutex> lock(mutex_);
    return unfinished(devices, true).empty();
  }

  void wait_for_devices(DeviceSet devices, bool only_blocking) {
    std::unique_lock<std::mutex> lock(mutex_);
    begin_all();
    Past past;
    for (int device = 0; device < device_count(); ++device)
      if (devices >> device & 1) past.add(only_blocking ? blocking_[device] : all_[device]);
    for (const TaskPtr& task : unfinished(devices, only_blocking))
      one_ended_.wait(lock, [&] { return task->state == Task::ended; });
    host_past().add(past);
  }

  bool has_ended(const TaskPtr& task) {
    if (!task) return true;
    std::lock_guard<std::mutex> lock(mutex_);
    if (task->state == Task::ended) note(*task);
    return task->state == Task::ended;
  }

  void wait_for(const Tasks& tasks) {
    std::unique_lock<std::mutex> lock(mutex_);
    begin_all();
    for (const TaskPtr& task : tasks) {
      if (!task) continue;
      one_ended_.wait(lock, [&] { return task->state == Task::ended; });
      note(*task);
    }
  }

  void start_submitted() {
    std::lock_guard<std::mutex> lock(mutex_);
    begin_all();
  }

  bool let_others_have_turns() {
    Task& self = *own_task;
    std::unique_lock<std::mutex> lock(mutex_);
    const TaskPtr next = next_after(key_of(self));
    if (!next || next.get() == &self) return false;
    give_turn(next);
    self.its_turn.wait(lock, [&] { return holder_ == &self; });
    lock.unlock();
    take_turn(self);
    return true;
  }

  void follow(const Past& past) {
    std::lock_guard<std::mutex> lock(mutex_);
    own_task->past.add(past);
    own_task->has_followed = true;
  }

  void stop_others() {
    std::lock_guard<std::mutex> lock(mutex_);
    for (const auto& [number, task] : unfinished_)
      if (task.get() != own_task && task->state == Task::running) task->stopped = sticky();
  }

  uint64_t ended() const { return ended_; }
  bool is_waiting() {
    std::lock_guard<std::mutex> lock(mutex_);
    return std::any_of(ready_.begin(), ready_.end(), [](const auto& r) { return r.second->waits_for; });
  }
  void give_up_waiting() {
    std::lock_guard<std::mutex> lock(mutex_);
    for (const auto& [key, task] : ready_)
      if (task->waits_for) task->stopped = cudaErrorLaunchTimeout;
  }

  std::string in_progress() {
    std::lock_guard<std::mutex> lock(mutex_);
    std::string text;
    for (int device = 0; device < device_count(); ++device) {
      std::string of_device;
      size_t later = 0;
      for (const auto& [number, task] : unfinished_) {
        if (task->device != device) continue;
        if (task->state != Task::running) {
          ++later;
          continue;
        }
        const std::string what = task->waits_for ? (*task->waits_for)() : task->name;
        of_device += (of_device.empty() ? "" : " and ") + what;
      }
      text += (text.empty() ? "device " : "; device ") + std::to_string(device) + " ";
      if (of_device.empty())
        text += later ? "has work that waits for other work" : "has nothing to do";
      else
        text += "is in " + of_device;
    }
    return text;
  }

  void name_operation(std::string name) {
    std::lock_guard<std::mutex> lock(mutex_);
    own_task->name = std::move(name);
  }

 private:
  Tasks unfinished(DeviceSet devices, bool only_blocking) const {
    Tasks found;
    for (const auto& [number, task] : unfinished_)
      if (devices >> task->device & 1 && (task->blocking || !only_blocking)) found.push_back(task);
    return found;
  }
  static bool is_ready(const Task& t) { return t.may_begin && !t.open && t.state != Task::ended; }

  void pass_on_past(const Task& task) {
    for (const TaskPtr& next : task.after) {
      next->past.add(task.past);
      next->has_followed = true;
    }
    all_[task.device].add(task.past);
    if (task.blocking) blocking_[task.device].add(task.past);
  }

  static void note(const Task& task) {
    host_past().add(task.past);
    host_past().add(task.stream, task.number);
  }

  template <typename F>
  static void start_thread(F body) {
    const WithoutInterrupts without;
    try {
      std::thread(body).detach();
    } catch (const std::system_error& error) {
      std::fprintf(stderr, "simt: no thread for what several devices do at once (%s): raise ulimit -v or ulimit -u\n",
                   error.code().message().c_str());
      std::abort();
    }
  }

  void start() {
    started_ = true;
    start_thread([this] { begin_after_pauses(); });
    // What was submitted is done before the program ends, as with one device.
    std::atexit([] { simt::wait_for_devices(kAllDevices); });
  }

  [[noreturn]] void begin_after_pauses() {
    std::unique_lock<std::mutex> lock(mutex_);
    for (;;) {
      submitted_one_.wait(lock, [&] { return !waiting_to_begin_.empty(); });
      while (std::chrono::steady_clock::now() - latest_ < kPause) submitted_one_.wait_until(lock, latest_ + kPause);
      begin_all();
    }
  }

  void begin_all() {
    for (const TaskPtr& task : waiting_to_begin_) {
      task->may_begin = true;
      if (is_ready(*task)) ready_.emplace(key_of(*task), task);
    }
    waiting_to_begin_.clear();
    if (!holder_)
      if (const TaskPtr next = next_after({-1, 0})) give_turn(next);
  }

  TaskPtr next_after(Key key) const {
    auto next = ready_.upper_bound(key);
    if (next == ready_.end()) next = ready_.begin();
    return next == ready_.end() ? nullptr : next->second;
  }

  void give_turn(const TaskPtr& task) {
    holder_ = task.get();
    if (task->state == Task::running) {
      task->its_turn.notify_one();
      return;
    }
    task->state = Task::running;
    if (idle_.empty()) {
      auto* thread = new Thread;
      thread->task = task;
      start_thread([this, thread] { serve(*thread); });
    } else {
      Thread* thread = idle_.back();
      idle_.pop_back();
      thread->task = task;
      thread->has_task.notify_one();
    }
  }

  // The devices' memory is as the operation left it.
  static void take_turn(const Task& task) {
    set_current_device(task.device);
    put_variables_in_place(task.device);
    open_memory_of(task.reach);
  }

  [[noreturn]] void serve(Thread& own) {
    std::unique_lock<std::mutex> lock(mutex_);
    for (;;) {
      own.has_task.wait(lock, [&] { return own.task != nullptr; });
      const TaskPtr task = std::move(own.task);
      own.task = nullptr;
      lock.unlock();
      own_task = task.get();
      run(*task);
      own_task = nullptr;
      task->operation = nullptr;
      lock.lock();
      task->state = Task::ended;
      ++ended_;
      ready_.erase(key_of(*task));
      unfinished_.erase(task->number);
      if (task->has_followed) pass_on_past(*task);
      for (const TaskPtr& next : task->after)
        if (!--next->open && is_ready(*next)) ready_.emplace(key_of(*next), next);
      task->after.clear();
      task->launch_before = nullptr;
      idle_.push_back(&own);
      holder_ = nullptr;
      if (const TaskPtr next = next_after(key_of(*task)))
        give_turn(next);
      else
        open_memory_of(0);
      one_ended_.notify_all();
    }
  }

  void run(Task& task) {
    const bool is_kernel = task.type == cudaGraphNodeTypeKernel;
    {
      std::lock_guard<std::recursive_mutex> lock(api_mutex());
      if (is_stopped()) return;
      task.reach = is_kernel ? reach_of(task.device) : 0;
    }
    take_turn(task);
    const uint64_t before = task.launch_before ? task.launch_before->launched : 0;
    run_operation(task.operation, task.type, before, &task.launched);
    task.before.clear();
  }

  std::mutex mutex_;  // taken with api_mutex() held, and not the other way round
  std::condition_variable one_ended_, submitted_one_;
  std::map<uint64_t, TaskPtr> unfinished_;
  Past all_[kMostDevices], blocking_[kMostDevices];  // what was submitted to each device
  std::map<Key, TaskPtr> ready_;                     // can have a turn
  Tasks waiting_to_begin_;
  std::vector<Thread*> idle_;
  Task* holder_ = nullptr;
  uint64_t submitted_ = 0;
  std::atomic<uint64_t> ended_{0};
  std::chrono::steady_clock::time_point latest_;
  bool started_ = false;
};

// Never destroyed: its threads outlive main. A process that was forked has none of them, and gets queues of its own.
Queues& queues() {
  static std::atomic<Queues*> known{nullptr};
  static const int forgotten_after_fork = pthread_atfork(nullptr, nullptr, [] { known = nullptr; });
  static_cast<void>(forgotten_after_fork);
  static std::mutex mutex;
  if (known == nullptr) {
    const std::lock_guard<std::mutex> lock(mutex);
    if (known == nullptr) known = new Queues;
  }
  return *known;
}

}  // namespace

void Past::add(uint64_t stream, uint64_t number) {
  const auto at = std::lower_bound(newest_.begin(), newest_.end(), std::pair<uint64_t, uint64_t>(stream, 0));
  if (at == newest_.end() || at->first != stream)
    newest_.insert(at, {stream, number});
  else
    at->second = std::max(at->second, number);
}
void Past::add(const Past& other) {
  for (const auto& [stream, number] : other.newest_) add(stream, number);
}
bool Past::holds(uint64_t stream, uint64_t number) const {
  const auto at = std::lower_bound(newest_.begin(), newest_.end(), std::pair<uint64_t, uint64_t>(stream, 0));
  return at != newest_.end() && at->first == stream && number <= at->second;
}

TaskPtr submit(Submission submission) { return queues().submit(std::move(submission)); }
bool has_ended(const TaskPtr& task) { return queues().has_ended(task); }
void wait_for(const Tasks& tasks) { queues().wait_for(tasks); }
void wait_for_devices(DeviceSet devices, bool only_blocking) { queues().wait_for_devices(devices, only_blocking); }
bool have_ended(DeviceSet devices) { return queues().have_ended(devices); }
void start_submitted() { queues().start_submitted(); }

bool let_others_have_turns() { return own_task && queues().let_others_have_turns(); }
void stop_others() {
  if (own_task) queues().stop_others();
}
bool is_stopped_by_another() { return own_task && own_task->stopped != cudaSuccess; }
void name_operation(std::string name) {
  if (own_task) queues().name_operation(std::move(name));
}
void follow(const Tasks& tasks) {
  for (const TaskPtr& task : tasks) {
    own_task->past.add(task->past);
    own_task->past.add(task->stream, task->number);
  }
}
void follow(const Past& past) {
  if (own_task) queues().follow(past);
}
uint64_t stream_of_operation() { return own_task ? own_task->stream : 0; }
uint64_t number_of_operation() { return own_task ? own_task->number : 0; }
const Past& past_of_operation() {
  static const Past nothing;
  return own_task ? own_task->past : nothing;
}

cudaError_t wait_until(const std::function<bool()>& is_ready, const std::function<std::string()>& what) {
  constexpr unsigned kPauseAlone = 100;  // microseconds
  while (!is_ready()) {
    if (!own_task) {
      std::fprintf(stderr,
                   "simt: %s, and with one device nothing else can run; SIMT_DEVICES is the number of devices\n",
                   what().c_str());
      return cudaErrorLaunchTimeout;
    }
    own_task->waits_for = &what;
    if (!let_others_have_turns()) usleep(kPauseAlone);
    own_task->waits_for = nullptr;
    if (own_task->stopped == cudaErrorLaunchTimeout) {
      std::fprintf(stderr, "simt: cudaErrorLaunchTimeout: %s, without an end\n", what().c_str());
      set_sticky(cudaErrorLaunchTimeout);
    }
    if (own_task->stopped != cudaSuccess) return own_task->stopped;
  }
  return cudaSuccess;
}

void open_all_devices() {
  if (!own_task) return;
  own_task->reach = kAllDevices;
  open_memory_of(kAllDevices);
}

uint64_t operations_ended() { return queues().ended(); }
std::string in_progress() { return queues().in_progress(); }
bool is_waiting() { return queues().is_waiting(); }
void give_up_waiting() { queues().give_up_waiting(); }

}  // namespace simt
