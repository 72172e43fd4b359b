// What the tests of device code share: device arrays, and the message that a faulty kernel leaves.
#pragma once
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <vector>

template <class T>
struct Device {  // an array in device memory
  T* data = nullptr;
  size_t count;
  explicit Device(size_t count, int byte = 0) : count(count) {
    REQUIRE(cudaMalloc(&data, count * sizeof(T)) == cudaSuccess);
    REQUIRE(cudaMemset(data, byte, count * sizeof(T)) == cudaSuccess);
  }
  explicit Device(const std::vector<T>& from) : Device(from.size()) {
    REQUIRE(cudaMemcpy(data, from.data(), count * sizeof(T), cudaMemcpyHostToDevice) == cudaSuccess);
  }
  Device(const Device&) = delete;
  ~Device() { cudaFree(data); }
  std::vector<T> host() const {  // also says whether the kernels before it ended well
    std::vector<T> copy(count);
    REQUIRE(cudaMemcpy(copy.data(), data, count * sizeof(T), cudaMemcpyDeviceToHost) == cudaSuccess);
    return copy;
  }
};

// The text that `action` writes to stderr.
template <class Action>
std::string stderr_of(Action action) {
  char name[] = "/tmp/simt_test_XXXXXX";
  const int file = mkstemp(name);
  unlink(name);
  const int saved = dup(2);
  dup2(file, 2);
  action();
  dup2(saved, 2);
  close(saved);
  std::string text(size_t(lseek(file, 0, SEEK_END)), 0);
  CHECK(pread(file, text.data(), text.size(), 0) == ssize_t(text.size()));
  close(file);
  return text;
}

// A launch that must fail: its error code, with the device made usable again, and its message.
template <class Action>
std::string fault_of(cudaError_t expected, Action action) {
  return stderr_of([&] {
    action();
    CHECK(cudaDeviceSynchronize() == expected);
    CHECK(cudaDeviceReset() == cudaSuccess);
    CHECK(cudaGetLastError() == cudaSuccess);
  });
}

inline bool contains(const std::string& text, const std::string& part) {
  const bool found = text.find(part) != std::string::npos;
  if (!found) MESSAGE("\"" << text << "\" does not contain \"" << part << "\"");
  return found;
}

inline std::string at_line(const char* file, int line) {
  const std::string path = file;
  return path.substr(path.find_last_of('/') + 1) + ":" + std::to_string(line);
}

// An error that is the last one, once.
inline void fails(cudaError_t expected, cudaError_t error) {
  CHECK(cudaGetErrorName(error) == std::string(cudaGetErrorName(expected)));
  CHECK(cudaGetLastError() == expected);
  CHECK(cudaGetLastError() == cudaSuccess);
}

struct Environment {  // set for a scope, or unset for a nullptr
  const char* name;
  std::string old;
  bool had;
  Environment(const char* name, const char* value) : name(name), had(std::getenv(name) != nullptr) {
    if (had) old = std::getenv(name);
    value ? setenv(name, value, 1) : unsetenv(name);
  }
  ~Environment() { had ? setenv(name, old.c_str(), 1) : unsetenv(name); }
};

// For a scope, a thread that reads the environment faults. It may do so in any program whose main thread calls
// setenv(), which frees what getenv() reads.
struct UnreadableEnvironment {
  char** const before = environ;
  void* const page = mmap(nullptr, 1, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  UnreadableEnvironment() { environ = static_cast<char**>(page); }
  ~UnreadableEnvironment() {
    environ = before;
    munmap(page, 1);
  }
};
