// What a terminal shows of a launch that takes long: several samples look like a hang.
#pragma once

namespace simt {

struct Launch;

// For as long as a launch runs. The watchdog's thread calls show_progress() now and then.
class Progress {
 public:
  explicit Progress(const Launch& launch);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
};
void show_progress();

}  // namespace simt
