#include "dump.h"

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <map>

#include "counters.h"
#include "devices.h"
#include "fault.h"
#include "hooks.h"
#include "in_flight.h"
#include "json.h"
#include "places.h"
#include "recorder.h"
#include "symbols.h"
#include "unread.h"
#include "written.h"

namespace simt::analysis {

namespace {

std::string last_error;  // the sentence of the error that ended the last kernel

class Faults : public Observer {
  void launch_begins(const LaunchInfo&) override { last_error.clear(); }
  void faulted(const Fault& fault) override { last_error = fault.sentence; }
};

// Kernels from files of an ordinary build do not say what they write.
class Unobserved : public Observer {
  void launch_begins(const LaunchInfo&) override { hooks_ran = false; }
  void launch_ends() override {
    if (!hooks_ran) forget_unwritten();
  }
};

std::string list(dim3 d) {
  return "[" + std::to_string(d.x) + "," + std::to_string(d.y) + "," + std::to_string(d.z) + "]";
}

// Members are written one after the other; text is quoted, numbers are not.
class Members {
 public:
  Members& operator()(const char* name, const std::string& json) {
    text_ += text_.empty() ? "{" : ",";
    text_ += quoted(name) + ":" + json;
    return *this;
  }
  Members& operator()(const char* name, uint64_t number) { return (*this)(name, std::to_string(number)); }
  Members& more(const std::string& members) {
    text_ += (text_.empty() ? "{" : ",") + members;
    return *this;
  }
  Members& flag(const char* name, bool value) { return (*this)(name, value ? "true" : "false"); }
  std::string str() const { return text_ + "}"; }

