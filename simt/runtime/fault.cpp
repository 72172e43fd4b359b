// Turns signals raised by device code into CUDA errors with a sentence, and stops kernels that hang.
#include <cxxabi.h>
#include <errno.h>
#include <execinfo.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include "environment.h"
#include "fault.h"
#include "memory.h"
#include "places.h"
#include "progress.h"
#include "queues.h"
#include "scheduler.h"
#include "unread.h"
#include "worker_pool.h"

namespace simt {

void (*before_death)() = nullptr;

namespace {

std::string what_hangs;  // of all devices, as it was found
std::mutex what_hangs_mutex;

void say_what_hangs(std::string text) {
  std::lock_guard<std::mutex> lock(what_hangs_mutex);
  what_hangs = std::move(text);
}

}  // namespace

std::string timeout_sentence(const Lane& lane) {
  char what[160] =
      "spins on something that no resident thread will change, or one thread computes for longer than "
      "SIMT_TIMEOUT seconds";
  if (lane.describe) lane.describe(lane.polled_object, what, sizeof what);
  std::string sentence = std::string("the kernel makes no progress: it ") + what;
  const Launch& launch = *worker->launch;
  if (!launch.takes_turns) return sentence;
  std::lock_guard<std::mutex> lock(what_hangs_mutex);
  sentence += " (" + what_hangs + ")";
  if (launch.gangs > 1)
    sentence += "; of its " + std::to_string(launch.blocks) + " blocks " + std::to_string(launch.blocks_per_gang) +
                " are on the device at once, and a kernel whose blocks wait for each other or for a peer must be there "
                "whole";
  return sentence;
}

namespace {

constexpr int kFaultSignals[kSignals] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP};
constexpr int kWatchdogSignal = SIGUSR2;

uintptr_t program_counter(const void* context) {
  const auto& registers = static_cast<const ucontext_t*>(context)->uc_mcontext;
#if defined(__x86_64__)
  return static_cast<uintptr_t>(registers.gregs[REG_RIP]);
#elif defined(__aarch64__)
  return static_cast<uintptr_t>(registers.pc);
#else
#error "the CPU device runs on x86-64 and 64-bit Arm"
#endif
}

std::string to_string(uint3 index) {
  return "(" + std::to_string(index.x) + "," + std::to_string(index.y) + "," + std::to_string(index.z) + ")";
}

// The innermost line of the student's code among the calls that led to an instruction. Empty if it is not known.
Place innermost_place(uintptr_t pc) {
  void* frames[32];
  const int count = backtrace(frames, 32);
  Place place = students_place(pc);
  const auto here = std::find(frames, frames + count, reinterpret_cast<void*>(pc));
  for (auto frame = here; place.file.empty() && frame < frames + count - 1;)  // a return address is after its call
    place = students_place(reinterpret_cast<uintptr_t>(*++frame) - 1);
  return place;
}

void on_fault(int signal, siginfo_t* info, void* context) {
  Worker* w = worker;
  const uintptr_t pc = program_counter(context);
  char address[32];
  std::snprintf(address, sizeof address, "0x%zx", reinterpret_cast<size_t>(info->si_addr));
  if (w && w->in_kernel && w->lane) {
    if (signal == SIGFPE) fail_at_line(*w, cudaErrorLaunchFailure, pc, "integer division by zero");
    if (signal == SIGILL || signal == SIGTRAP)  // x86-64's trap, and Arm's
      fail_at_line(*w, cudaErrorLaunchFailure, pc, "the kernel trapped");
    if (w->is_below_a_stack(info->si_addr))
      fail_at_line(*w, cudaErrorLaunchFailure, pc, "the thread's stack overflowed (256 KB on the CPU device)");
#if defined(__x86_64__)
    if (info->si_code == SI_KERNEL)
      fail_at_line(*w, cudaErrorMisalignedAddress, pc,
                   "misaligned address, or one that no memory can have: a vector access needs a multiple of its size");
#endif
    if (signal == SIGBUS)
      fail_at_line(*w, cudaErrorMisalignedAddress, pc, std::string("misaligned address ") + address);
    const std::string missing = missing_access(info->si_addr, w->launch->device);
    fail_at_line(*w, cudaErrorIllegalAddress, pc,
                 std::string("illegal memory access at ") + address +
                     (missing.empty() ? ", " + describe_address(info->si_addr) : ": " + missing));
  }
  if (signal == SIGSEGV && in_device_space(info->si_addr)) {
    const Place place = innermost_place(pc);
    const std::string line = place.file.empty() ? "" : place.file + ":" + std::to_string(place.line) + ": ";
    std::fprintf(stderr, "simt: %shost code accessed device memory at %s, %s; copy it with cudaMemcpy\n", line.c_str(),
                 address, describe_address(info->si_addr).c_str());
  }
  lose_all();
  if (before_death) before_death();
  ::signal(signal, SIG_DFL);  // returns to the faulting instruction, which now ends the process
}

// Functions of the program in which a worker may be stopped: it holds no lock there and is in no allocation. The
// watchdog adds to them, the signal's handler reads them.
constexpr unsigned kMostFunctions = 256;
CodeRange stoppable[kMostFunctions];
std::atomic<unsigned> stoppable_count{0};

bool may_be_stopped_at(uintptr_t pc) {
  const unsigned count = stoppable_count.load(std::memory_order_acquire);
  return std::any_of(stoppable, stoppable + count, [&](const CodeRange& f) { return pc >= f.begin && pc < f.end; });
}

void on_watchdog(int, siginfo_t*, void* context) {
  Worker* w = worker;
  if (!w || kAnalysis) return;  // in an analysis, the end of the step sees that the time is up
  const uintptr_t pc = program_counter(context);
  w->interrupted_at = pc;
  if (w->must_yield && w->in_kernel && w->lane && !w->combines && may_be_stopped_at(pc)) {
    const int saved = errno;
    w->yield();
    errno = saved;
    return;
  }
  if (w->timed_out && w->in_kernel && w->lane && (may_be_stopped_at(pc) || w->must_end_anywhere))
    fail_at_line(*w, cudaErrorLaunchTimeout, pc, timeout_sentence(*w->lane));
}

// Where the worker is, the handler reports, and this thread looks it up.
void interrupt(Worker& w, unsigned microseconds) {
  w.interrupted_at = 0;
  pthread_kill(pthread_t(w.thread), kWatchdogSignal);
  usleep(microseconds);
  const uintptr_t pc = w.interrupted_at;
  const unsigned count = stoppable_count;
  if (!pc || !w.in_kernel || may_be_stopped_at(pc) || count == kMostFunctions) return;
  const CodeRange function = program_function_at(pc);
  if (function.begin == function.end) return;
  stoppable[count] = function;
  stoppable_count.store(count + 1, std::memory_order_release);
}

// Ends a worker's kernel where it is safe: between two of the runtime's own calls, or in the program's code.
void end_kernel_of(Worker& w) {
  constexpr int kAttempts = 400;
  constexpr unsigned kPause = 5000;  // microseconds
  w.timed_out = true;
  for (int attempt = 0; attempt < kAttempts && w.in_kernel && w.timed_out; ++attempt) {
    if (kAnalysis) return;
    w.must_end_anywhere = attempt == kAttempts - 1;
    interrupt(w, kPause);
  }
  w.must_end_anywhere = false;
}

// Lets a lane that polls with plain volatile loads make room for others.
void make_yield(Worker& w) {
  constexpr int kAttempts = 3;
  constexpr unsigned kPause = 300;  // microseconds
  w.must_yield = true;
  for (int attempt = 0; attempt < kAttempts && w.in_kernel && w.has_turn && w.must_yield; ++attempt)
    interrupt(w, kPause);
  w.must_yield = false;
}

// A worker whose lanes neither exit nor meet for the timeout hangs; so does one where only barriers come and go for
// ten times as long.
void watch_one_device() {
  constexpr unsigned kPeriod = 100;  // milliseconds
  struct Seen {
    uint64_t steps = 0, exits = 0;
    double since_step = 0, since_exit = 0;
  };
  std::vector<Seen> seen;
  for (unsigned period = 0;; ++period) {
    usleep(kPeriod * 1000);
    if (period % 5 == 0) show_progress();
    const std::vector<Worker*> workers = all_workers();
    seen.resize(workers.size());
    for (size_t i = 0; i < workers.size(); ++i) {
      Worker& w = *workers[i];
      Seen& s = seen[i];
      const uint64_t steps = w.steps, exits = w.exits;
      const bool idle = !w.in_kernel;
      s.since_exit = idle || exits != s.exits ? 0 : s.since_exit + kPeriod / 1000.0;
      s.since_step = idle || exits != s.exits || steps != s.steps ? 0 : s.since_step + kPeriod / 1000.0;
      s.steps = steps;
      s.exits = exits;
      if (!idle && (s.since_step > timeout_seconds() || s.since_exit > 10 * timeout_seconds())) {
        s = {};
        end_kernel_of(w);
      }
    }
  }
}

// With several devices a kernel may wait for any other operation: it hangs where nothing at all goes on.
void watch_several_devices() {
  constexpr unsigned kPeriod = 2;  // milliseconds
  struct Seen {
    uint64_t progress = 0, turns = 0;
  };
  std::vector<Seen> seen;
  uint64_t last_ended = 0, last_exits = 0;
  double since_step = 0, since_exit = 0;
  for (unsigned period = 0;; ++period) {
    usleep(kPeriod * 1000);
    if (period % 250 == 0) show_progress();
    const std::vector<Worker*> workers = all_workers();
    seen.resize(workers.size());
    uint64_t exits = 0;
    const uint64_t ended = operations_ended();
    bool idle = !is_waiting(), steps = false;
    for (size_t i = 0; i < workers.size(); ++i) {
      Worker& w = *workers[i];
      Seen& s = seen[i];
      const uint64_t progress = w.steps + w.exits, turns = w.turns;
      exits += w.exits;
      idle = idle && !w.in_kernel;
      steps = steps || progress != s.progress;
      if (!kAnalysis && w.in_kernel && w.has_turn && progress == s.progress && turns == s.turns) make_yield(w);
      s = {progress, turns};
    }
    const bool exit = idle || exits != last_exits || ended != last_ended;
    last_exits = exits;
    last_ended = ended;
    since_exit = exit ? 0 : since_exit + kPeriod / 1000.0;
    since_step = exit || steps ? 0 : since_step + kPeriod / 1000.0;
    if (idle || (since_step <= timeout_seconds() && since_exit <= 10 * timeout_seconds())) continue;
    since_step = since_exit = 0;
    say_what_hangs(in_progress());
    give_up_waiting();
    for (Worker* w : workers) w->timed_out = w->in_kernel.load();
    for (Worker* w : workers)
      if (w->in_kernel && w->has_turn) end_kernel_of(*w);
  }
}

void watch() {
  if (several_devices())
    watch_several_devices();
  else
    watch_one_device();
}

void handle(int signal, void (*handler)(int, siginfo_t*, void*), int flags, struct sigaction* previous) {
  struct sigaction action = {};
  action.sa_sigaction = handler;
  action.sa_flags = SA_SIGINFO | SA_NODEFER | flags;  // the handler may leave by a jump
  sigaction(signal, &action, previous);
}

}  // namespace

