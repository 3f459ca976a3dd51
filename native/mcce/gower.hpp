// Gower's distance in one feature: equals kernels/rows.py bit for bit.
#pragma once

#include <cmath>

#include "compiler.hpp"

namespace mcce {

// Distance of two numbers over the training range; 1 if one of them is missing (NaN).
// Numbers too far apart for a double are infinitely far apart.
inline double number_gap(double a, double b, double spread) {
    const double gap = std::fabs(a - b) / spread;
    return std::isnan(gap) ? 1.0 : gap;
}

// A missing number among scaled ones, and the distance beyond which one of two must be missing.
constexpr double kMissing = 1e308, kApart = 5e307;

// The same for numbers divided by the training range, where a missing one is kMissing.
inline double scaled_gap(double a, double b) {
    const double gap = std::fabs(a - b);
    return gap > kApart ? 1.0 : gap;
}

// Levels differ by 1.
inline double level_gap(double a, double b) { return a != b ? 1.0 : 0.0; }

}  // namespace mcce