 private:
  std::string text_;
};

template <class Range, class Json>
std::string array(const Range& range, Json json) {
  std::string text = "[";
  for (const auto& element : range) text += (text.size() > 1 ? ",\n" : "\n") + json(element);
  return text + "]";
}

const char* name_of_kind(Kind kind) { return kind == Kind::load ? "load" : kind == Kind::store ? "store" : "atomic"; }

const char* name_of_operation(Operation operation) {
  switch (operation) {
    case Operation::block_barrier:
      return "block_barrier";
    case Operation::warp_sync:
      return "warp_sync";
    case Operation::shuffle:
      return "shuffle";
    case Operation::vote:
      return "vote";
    case Operation::warp_reduce:
      return "warp_reduce";
    case Operation::cluster_arrive:
      return "cluster_arrive";
    case Operation::cluster_wait:
      return "cluster_wait";
    case Operation::grid_barrier:
      return "grid_barrier";
    case Operation::fence:
      return "fence";
    case Operation::texture_read:
      return "texture_read";
    case Operation::other:
      return "other";
  }
  return "other";
}

std::string worst_json(const WorstRequest& worst, bool is_global) {
  std::string addresses;
  for (unsigned lane = 0; lane < 32; ++lane)
    if (worst.mask >> lane & 1)
      addresses += (addresses.empty() ? "[" : ",[") + std::to_string(lane) + "," +
                   std::to_string(static_cast<int64_t>(worst.address[lane] - worst.begin)) + "]";
  return Members()("block", list(worst.block))("warp", worst.warp)("mask", worst.mask)(
             "addresses", "[" + addresses + "]")("base", quoted(worst.base))(is_global ? "sectors" : "wavefronts",
                                                                             worst.cost)
      .str();
}

std::string site_json(const Site& site) {
  const Request& like = site.like;
  const bool is_global = like.space == Space::global;
  Members members;
  members.more(place_json(like.pc))("space", quoted(is_global ? "global" : "shared"))(
      "kind", quoted(name_of_kind(like.kind)))("size", like.size);
  members.flag("volatile", like.is_volatile).flag("async", like.is_async);
  members("requests", site.requests)("lanes", site.lanes)("bytes", site.bytes);
  if (is_global)
    members("sectors", site.units)("ideal_sectors", site.ideal);
  else
    members("wavefronts", site.units)("ideal_wavefronts", site.ideal)("conflicts", site.units - site.ideal);
  if (several_devices()) members("read_from_peers", site.read_from_peers)("written_to_peers", site.written_to_peers);
  return members("worst", worst_json(site.worst, is_global)).str();
}

std::string kernel_json(const Kernel& k) {
  const LaunchInfo& launch = k.launch;
  const uint64_t threads = static_cast<uint64_t>(launch.block.x) * launch.block.y * launch.block.z;
  const std::string global =
      Members()("load_bytes", k.load_bytes)("store_bytes", k.store_bytes)("distinct_load_bytes", k.distinct_load_bytes)(
          "distinct_store_bytes", k.distinct_store_bytes)("distinct_atomic_bytes", k.distinct_atomic_bytes)(
          "busiest_thread_bytes", k.busiest_thread_bytes)
          .str();
  Members members;
  members("name", quoted(launch.kernel))("launches", k.launches)("grid", list(launch.grid))("block",
                                                                                            list(launch.block));
  members("cluster", list(launch.cluster))("dynamic_shared", launch.dynamic_shared)("static_shared", k.static_shared);
  members("threads", k.blocks * threads)("warps", k.blocks * ((threads + 31) / 32))("global", global);
  members("sites", array(k.sites, [](const auto& entry) { return site_json(entry.second); }));
  members("operations", array(k.operations, [](const auto& entry) {
            return Members()
                .more(place_json(entry.first.first))("operation", quoted(name_of_operation(entry.first.second)))(
                    "calls", entry.second.calls)("lanes", entry.second.lanes)
                .str();
          }));
  members(
      "blocks_run", array(k.blocks_run, [](const auto& entry) {
        return Members().more(place_json(entry.first))("times", entry.second.times)("lanes", entry.second.lanes).str();
      }));
  return members.str();
}

void write_dump() {
  const char* path = std::getenv("SIMT_ANALYSIS");
  static std::atomic<bool> written_before{false};
  if (!path || !*path || written_before.exchange(true)) return;
  lose_all();
  say_unflushed();
  char program[4096];
  const ssize_t length = readlink("/proc/self/exe", program, sizeof program);
  std::vector<const Kernel*> observed;  // not those of files from an ordinary build
  for (const Kernel* k : counters().kernels())
    if (!k->blocks_run.empty()) observed.push_back(k);
  const std::string text =
      Members()("version", 1)("program", quoted(std::string(program, length > 0 ? static_cast<size_t>(length) : 0)))(
          "kernels", array(observed, [](const Kernel* k) { return kernel_json(*k); }))("hazards", hazards_json())(
          "unread", array(all_said(), [](const std::string& sentence) { return quoted(sentence); }))(
          "error", last_error.empty() ? "null" : quoted(last_error))
          .str() +
      "\n";
  FILE* file = std::fopen(path, "w");
  const bool written = file && std::fwrite(text.data(), 1, text.size(), file) == text.size();
  if ((file && std::fclose(file) != 0) || !written)
    std::fprintf(stderr, "simt: cannot write the analysis to %s\n", path);
}

}  // namespace

std::string place_json(const std::string& file, int line) {
  return "\"file\":" + (file.empty() ? "null" : quoted(real_path(file))) + ",\"line\":" + std::to_string(line);
}

std::string place_json(Pc pc) {
  static std::map<Pc, std::string> known;
  std::string& json = known[pc];
  if (json.empty()) {
    const Place place = students_place(pc - 1);
    json = place_json(place.file, place.line);
  }
  return json;
}

// Where the race detector is not linked.
__attribute__((weak)) std::string hazards_json() { return "[]"; }
Observer& hazards() __attribute__((weak));

namespace {

// When a signal ends the program. It may have come while memory was being allocated: then writing hangs.
void write_before_death() {
  constexpr unsigned kPatience = 20;  // seconds
  is_telling = true;
  std::signal(SIGALRM, [](int) { _exit(128 + SIGABRT); });
  alarm(kPatience);
  write_dump();
  alarm(0);
}

void die(int signal) {
  write_before_death();
  std::signal(signal, SIG_DFL);
  raise(signal);
}

thread_local std::atomic<bool> is_launching{false};  // also while its kernel runs, which the same thread does

// abort() and uncaught exceptions end in SIGABRT; what interrupts a kernel is acted upon between its steps, unless it
// comes twice.
void survive_until_written() {
  before_death = write_before_death;
  use_fault_stack();
  install_fault_handlers();
  std::at_quick_exit(write_dump);
  struct sigaction action = {};
  action.sa_flags = SA_ONSTACK;
  action.sa_handler = die;
  sigaction(SIGABRT, &action, nullptr);
  action.sa_handler = [](int signal) {
    if (is_launching && !interrupted)
      interrupted = signal;
    else
      die(signal);
  };
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction present;
    if (sigaction(signal, nullptr, &present) == 0 && present.sa_handler == SIG_DFL) sigaction(signal, &action, nullptr);
  }
}

std::vector<Observer*>& list_of_observers() {
  static auto* list = [] {
    auto* all = new std::vector<Observer*>{&counters(), new Faults, new Unobserved};
    if (&hazards) all->push_back(&hazards());
    return all;
  }();
  return *list;
}

// When the program starts: the symbols are read on the program's own stack, and the results are written even if no
// kernel runs.
[[maybe_unused]] const bool started = [] {
  list_of_observers();
  tracks_writes = true;
  owner_of(0);
  if (const char* path = std::getenv("SIMT_ANALYSIS"); path && *path) survive_until_written();
  return std::atexit(write_dump) == 0;
}();

}  // namespace

std::atomic<int> interrupted{0};
void end_if_interrupted() {
  if (const int signal = interrupted) die(signal);
}

Launching::Launching() { is_launching = true; }
Launching::~Launching() {
  is_launching = false;
  end_if_interrupted();
}

const std::vector<Observer*>& observers() { return list_of_observers(); }
void add_observer(Observer* observer) { list_of_observers().push_back(observer); }

}  // namespace simt::analysis
