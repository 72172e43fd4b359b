// What the imaginary device can hold, and what its memory holds before it is written.
#pragma once
#include <cstddef>

namespace simt {

constexpr size_t kStaticSharedLimit = 48 * 1024;  // bytes a block gets without asking
constexpr size_t kSharedLimit = 227 * 1024;       // bytes after opting in
constexpr size_t kStackSize = 256 * 1024;         // of a thread; lazily mapped, it touches a few kilobytes
constexpr unsigned kMaxThreads = 1024;            // per block
constexpr unsigned kMultiprocessors =
    4;  // unless SIMT_MULTIPROCESSORS says otherwise; few, or persistent grids explode
constexpr unsigned kThreadsPerMultiprocessor = 2048;
constexpr unsigned kBlocksPerMultiprocessor = 32;
constexpr unsigned char kPoison = 0xff;  // all bits set is NaN in every float format

}  // namespace simt
