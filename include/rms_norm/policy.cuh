// Which shape of kernel a problem gets.
//
// A policy is a type with four members, measured on one GPU by `make tune`, which writes it to policies/<gpu>.cuh:
//
//   kForward, kFusedAdd     tables of shapes, for calls without and with a residual
//   kDependentKilobytes     the size of a problem up to which dependent launches are used, if the caller asks for them
//   kMultiprocessors        of that GPU. Where there are fewer, a problem counts as larger, up to 128 MB, so that each
//                           multiprocessor has as much to do
//
// DefaultPolicy is the one of an H200; where a GPU is an H100, calls take that of an H100 instead. A program for other
// GPUs chooses at run time, as after `make tune` on a GeForce RTX 4090, and with policies/rtx_4090.cuh:
//
//   device_is_a_4090 ? rms_norm::forward<rms_norm::policies::Rtx4090>(…) : rms_norm::forward(…);
#pragma once

#include <type_traits>

#include "policies/h100.cuh"
#include "policies/h200.cuh"
#include "shape.cuh"

namespace rms_norm {

struct DefaultPolicy : policies::H200 {};

namespace detail {

// The policy where query_h100() says so.
template <class Policy>
using PolicyOfH100 = std::conditional_t<std::is_same_v<Policy, DefaultPolicy>, policies::H100, Policy>;

constexpr int64_t kMostCounted = 128 << 20;  // bytes; in larger problems, what L2 does with reads decides

// For rows that begin at any element, of 16-bit types. Up to two packs per thread, rows come in turn: see in_turn. A
// large problem gets clusters for longer rows, of other sizes with a residual, which takes more registers. The last
// line is for GPUs without clusters.
inline constexpr Shape kUnaligned[] = {
    {64, kAnySize, 2, 128, 1, Access::unaligned, Eviction::last},
    {512, kAnySize, 2, 256, 1, Access::unaligned, Eviction::last},
    {2048, kAnySize, 2, 512, 1, Access::unaligned, Eviction::last},
    {4096, 65536, 4, 1024, 1, Access::unaligned, Eviction::last},
    {4096, kAnySize, 8, 256, 2, Access::unaligned, Eviction::last},
    {8192, 65536, 8, 256, 8, Access::unaligned, Eviction::last},
    {8192, kAnySize, 8, 512, 2, Access::unaligned, Eviction::last},
    {4096, kAnySize, 4, 1024, 1, Access::unaligned, Eviction::last},
};
inline constexpr Shape kUnalignedFusedAdd[] = {
    {64, kAnySize, 2, 128, 1, Access::unaligned, Eviction::last},
    {512, kAnySize, 2, 256, 1, Access::unaligned, Eviction::last},
    {2048, kAnySize, 2, 512, 1, Access::unaligned, Eviction::last},
    {4096, 65536, 4, 1024, 1, Access::unaligned, Eviction::last},
    {4096, kAnySize, 4, 256, 4, Access::unaligned, Eviction::last},
    {8192, kAnySize, 4, 256, 8, Access::unaligned, Eviction::last},
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

// Rows that are longer than those of a policy's tables are shared by a cluster of blocks: of 256 threads up to
// kLongPacks packs, which leaves room for several blocks per multiprocessor, else of 1024.
constexpr int64_t kLongPacks = 64 << 10;

}  // namespace detail
}  // namespace rms_norm
