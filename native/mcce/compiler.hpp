// The only header that depends on the compiler.
//
// Define MCCE_PORTABLE to build the plain C++17 fallbacks everywhere, so that they can be tested.
#pragma once

#include <cfloat>
#include <cstdint>
#include <limits>

#if defined(_MSC_VER)
#include <intrin.h>
// Fused multiply-add rounds once where the reference rounds twice. Other compilers take a flag.
#pragma fp_contract(off)
#endif

// For what is rarely called in a hot loop, which should not make room for it.
#if defined(_MSC_VER)
#define MCCE_COLD __declspec(noinline)
#elif defined(__GNUC__)
#define MCCE_COLD __attribute__((noinline, cold))
#else
#define MCCE_COLD
#endif

// Asks for memory that is read soon.
#if defined(__GNUC__) && !defined(MCCE_PORTABLE)
#define MCCE_PREFETCH(address) __builtin_prefetch(address)
#else
#define MCCE_PREFETCH(address) static_cast<void>(address)
#endif

namespace mcce {

static_assert(std::numeric_limits<double>::is_iec559, "results are defined in IEEE 754 doubles");
#if !defined(_MSC_VER)
static_assert(FLT_EVAL_METHOD == 0, "doubles must be rounded after every operation (x86: -mfpmath=sse)");
#endif

namespace portable {

// Number of zero bits below the lowest one; the word must not be 0.
inline int count_trailing_zeros(std::uint64_t word) {
    int count = 0;
    for (int step = 32; step; step /= 2) {
        const std::uint64_t low = (std::uint64_t{1} << step) - 1;
        if (word & low) continue;
        word >>= step;
        count += step;
    }
    return count;
}

}  // namespace portable

inline int count_trailing_zeros(std::uint64_t word) {
#if defined(MCCE_PORTABLE)
    return portable::count_trailing_zeros(word);
#elif defined(_MSC_VER) && (defined(_M_X64) || defined(_M_ARM64))
    unsigned long place;
    _BitScanForward64(&place, word);
    return static_cast<int>(place);
#elif defined(_MSC_VER)
    unsigned long place;
    if (_BitScanForward(&place, static_cast<unsigned long>(word))) return static_cast<int>(place);
    _BitScanForward(&place, static_cast<unsigned long>(word >> 32));
    return static_cast<int>(place) + 32;
#elif defined(__GNUC__)
    return __builtin_ctzll(word);
#else
    return portable::count_trailing_zeros(word);
#endif
}

}  // namespace mcce
