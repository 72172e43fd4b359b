#include "common/csv_file.h"

#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "common/errors.h"
#include "common/text.h"

namespace ladder {

CsvFile::CsvFile(const std::string& path, const char* option) : option_(option) {
  if (path.empty()) return;
  namespace fs = std::filesystem;
  const auto refuse = [&](const std::string& why) {
    throw UsageError(option_ + " " + path + ": " + why + "; name a file in a directory that can be written");
  };
  std::error_code error;
  fs::path target = fs::weakly_canonical(path, error);  // a link's target is replaced, not the link
  if (error) refuse(error.message());
  if (fs::exists(target, error) && !fs::is_regular_file(target, error)) refuse("exists and is not a file");
  path_ = target.string();
  partial_ = path_ + text(".%d.partial", static_cast<int>(getpid()));
  std::FILE* file = std::fopen(partial_.c_str(), "w");
  if (!file) refuse(std::strerror(errno));
  std::fclose(file);
  unlink(partial_.c_str());
}

void CsvFile::write(const std::string& content) const {
  if (path_.empty()) return;
  sigset_t all, before;  // a Ctrl-C from here to the end of the function must not leave a partial file
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &before);
  std::FILE* file = std::fopen(partial_.c_str(), "w");
  bool written = file && std::fwrite(content.data(), 1, content.size(), file) == content.size();
  if (file) written &= std::fclose(file) == 0;
  written = written && std::rename(partial_.c_str(), path_.c_str()) == 0;
  const std::string why = std::strerror(errno);
  if (!written) unlink(partial_.c_str());
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (!written) throw std::runtime_error(option_ + " " + path_ + ": could not be written: " + why);
}

}  // namespace ladder
