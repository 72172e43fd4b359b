// Tensors as an operator declares them, and on the device between guards.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "common/memory.h"
#include "common/types.h"

namespace ladder {

enum class Role {
  input,
  output,   // every element is determined; poisoned before each run
  pieces,   // zeros before each run; the oracle judges the contents as a whole (a sum in any number of parts)
  scratch,  // its contents afterwards are not checked
};

struct Tensor {
  const char* name;
  Type type;
  Role role;
  int64_t rows, cols;     // `rows` rows of `cols` elements side by side
  bool optional = false;  // may be left out: --no-<name>
  bool shared = false;    // one for all calls, like a weight: timing does not rotate it as it does the others
  bool is_matrix = true;  // its elements are named by row and column
  int device = 0;         // on which it lies; 0 is the current one
  int twin = -1;          // the tensor before it, of another device, whose bits it must have

  int64_t count() const { return rows * cols; }
  double bytes() const {
    return static_cast<double>(rows) * static_cast<double>(cols) * static_cast<double>(size_of(type));
  }
  bool is_read() const { return role == Role::input; }
  bool is_judged() const { return role == Role::output || role == Role::pieces; }
};

// n elements, each named by its number alone.
inline Tensor vector_tensor(const char* name, Type type, Role role, int64_t n) {
  Tensor tensor{name, type, role, 1, n};
  tensor.is_matrix = false;
  return tensor;
}

// Where rows begin, in elements. Row i begins at i / heads * stride + i % heads * head_stride.
constexpr int64_t kContiguous = INT64_MIN;  // as a stride: the columns
struct Layout {
  int64_t stride = kContiguous;
  int64_t heads = 1;
  int64_t head_stride = 0;

  int64_t begin(int64_t row) const { return row / heads * stride + row % heads * head_stride; }
};

struct Place {
  Layout layout = {};
  int offset = 0;       // elements by which row 0 begins past a 256-byte boundary
  int same_as = -1;     // the same memory as this tensor, by its place in the operator's list
  bool absent = false;  // left out: nullptr
};

// Device memory of one tensor. The memory around it and between its rows holds a guard pattern.
class DeviceTensor {
 public:
  DeviceTensor(const Tensor& tensor, const Place& place);

  void* data() const { return memory_.get() + first_ * size_; }  // row 0
  Type type() const { return type_; }
  const Layout& layout() const { return layout_; }

  // Elements in the order of the rows, without gaps: all of them, or `count` of them from element `first` on.
  void upload(const void* dense);
  void download(void* dense, int64_t first, int64_t count) const;
  void download(void* dense) const { download(dense, 0, rows_ * cols_); }
  bool holds(const void* dense, int64_t first, int64_t count) const;  // bit by bit
  bool holds(const void* dense) const { return holds(dense, 0, rows_ * cols_); }
  void poison() { fill_rows(poison_of(type_)); }
  void zero() { fill_rows(0); }

  // Whether something was written outside the rows, "" or one sentence; the guards are restored.
  std::string overrun(const char* name);

 private:
  bool contiguous() const { return heads_contiguous_; }
  int64_t row_at(int64_t row) const { return first_ + layout_.begin(row); }
  void fill_rows(uint32_t word);
  void fill(int64_t first, int64_t count, uint32_t word);
  void reset_guards();

  Type type_;
  int device_;
  int64_t size_;    // bytes of an element
  uint32_t guard_;  // what lies around the rows
  Layout layout_;
  int64_t rows_, cols_;
  bool heads_contiguous_;
  int64_t first_;        // of row 0, in elements from the start of the memory
  int64_t begin_, end_;  // of the elements that lie between the lowest and the highest row
  int64_t total_;
  DeviceMemory<> memory_;
};

}  // namespace ladder
