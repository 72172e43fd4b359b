// parallel_for over all cores of the host.
#pragma once
#include <algorithm>
#include <cstdint>
#include <thread>
#include <vector>

namespace ladder {

// Calls body(part, begin, end) for `parts` consecutive ranges that cover [0, count), on as many threads.
// Ranges are never smaller than `grain`, so small work stays on the calling thread. Returns the number of parts.
template <class Body>
int parallel_for(int64_t count, int64_t grain, Body body) {
  static const int64_t cores = std::max(1u, std::thread::hardware_concurrency());  // a system call
  const int parts = static_cast<int>(std::clamp<int64_t>(count / grain, 1, std::min<int64_t>(cores, 64)));
  const auto bound = [&](int part) { return count / parts * part + std::min<int64_t>(part, count % parts); };
  std::vector<std::thread> threads;
  for (int part = 1; part < parts; ++part)
    threads.emplace_back([&, part] { body(part, bound(part), bound(part + 1)); });
  body(0, bound(0), bound(1));
  for (std::thread& thread : threads) thread.join();
  return parts;
}

constexpr int kMaxParts = 64;

// The same over the elements of a matrix: body(row, first, last) for columns [first, last) of one row.
template <class Body>
void parallel_for_rows(int64_t rows, int64_t cols, Body body) {
  parallel_for(rows * cols, 1 << 16, [=](int, int64_t begin, int64_t end) {
    while (begin < end) {
      const int64_t row = begin / cols, first = begin % cols, last = std::min(cols, first + end - begin);
      body(row, first, last);
      begin += last - first;
    }
  });
}

}  // namespace ladder