void fail_at_line(Worker& w, cudaError_t error, uintptr_t pc, const std::string& sentence) {
  w.in_kernel = false;  // the watchdog must not come in between: libbacktrace cannot be entered twice
  const Place place = innermost_place(pc);
  w.fail(error, sentence, {place.file.empty() ? nullptr : place.file.c_str(), place.line});
}

static std::string function_name(const void* function) {
  const std::string symbol = function ? symbol_of(reinterpret_cast<uintptr_t>(function)) : "";
  int status;
  char* demangled = abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status);
  std::string name = demangled ? demangled : symbol;
  std::free(demangled);
  for (const std::string unnamed = "(anonymous namespace)::"; name.find(unnamed) != std::string::npos;)
    name.erase(name.find(unnamed), unnamed.size());
  return name.substr(0, name.find('('));
}

std::string kernel_name(const Launch& launch) {
  if (launch.kernel) return launch.kernel;
  const std::string name = function_name(launch.function);
  return name.empty() ? "(launched by its address)" : name;
}

std::string short_kernel_name(const Launch& launch) {
  const bool is_template = launch.kernel && std::strchr(launch.kernel, '<');  // <kVectors>, as it is written
  std::string name = launch.kernel && !is_template ? launch.kernel : function_name(launch.function);
  if (name.empty()) return kernel_name(launch);
  const size_t scope = name.find_last_of(": ", name.find('<'));
  return scope == std::string::npos ? name : name.substr(scope + 1);
}

