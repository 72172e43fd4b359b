// One call of the header on buffers that stand between guards, and the check of all that it did.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "common/cuda_check.h"
#include "common/device_buffer.h"
#include "tests/header/combination.h"

namespace header_test {

constexpr int64_t kContiguous = INT64_MIN;  // as a stride: cols

// Where a tensor's rows lie: its layout, and how many elements its first row begins past a 256-byte boundary.
struct Place {
  Layout layout{kContiguous};
  int offset = 0;
};

// Device memory with its image on the host. Whatever is no row holds a pattern that is NaN.
class Rows {
 public:
  Rows(Type type, const Place& place, int64_t rows, int64_t cols);

  void* device() const { return device_.get() + first_ * size_of(type); }
  int64_t place_of(int64_t row) const;  // of its first element, in elements from the begin of the image
  const void* at(const std::vector<char>& image, int64_t row) const { return image.data() + bytes_to(row); }

  void fill(uint64_t seed, bool zero_rows);  // with what ordinary rows hold
  void set(int64_t row, int64_t col, float value);
  void poison();  // the rows become a pattern that is NaN too, but another one
  bool is_poison(int64_t row, int64_t col) const;

  void upload() const;                     // the image `before`
  void download();                         // the image `now`
  std::string outside(bool output) const;  // where `now` is not `before`, the rows of an output left aside

  const Type type;
  const Layout layout;
  const int64_t rows, cols;
  std::vector<char> before, now;

 private:
  size_t bytes_to(int64_t row) const { return place_of(row) * size_of(type); }
  std::unique_ptr<char, ladder::CudaDeleter<cudaFree>> device_;
  int64_t first_;
};

// Zeroed device memory for Options::workspace, between guards. It must outlive the calls.
class Workspace {
 public:
  Workspace();
  void* data() const;
  bool is_overrun();

 private:
  ladder::DeviceBuffer buffer_;
};

enum class Is { apart, x, residual };  // what an output is the same memory as

struct Problem {
  int64_t rows = 1, cols = 1;
  bool weight = true;
  Options options = {};
  Place x = {}, residual = {}, residual_out = {}, y = {};
  int weight_offset = 0;  // elements past a 256-byte boundary
  Is residual_out_is = Is::apart, y_is = Is::apart;
  bool zero_rows = true;  // some rows hold nothing but zeros
  uint64_t seed = 1;
};

class Trial {
 public:
  Trial(const Combination& combination, const Problem& problem);

  // The whole of it: what was wrong in one sentence, or nothing.
  std::string run(cudaStream_t stream = nullptr);

  // Its parts. reset() writes inputs and poison; check() waits, and compares everything with the oracle.
  void reset();
  cudaError_t launch(cudaStream_t stream = nullptr) const { return combination_.run(call_, stream); }
  std::string check();
  bool untouched();  // nothing at all has been written
  const Call& call() const { return call_; }

  std::string name() const;
  std::string in_words(cudaError_t error) const;

  std::shared_ptr<Rows> x, residual, residual_out, y, weight;  // the same where outputs lie in inputs
  void connect();                                              // after a change of these

 private:
  std::string check_row(int64_t row, std::vector<char>& kept, int64_t& wrong) const;
  std::vector<std::shared_ptr<Rows>> all() const;

  const Combination& combination_;
  Problem problem_;
  Call call_;
};

}  // namespace header_test
