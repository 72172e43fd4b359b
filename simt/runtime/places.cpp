#include "places.h"

#include <backtrace.h>
#include <dlfcn.h>

#include <climits>
#include <cstdlib>
#include <cstring>
#include <initializer_list>

namespace simt {

namespace {

// Where there is no debug information, nothing is known, which is no error.
void ignore(void*, const char*, int) {}

backtrace_state* debug_information() {
  constexpr int kThreaded = 1;
  static backtrace_state* const state = backtrace_create_state(nullptr, kThreaded, ignore, nullptr);
  return state;
}

bool starts_with(const char* text, const char* start) { return std::strncmp(text, start, std::strlen(start)) == 0; }

bool is_in(std::initializer_list<const char*> folders, const std::string& path) {
  for (const char* folder : folders)
    if (path.find(folder) != std::string::npos) return true;
  return false;
}

bool is_students_file(const std::string& path) {
  for (const char* start : {"/usr/include/", "/usr/lib/"})
    if (starts_with(path.c_str(), start)) return false;
  return !is_in({"/simt/include/", "/simt/runtime/", "/simt/analysis/", "/simt/extras/", "/include/c++/"}, path);
}

// Debug information of the C library may be installed, and names files that are not there.
bool in_system_library(uintptr_t code) {
  Dl_info object;
  if (!dladdr(reinterpret_cast<void*>(code), &object) || !object.dli_fname) return false;
  for (const char* start : {"/lib", "/usr/lib", "linux-"})
    if (starts_with(object.dli_fname, start)) return true;
  return false;
}

// A mangled name in a scope of the device's or of C++'s headers: g++ does not always name their file rightly.
bool is_headers_function(const std::string& mangled) {
  const char* name = mangled.c_str();
  if (*name++ != '_' || *name != 'Z') return false;
  name += std::strspn(name, "Z");
  if (*name == 'N') ++name;
  name += std::strspn(name, "KVrRO");
  for (const char* scope :
       {"4simt", "4cuda", "18cooperative_groups", "3cub", "6nvcuda", "St", "Sa", "Sb", "Ss", "9__gnu_cxx"})
    if (starts_with(name, scope)) return true;
  return false;
}

}  // namespace

std::vector<Frame> frames_of(uintptr_t pc) {
  std::vector<Frame> frames;
  const auto add = [](void* frames, uintptr_t, const char* file, int line, const char* function) {
    static_cast<std::vector<Frame>*>(frames)->push_back({function ? function : "", file ? file : "", line});
    return 0;
  };
  if (debug_information()) backtrace_pcinfo(debug_information(), pc, add, ignore, &frames);
  return frames;
}

Place students_place(uintptr_t pc) {
  if (in_system_library(pc)) return {};
  for (const Frame& frame : frames_of(pc)) {
    if (frame.file.empty() || frame.line == 0 || is_headers_function(frame.function)) continue;
    std::string path = real_path(frame.file);
    if (is_students_file(path)) return {std::move(path), frame.line};
  }
  return {};
}

std::string real_path(const std::string& path) {
  char real[PATH_MAX];
  return realpath(path.c_str(), real) ? real : path;
}

CodeRange program_function_at(uintptr_t code) {
  if (in_system_library(code)) return {};
  const std::vector<Frame> frames = frames_of(code);
  if (frames.empty() || frames.back().file.empty() ||
      is_in({"/simt/runtime/", "/simt/extras/runtime/"}, frames.back().file))
    return {};
  CodeRange range;
  const auto keep = [](void* range, uintptr_t, const char*, uintptr_t begin, uintptr_t size) {
    *static_cast<CodeRange*>(range) = {begin, begin + size};
  };
  backtrace_syminfo(debug_information(), code, keep, ignore, &range);
  return range;
}

bool stands_in_headers(uintptr_t code) {
  const std::vector<Frame> frames = frames_of(code);
  return !frames.empty() && is_in({"/simt/include/", "/simt/extras/include/"}, real_path(frames.back().file));
}

std::string symbol_of(uintptr_t code) {
  std::string symbol;
  const auto keep = [](void* symbol, uintptr_t, const char* name, uintptr_t, uintptr_t) {
    if (name) *static_cast<std::string*>(symbol) = name;
  };
  if (debug_information()) backtrace_syminfo(debug_information(), code, keep, ignore, &symbol);
  return symbol;
}

}  // namespace simt
