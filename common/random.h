// Hashes that make random inputs: the same seed gives the same bits on every machine and number of threads.
#pragma once
#include <cstdint>

namespace ladder {

// The finalizer of SplitMix64 (Steele, Lea, Flood 2014).
inline uint64_t mix64(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// The finalizer of MurmurHash3's 32-bit form: compilers vectorize it.
inline uint32_t mix32(uint32_t x) {
  x = (x ^ (x >> 16)) * 0x85ebca6bu;
  x = (x ^ (x >> 13)) * 0xc2b2ae35u;
  return x ^ (x >> 16);
}

// Element `index` of the sequence `key`.
inline uint32_t hash32(uint64_t key, int64_t index) {
  const uint32_t low = static_cast<uint32_t>(key) + static_cast<uint32_t>(index);
  const uint32_t high = static_cast<uint32_t>(key >> 32) ^ static_cast<uint32_t>(index >> 32);
  return mix32(mix32(low) ^ high);
}

// Either sign, magnitude 0.5 to 1.5: never 1 throughout, never zero. Element `index` of the sequence `key`.
inline float weight_like(uint64_t key, int64_t index) {
  const uint64_t hash = mix64(key + static_cast<uint64_t>(index));
  const float magnitude = 0.5f + static_cast<float>(hash >> 40) * 0x1p-24f;
  return hash & 1 ? magnitude : -magnitude;
}

// Uniform in [-2, 2), a multiple of 2^-22: exact, so fused and separate multiply-adds agree.
inline float uniform(uint32_t hash) { return static_cast<float>(static_cast<int32_t>(hash) >> 8) * 0x1p-22f; }

}  // namespace ladder
