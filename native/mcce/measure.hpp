// A distance that is a sum over features: equals tests/oracles/numpy_kernels/ranking.py bit for bit.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "compiler.hpp"

namespace mcce {

// One mutable feature; places is null where cells that differ are 1 apart.
struct Axis {
    const double* places;  // (n_codes, n_dims), NaN for missing
    std::size_t n_codes;
    std::size_t n_dims;        // 1: numbers, 2: points
    const double* own_places;  // (n_people, n_dims)
    double spread, weight;
};

// How the gaps of features make a distance.
struct Summation {
    bool squared, city_block, mean, ignores_missing;
};

// Measures some candidates of one person at a time, one feature after the other.
class Measurer {
public:
    Measurer(std::vector<Axis> axes, const double* n_present, const Summation& how)
        : axes_(std::move(axes)), n_present_(n_present), how_(how) {}

    void begin(std::size_t n) {
        total_.assign(n, 0.0);
        lost_.assign(n, 0.0);
        changed_.assign(n, 0);
    }

    // Adds the feature at `at` for the chosen draws of a person whose own code is `own`.
    void add(std::size_t at, std::size_t person, const std::int32_t* codes, std::int32_t own,
             const std::vector<std::int32_t>& chosen) {
        const Axis& axis = axes_[at];
        const double* mine = axis.places ? axis.own_places + person * axis.n_dims : nullptr;
        for (std::size_t i = 0; i < chosen.size(); ++i) {
            const std::int32_t code = codes[chosen[i]];
            if (code == own) continue;
            changed_[i] = 1;
            if (!axis.places) {
                total_[i] += axis.weight;
                continue;
            }
            const auto row = static_cast<std::size_t>(code);
            if (row >= axis.n_codes) {  // noted rather than followed, as where candidates are ranked
                beyond_ = true;
                continue;
            }
            const double* place = axis.places + row * axis.n_dims;
            double gap = part(axis, place, mine);
            if (std::isnan(gap)) {
                gap = how_.ignores_missing ? 0.0 : 1.0;
                lost_[i] += std::isnan(place[0]) && !std::isnan(mine[0]);
            }
            total_[i] += axis.weight * gap;
        }
    }

    double distance(std::size_t i, std::size_t person) const {
        const double total = how_.squared ? std::sqrt(total_[i]) : total_[i];
        if (!how_.mean) return total;
        const double counted = n_present_[person] - (how_.ignores_missing ? lost_[i] : 0.0);
        if (counted > 0) return total / std::max(counted, 1.0);
        return changed_[i] ? std::numeric_limits<double>::infinity() : 0.0;
    }

    std::size_t n_axes() const { return axes_.size(); }
    bool beyond() const { return beyond_; }  // whether a code is none of its table

private:
    double part(const Axis& axis, const double* place, const double* mine) const {
        const double first = std::fabs(place[0] - mine[0]);
        double gap;
        if (axis.n_dims == 2) {
            const double second = std::fabs(place[1] - mine[1]);
            if (!how_.city_block) return first * first + second * second;
            gap = first + second;
        } else {
            gap = axis.spread > 0 ? first / axis.spread : 1.0 + first;
        }
        return how_.squared ? gap * gap : gap;
    }

    std::vector<Axis> axes_;
    const double* n_present_;
    Summation how_;
    std::vector<double> total_, lost_;
    std::vector<std::uint8_t> changed_;
    bool beyond_ = false;
};

}  // namespace mcce
