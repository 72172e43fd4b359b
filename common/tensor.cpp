#include "common/tensor.h"

#include <algorithm>

#include "common/text.h"

namespace ladder {
namespace {

constexpr int64_t kStagingBytes = 4 << 20;

// One row or 1024 elements, whichever is more, on each side; long rows do not need a guard of their own length.
int64_t guard_count(int64_t cols) { return std::clamp<int64_t>(cols, 1024, 1 << 16); }

int64_t round_up(int64_t count, int64_t step) { return (count + step - 1) / step * step; }

void copy(void* to, const void* from, int64_t bytes, cudaMemcpyKind kind) {
  if (bytes > 0) CUDA_CHECK(cudaMemcpy(to, from, bytes, kind));
}

int this_device() {
  int device = 0;
  CUDA_CHECK(cudaGetDevice(&device));
  return device;
}

// Whether the memory holds nothing but this word.
bool repeats(const std::vector<char>& image, uint32_t word) {
  const size_t first = std::min(image.size(), sizeof word);
  return std::memcmp(image.data(), &word, first) == 0 &&
         std::memcmp(image.data(), image.data() + first, image.size() - first) == 0;
}

}  // namespace

DeviceTensor::DeviceTensor(const Tensor& tensor, const Place& place)
    : type_(tensor.type),
      device_(tensor.device == 0 ? this_device() : tensor.device),
      size_(size_of(tensor.type)),
      guard_(guard_of(tensor.type, tensor.is_read())),
      layout_(place.layout),
      rows_(tensor.rows),
      cols_(tensor.cols) {
  if (layout_.stride == kContiguous) layout_.stride = cols_;
  heads_contiguous_ = layout_.heads == 1 && (layout_.stride == cols_ || rows_ <= 1);
  const int64_t last = rows_ - 1;
  const int64_t outer = rows_ == 0 ? 0 : last / layout_.heads * layout_.stride;
  const int64_t inner = rows_ == 0 ? 0 : std::min(last, layout_.heads - 1) * layout_.head_stride;
  const int64_t low = std::min<int64_t>(outer, 0) + std::min<int64_t>(inner, 0);
  const int64_t high = std::max<int64_t>(outer, 0) + std::max<int64_t>(inner, 0) + (rows_ == 0 ? 0 : cols_);
  const OnDevice here(device_);
  const int64_t guard = guard_count(cols_);
  first_ = round_up(guard - low, 256 / size_) + place.offset;
  begin_ = first_ + low;
  end_ = first_ + high;
  total_ = end_ + guard;
  memory_ = allocate(total_ * size_);
  reset_guards();
}

// The pattern is uploaded once, then doubled on the device.
void DeviceTensor::fill(int64_t first, int64_t count, uint32_t word) {
  const OnDevice here(device_);
  const std::vector<uint32_t> seed(std::min<int64_t>(count, 1 << 16), word);
  char* to = memory_.get() + first * size_;
  const int64_t bytes = count * size_;
  int64_t done = std::min<int64_t>(bytes, static_cast<int64_t>(seed.size()) * 4);
  copy(to, seed.data(), done, cudaMemcpyHostToDevice);
  for (; done < bytes; done *= 2) copy(to + done, to, std::min(done, bytes - done), cudaMemcpyDeviceToDevice);
}

void DeviceTensor::reset_guards() {
  if (!contiguous()) return fill(0, total_, guard_);
  fill(0, begin_, guard_);
  fill(end_, total_ - end_, guard_);
}

void DeviceTensor::fill_rows(uint32_t word) {
  if (contiguous()) return fill(begin_, end_ - begin_, word);
  std::vector<uint32_t> dense(rows_ * cols_ * size_ / 4 + 1, word);
  upload(dense.data());
}

void DeviceTensor::upload(const void* dense) {
  const OnDevice here(device_);
  const char* from = static_cast<const char*>(dense);
  if (contiguous()) return copy(data(), from, rows_ * cols_ * size_, cudaMemcpyHostToDevice);
  std::vector<char> image((end_ - begin_) * size_);
  copy(image.data(), memory_.get() + begin_ * size_, image.size(), cudaMemcpyDeviceToHost);
  for (int64_t row = 0; row < rows_; ++row)
    std::memcpy(image.data() + (row_at(row) - begin_) * size_, from + row * cols_ * size_, cols_ * size_);
  copy(memory_.get() + begin_ * size_, image.data(), image.size(), cudaMemcpyHostToDevice);
}

void DeviceTensor::download(void* dense, int64_t first, int64_t count) const {
  const OnDevice here(device_);
  if (contiguous())
    return copy(dense, static_cast<char*>(data()) + first * size_, count * size_, cudaMemcpyDeviceToHost);
  if (first % cols_ + count <= cols_)  // of one row
    return copy(dense, memory_.get() + (row_at(first / cols_) + first % cols_) * size_, count * size_,
                cudaMemcpyDeviceToHost);
  std::vector<char> image((end_ - begin_) * size_);
  copy(image.data(), memory_.get() + begin_ * size_, image.size(), cudaMemcpyDeviceToHost);
  char* to = static_cast<char*>(dense);
  while (count > 0) {
    const int64_t row = first / cols_, col = first % cols_, length = std::min(count, cols_ - col);
    std::memcpy(to, image.data() + (row_at(row) + col - begin_) * size_, length * size_);
    to += length * size_, first += length, count -= length;
  }
}

bool DeviceTensor::holds(const void* dense, int64_t first, int64_t count) const {
  const char* wanted = static_cast<const char*>(dense);
  const int64_t step = contiguous() ? kStagingBytes / size_ : std::max<int64_t>(count, 1);
  std::vector<char> staging(std::min(step, count) * size_);
  for (int64_t done = 0; done < count; done += step) {
    const int64_t length = std::min(step, count - done);
    download(staging.data(), first + done, length);
    if (std::memcmp(staging.data(), wanted + done * size_, length * size_) != 0) return false;
  }
  return true;
}

std::string DeviceTensor::overrun(const char* name) {
  const OnDevice here(device_);
  std::vector<int64_t> found;  // relative to row 0
  std::vector<char> image;
  const auto read = [&](int64_t from, int64_t to) {
    image.resize((to - from) * size_);
    copy(image.data(), memory_.get() + from * size_, image.size(), cudaMemcpyDeviceToHost);
  };
  const auto look = [&](int64_t from) {
    if (repeats(image, guard_)) return;
    for (size_t i = 0; i < image.size() / size_; ++i)
      if (std::memcmp(image.data() + i * size_, &guard_, size_) != 0)
        found.push_back(from + static_cast<int64_t>(i) - first_);
  };
  if (contiguous()) {
    read(0, begin_), look(0);
    read(end_, total_), look(end_);
  } else {
    read(0, total_);
    const std::vector<uint32_t> row_of_guards(cols_ * size_ / 4 + 1, guard_);
    for (int64_t row = 0; row < rows_; ++row)
      std::memcpy(image.data() + row_at(row) * size_, row_of_guards.data(), cols_ * size_);
    look(0);
  }
  if (found.empty()) return "";
  const int64_t at = found.front(), past = at - (end_ - 1 - first_);
  const std::string where = at < begin_ - first_
                                ? text("%lld before its start", static_cast<long long>(begin_ - first_ - at))
                            : past > 0 ? text("%lld past its end", static_cast<long long>(past))
                                       : text("between its rows at %lld", static_cast<long long>(at));
  if (contiguous()) {
    reset_guards();
  } else {
    std::vector<char> rows(rows_ * cols_ * size_);
    download(rows.data());
    reset_guards();
    upload(rows.data());
  }
  return text("; wrote outside its %s: %zu guard element%s overwritten, first %s", name, found.size(),
              found.size() == 1 ? "" : "s", where.c_str());
}

}  // namespace ladder