std::string block_name(const Launch& launch, uint3 index) {
  const std::string device = launch.takes_turns ? " on device " + std::to_string(launch.device) : "";
  return "kernel " + kernel_name(launch) + device + ", block " + to_string(index);
}

std::string place(const Worker& w, Site site) {
  std::string text = block_name(*w.launch, w.block().index) + ", thread " + to_string(w.lane->thread);
  if (site.file) text += std::string(", ") + site.file + ":" + std::to_string(site.line);
  return text;
}

void install_fault_handlers() {
  for (const int signal : kFaultSignals) {
    struct sigaction present;
    if (sigaction(signal, nullptr, &present) == 0 && present.sa_handler == SIG_DFL)
      handle(signal, on_fault, SA_ONSTACK, nullptr);
  }
}

namespace {
std::mutex handlers_mutex;
unsigned in_place = 0;  // kernels in progress
struct sigaction previous[kSignals];
}  // namespace

FaultHandlers::FaultHandlers() {
  std::lock_guard<std::mutex> lock(handlers_mutex);
  if (in_place++ == 0)
    for (int i = 0; i < kSignals; ++i) handle(kFaultSignals[i], on_fault, SA_ONSTACK, &previous[i]);
  static std::atomic<bool> is_watched{false};
  static const int unwatched_after_fork = pthread_atfork(nullptr, nullptr, [] { is_watched = false; });
  static_cast<void>(unwatched_after_fork);
  if (is_watched.exchange(true)) return;
  handle(kWatchdogSignal, on_watchdog, 0, nullptr);
  pthread_t watchdog;
  const auto run = [](void*) -> void* {
    watch();
    return nullptr;
  };
  const WithoutInterrupts without;
  if (pthread_create(&watchdog, nullptr, run, nullptr) == 0) pthread_detach(watchdog);
}

