// Whether a variant does what it says, to the bit: no number is printed for a kernel that does not.
#pragma once
#include <string>

#include "variant.h"

namespace memory_bandwidth {

// count random words, every bit pattern alike, from a counter-based generator.
void fill_random(float* to, int64_t count, uint32_t seed);

// What `to` must hold before a variant runs so that verify can tell afterwards.
void prepare(const Variant& variant, float* to, int64_t count);

// Waits for the device, then reads both buffers back. Empty: right. Else one sentence.
std::string verify(const Variant& variant, const float* from, const float* to, int64_t count);

// Odd sizes, each aligned and with either pointer one element off, between guards. Empty: right on all problems.
std::string check_small(const Variant& variant, bool cpu_device);
int small_problems();  // of one variant

}  // namespace memory_bandwidth
