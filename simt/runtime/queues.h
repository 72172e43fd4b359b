// Several devices: what the host submits waits in queues, and many kernels and copies are in progress at once. They
// take turns on threads of their own: one runs, until it has ended, waits, or polls something that does not change. So
// results do not depend on the machine's timing, and only the memory that the running one may use is open.
//
// Which of them goes next is decided by the order of the devices (SIMT_ORDER). Nothing begins before the host waits for
// something, or has submitted nothing for a moment: then all that it has submitted is there.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "devices.h"
#include "state.h"

namespace simt {

struct Task;
using TaskPtr = std::shared_ptr<Task>;
using Tasks = std::vector<TaskPtr>;

// What must have happened before what: the number of the newest operation of each stream that precedes. Kept as sorted
// pairs, since there are few streams.
class Past {
 public:
  void add(uint64_t stream, uint64_t number);
  void add(const Past& other);
  bool holds(uint64_t stream, uint64_t number) const;

 private:
  std::vector<std::pair<uint64_t, uint64_t>> newest_;
};

struct Submission {
  Operation operation;
  cudaGraphNodeType type = cudaGraphNodeTypeEmpty;
  int device = 0;
  uint64_t stream = 0;                 // its number
  bool blocking = false;               // the legacy stream of its device waits for it
  DeviceSet comes_after_blocking = 0;  // of these devices
  Tasks before;                        // nulls are allowed
  TaskPtr launch_before;               // the operation directly before it, which a dependent launch may overlap
};
TaskPtr submit(Submission submission);
bool has_ended(const TaskPtr& task);
// On a host thread that does not hold api_mutex().
void wait_for(const Tasks& tasks);
void wait_for_devices(DeviceSet devices, bool only_blocking = false);
bool have_ended(DeviceSet devices);  // what blocks the legacy streams
void start_submitted();              // the host asks whether something has ended

// In an operation.
// Returns when is_ready() says so; meanwhile other operations have their turns. `what` says what it waits for. The
// error is that of another operation, or of a wait without end.
cudaError_t wait_until(const std::function<bool()>& is_ready, const std::function<std::string()>& what);
void open_all_devices();                // their memory, for the rest of the operation
bool let_others_have_turns();           // false where no other operation can run
void name_operation(std::string name);  // for in_progress()
void follow(const Tasks& tasks);        // the operation has waited for these
void follow(const Past& past);
const Past& past_of_operation();
uint64_t stream_of_operation();
uint64_t number_of_operation();
void stop_others();  // all that is in progress ends: a kernel has failed
bool is_stopped_by_another();

// For the watchdog.
uint64_t operations_ended();
std::string in_progress();  // "kernel a on device 0; nothing is submitted to device 1"
bool is_waiting();          // an operation in wait_until() has the turn
void give_up_waiting();     // such operations end

}  // namespace simt
