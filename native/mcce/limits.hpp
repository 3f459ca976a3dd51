// What draws are restricted to, checked and owned; see DrawLimits in kernels/structs.py.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "forest.hpp"

namespace mcce {

// As kernels read them; own is null where there are no limits.
struct LimitsView {
    const std::int32_t* own;           // (n_columns, n_groups)
    const std::int64_t *first, *last;  // (n_columns, n_groups), first -1: everything is allowed
    const std::int32_t* runs;          // (n_runs, 2)
    const std::int32_t* same;          // (n_columns, n_groups, 2), `near` in Python
};

class Limits {
public:
    Limits(std::size_t n_columns, std::size_t n_groups, std::vector<std::int32_t> own,
           std::vector<std::int64_t> first, std::vector<std::int64_t> last, std::vector<std::int32_t> runs,
           std::vector<std::int32_t> same)
        : n_columns_(n_columns), n_groups_(n_groups), own_(std::move(own)), first_(std::move(first)),
          last_(std::move(last)), runs_(std::move(runs)), same_(std::move(same)) {
        const std::size_t n_cells = n_columns * n_groups;
        require(own_.size() == n_cells && first_.size() == n_cells && last_.size() == n_cells &&
                    same_.size() == 2 * n_cells && runs_.size() % 2 == 0,
                "the arrays of the limits differ in shape");
        const auto n_runs = static_cast<std::int64_t>(runs_.size() / 2);
        for (std::size_t at = 0; at < n_cells; ++at)
            require(first_[at] < 0 || (first_[at] <= last_[at] && last_[at] <= n_runs),
                    "the limits name runs that there are not");
    }

    void check_shape(std::size_t n_columns, std::size_t n_groups) const {
        require(n_columns_ == n_columns && n_groups_ == n_groups, "the limits are of other columns or groups");
    }

    LimitsView view() const {
        return {own_.data(), first_.data(), last_.data(), runs_.data(), same_.data()};
    }

private:
    std::size_t n_columns_, n_groups_;
    std::vector<std::int32_t> own_;
    std::vector<std::int64_t> first_, last_;
    std::vector<std::int32_t> runs_, same_;
};

constexpr std::int32_t kAnyLeaf = -2;  // the own value may stay whatever a leaf holds

// Whether a leaf of these values lets an own value stay that needs a certain one of them.
inline bool lets_stay(std::int32_t needed, const std::int32_t* values, const std::int32_t* end) {
    return needed == kAnyLeaf || std::binary_search(values, end, needed);
}

// What one group may have in a column.
struct GroupColumn {
    bool limited = false;
    std::int32_t given = 0, own = 0, same_low = 0, same_high = 0;
    const std::int32_t *runs = nullptr, *runs_end = nullptr;
    std::vector<std::uint8_t> kept;  // rows with the own value, if its code is not the given one

    bool is_same(std::int32_t code) const { return code >= same_low && code <= same_high; }

    // Takes the given code of a group with so many rows.
    void begin(std::int32_t code) {
        limited = false;
        given = code;
        kept.clear();
    }
    // Takes its limits.
    void limit(const LimitsView& limits, std::size_t at, std::size_t n_rows) {
        limited = limits.first[at] >= 0;
        if (!limited) return;
        own = limits.own[at];
        same_low = limits.same[2 * at];
        same_high = limits.same[2 * at + 1];
        runs = limits.runs + 2 * limits.first[at];
        runs_end = limits.runs + 2 * limits.last[at];
        if (own != given) kept.resize(n_rows);
    }
};

}  // namespace mcce