WithoutInterrupts::WithoutInterrupts() {
  sigset_t interrupts;
  sigemptyset(&interrupts);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&interrupts, signal);
  pthread_sigmask(SIG_BLOCK, &interrupts, &before_);
}
WithoutInterrupts::~WithoutInterrupts() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

FaultHandlers::~FaultHandlers() {
  std::lock_guard<std::mutex> lock(handlers_mutex);
  if (--in_place) return;
  for (int i = 0; i < kSignals; ++i) sigaction(kFaultSignals[i], &previous[i], nullptr);
}

void use_fault_stack() {
  static thread_local bool has_stack = false;
  if (has_stack) return;
  constexpr size_t kSize = 256 * 1024;
  void* memory = mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return;
  stack_t stack = {};
  stack.ss_sp = memory;
  stack.ss_size = kSize;
  has_stack = sigaltstack(&stack, nullptr) == 0;
}

}  // namespace simt

// A failed assert inside a kernel is CUDA's device-side assert; elsewhere it is libc's.
extern "C" void __assert_fail(const char* assertion, const char* file, unsigned line, const char* function) noexcept {
  using namespace simt;
  Worker* w = worker;
  if (!w || !w->lane) {
    std::fprintf(stderr, "%s:%u: %s: Assertion `%s' failed.\n", file, line, function, assertion);
    std::abort();
  }
  w->fail(cudaErrorAssert, std::string("Assertion `") + assertion + "` failed", {file, static_cast<int>(line)});
}

// What g++ calls before an access to an address that is not a multiple of what its type asks for, with
// -fsanitize=alignment. On a GPU such an access is an error. Host code goes on, since x86 and Arm can read such
// addresses.
struct Access {
  const char* file;
  unsigned line, column;
  const void* type;
  unsigned char log2_of_alignment, kind;
};
extern "C" void __ubsan_handle_type_mismatch_v1(void* access, void* address) {
  using namespace simt;
  Worker* w = worker;
  if (!w || !w->in_kernel || !w->lane) return;
  char sentence[96];
  std::snprintf(sentence, sizeof sentence, "misaligned address 0x%zx: this access needs a multiple of %d bytes",
                reinterpret_cast<size_t>(address), 1 << static_cast<const Access*>(access)->log2_of_alignment);
  fail_at_line(*w, cudaErrorMisalignedAddress, reinterpret_cast<uintptr_t>(__builtin_return_address(0)) - 1, sentence);
}

// What g++ calls before a division by zero on Arm, whose processors do not trap (-fsanitize=integer-divide-by-zero).
extern "C" void __ubsan_handle_divrem_overflow(void*, void*, void*) {
  using namespace simt;
  Worker* w = worker;
  if (!w || !w->in_kernel || !w->lane) return;
  fail_at_line(*w, cudaErrorLaunchFailure, reinterpret_cast<uintptr_t>(__builtin_return_address(0)) - 1,
               "integer division by zero");
}
