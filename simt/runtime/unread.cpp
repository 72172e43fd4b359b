#include "unread.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <utility>

#include "simt/launch.h"
#include "state.h"

namespace simt {

namespace {

constexpr size_t kMostSaid = 10;

struct Unread {
  std::thread::id thread;
  std::string sentence;
};

std::vector<Unread>& unread() {
  static auto* all = new std::vector<Unread>;
  return *all;
}

std::vector<std::string>& said() {
  static auto* all = new std::vector<std::string>;
  return *all;
}

std::string& explanation() {
  static thread_local std::string* text = new std::string;  // outlives what frees memory when a thread ends
  return *text;
}

std::string& allocation() {
  static auto* text = new std::string;
  return *text;
}

bool was_said(const std::string& sentence) { return std::find(said().begin(), said().end(), sentence) != said().end(); }

bool ending = false;
void say_at_exit(int, void*) {
  std::lock_guard<std::recursive_mutex> lock(api_mutex());
  ending = true;
  lose_all();
}

}  // namespace

void say(const std::string& sentence) {
  if (was_said(sentence) || said().size() >= kMostSaid) return;
  std::fflush(stdout);
  std::fprintf(stderr, "simt: %s\n", sentence.c_str());
  add_said(sentence);
}

void explain(std::string why) { explanation() = std::move(why); }
void forget_explanation() { explanation().clear(); }

void note_unread(const std::string& what, const char* file, int line, cudaError_t error, const char* advice) {
  static const int at_exit = on_exit(say_at_exit, nullptr);
  static_cast<void>(at_exit);
  const std::string place = std::string(file) + ":" + std::to_string(line);
  const std::string& why = explanation();
  const std::string sentence = place + ": " + what + ": " + (why.empty() ? cudaGetErrorString(error) : why) + " (" +
                               cudaGetErrorName(error) + "); the program did not ask for this error: " + advice;
  if (error == cudaErrorMemoryAllocation) allocation() = "the allocation at " + place + " had failed (out of memory)";
  if (ending)
    say(sentence);
  else
    unread().push_back({std::this_thread::get_id(), sentence});
}

void was_read() {
  auto& all = unread();
  const auto mine = [](const Unread& one) { return one.thread == std::this_thread::get_id(); };
  all.erase(std::remove_if(all.begin(), all.end(), mine), all.end());
}

void lose() {
  for (const Unread& one : unread())
    if (one.thread == std::this_thread::get_id()) say(one.sentence);
  was_read();
}

void lose_all() {
  for (const Unread& one : unread()) say(one.sentence);
  unread().clear();
}

std::string failed_allocation() { return allocation(); }

void add_said(const std::string& sentence) { said().push_back(sentence); }
const std::vector<std::string>& all_said() { return said(); }

void start(const LaunchConfig& config, const BoundKernel* kernel) {
  std::lock_guard<std::recursive_mutex> lock(api_mutex());
  forget_explanation();
  const cudaError_t error = launch_kernel(config, kernel);
  if (error == cudaSuccess || sticky() != cudaSuccess) return;
  note_unread("the kernel " + std::string(config.kernel) + " was not launched", config.file, config.line, error,
              "call cudaGetLastError() after each launch");
}

void note_discarded(const char* function, const char* file, int line, cudaError_t error) {
  std::lock_guard<std::recursive_mutex> lock(api_mutex());
  if (error == cudaErrorNotReady || error == cudaErrorNotSupported) return;  // no error, or said by not_supported()
  if (sticky() != cudaSuccess || last_error_of_thread() != error) return;
  note_unread(std::string(function) + " failed", file, line, error, "check the code that each call returns");
}

}  // namespace simt
