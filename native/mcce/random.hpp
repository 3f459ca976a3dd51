// Every random number of step 2, counted rather than streamed; see kernels/_random.py.
#pragma once

#include <cstdint>

namespace mcce {

constexpr std::uint64_t kGolden = 0x9E3779B97F4A7C15ULL;

inline std::uint64_t mix(std::uint64_t word) {
    word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9ULL;
    word = (word ^ (word >> 27)) * 0x94D049BB133111EBULL;
    return word ^ (word >> 31);
}

inline std::uint64_t absorb(std::uint64_t state, std::uint64_t word) {
    return mix((state ^ word) + kGolden);
}

// Uniform choice among `count` things, without rounding.
inline std::uint32_t pick(std::uint64_t row_key, std::uint64_t position, std::uint32_t count) {
    const auto high = static_cast<std::uint32_t>(absorb(row_key, position) >> 32);
    return static_cast<std::uint32_t>((std::uint64_t{high} * count) >> 32);
}

// The same with the other half of a word, which says nothing of the first; up to 2^32 things.
inline std::uint64_t pick_other(std::uint64_t word, std::uint64_t count) {
    return (word & 0xFFFFFFFFULL) * count >> 32;
}

}  // namespace mcce
