// The shapes of kernels, of which a policy is a table.
#pragma once

#include <cstdint>

namespace rms_norm {

// How a kernel gets at its rows.
//   contiguous   rows follow each other without gaps, and there are few of them: the kernel is made short. L2 treats x
//                and y normally, since in a model the kernel before has just written x, and the next one reads y.
//   strided      rows may be anywhere
//   unaligned    rows may begin at any element, at the same distance from a 16-byte boundary in all tensors. Only their
//                head and tail elements are moved one by one.
enum class Access { contiguous, strided, unaligned };

// What L2 is asked to evict, compared with everything else in it. In a large problem, what is written leaves first;
// what is read leaves first too, or last. In a contiguous one, this is about the residual that is read, and nothing
// else.
enum class Eviction { normal, first, last };

// A kernel for rows of up to `packs` packs (16 bytes of x each) in problems of up to `kilobytes` (all tensors except
// the weight). Each thread keeps `vectors` packs in its registers. A block has `block` threads, or as many as one row
// takes if these are more. A cluster of `parts` blocks shares a row. The first shape of a table that takes a problem
// gets it.
struct Shape {
  int packs, kilobytes, vectors, block, parts;
  Access access;
  Eviction reads;
};
constexpr int kAnySize = INT32_MAX;

}  // namespace rms_norm
