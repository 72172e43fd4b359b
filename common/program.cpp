#include "common/program.h"

#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>

#include "common/cuda_check.h"
#include "common/device.h"
#include "common/errors.h"
#include "common/text.h"

namespace ladder {
namespace {

// There is nothing to clean up: a CSV is written at the very end, and in one piece.
void on_signal(int signal_number) {
  constexpr char message[] = "interrupted before the end, nothing was written\n";
  const ssize_t ignored = write(STDERR_FILENO, message, sizeof message - 1);
  static_cast<void>(ignored);
  _exit(128 + signal_number);
}

void handle_signals() {
  struct sigaction action = {};
  action.sa_handler = on_signal;
  for (const int signal_number : {SIGINT, SIGTERM, SIGHUP}) sigaction(signal_number, &action, nullptr);
}

}  // namespace

int guarded(const char* program, const std::function<int()>& body) {
  const char* slash = std::strrchr(program, '/');
  const auto complain = [&](const char* what) {
    std::fflush(stdout);
    std::fprintf(stderr, "%s: %s\n", slash ? slash + 1 : program, what);
  };
  handle_signals();
  try {
    const int code = body();
    if (std::fflush(stdout) != 0 || std::ferror(stdout))
      throw std::runtime_error("standard output: could not be written");
    return code;
  } catch (const HelpAsked& help) {
    std::printf("%s", help.what());
    return 0;
  } catch (const UsageError& error) {
    complain(error.what());
    return 2;
  } catch (const std::bad_alloc&) {
    complain("out of host memory; ask for smaller inputs");
    return 1;
  } catch (const std::exception& error) {
    complain(error.what());
    return 1;
  }
}

void require_device(int wanted) {
  if (wanted > 1 && built_for_cpu_device()) setenv("SIMT_DEVICES", std::to_string(wanted).c_str(), 0);
  int devices = 0;
  const cudaError_t error = cudaGetDeviceCount(&devices);
  if (error != cudaSuccess || devices == 0)
    throw std::runtime_error(text("no CUDA device: %s; build with BACKEND=cpu to run on the CPU device",
                                  error != cudaSuccess ? cudaGetErrorString(error) : "none is visible"));
}

}  // namespace ladder
