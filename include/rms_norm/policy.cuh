// Which shape of kernel a problem gets.
//
// A policy is a type with three members, measured on one GPU by `make tune`, which writes it to policies/<gpu>.cuh:
//
//   kForward, kFusedAdd     tables of shapes, for calls without and with a residual
//   kDependentKilobytes     the size of a problem up to which dependent launches are used, if the caller asks for them
//
// DefaultPolicy is the one of an H200. A program for several GPUs includes their policies and chooses at run time:
//
//   device_is_a_4090 ? rms_norm::forward<rms_norm::policies::Rtx4090>(…) : rms_norm::forward(…);
#pragma once

#include "policies/h200.cuh"
#include "shape.cuh"

namespace rms_norm {

using DefaultPolicy = policies::H200;

namespace detail {

// For rows that begin at any element, of 16-bit types. Up to two packs per thread, rows come in turn: see in_turn.
inline constexpr Shape kUnaligned[] = {
    {64, kAnySize, 2, 128, 1, Access::unaligned, Eviction::last},
    {512, kAnySize, 2, 256, 1, Access::unaligned, Eviction::last},
    {2048, kAnySize, 2, 512, 1, Access::unaligned, Eviction::last},
    {4096, kAnySize, 4, 1024, 1, Access::unaligned, Eviction::last},
};
// And of float32, whose weight takes as many loads as there are elements anyway.
inline constexpr Shape kUnalignedFloats[] = {
    {32, kAnySize, 1, 256, 1, Access::unaligned, Eviction::last},
    {256, kAnySize, 2, 128, 1, Access::unaligned, Eviction::last},
    {1024, kAnySize, 4, 256, 1, Access::unaligned, Eviction::last},
    {4096, kAnySize, 4, 1024, 1, Access::unaligned, Eviction::last},
};
constexpr int kUnalignedPacks = 6;  // shorter rows are mostly head and tail

// For what is left, in packs of fewer bytes.
inline constexpr Shape kNarrow[] = {
    {128, kAnySize, 4, 256, 1, Access::strided, Eviction::first},
    {1024, kAnySize, 4, 256, 1, Access::strided, Eviction::first},
    {4096, kAnySize, 4, 1024, 1, Access::strided, Eviction::first},
};

// Longer rows than a policy's tables have are shared by a cluster of blocks, of which so many shall fit on a
// multiprocessor: one waits for the others' sums while another one loads. What does not fit is read again.
constexpr int64_t kLongPacks = 32 << 10;      // up to so many: 4 blocks of 256 threads
constexpr int64_t kVeryLongPacks = 64 << 10;  // up to so many: 2 of 512, else one of 1024

}  // namespace detail
}  // namespace rms_norm
