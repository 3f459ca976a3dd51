// How usual a row is to a chain of trees: equals kernels/reference/_support.py bit for bit.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "sample.hpp"

namespace mcce {

// What the training rows of each node hold of the column that its tree gives.
struct Holdings {
    std::vector<std::int32_t> size;
    std::vector<std::int32_t> low, high;  // codes of known numbers, low above high if there are none
    std::vector<std::uint8_t> misses;     // whether a number is missing
    std::vector<std::int64_t> offset;     // of a category's levels in `sets`, else -1
    std::vector<std::uint64_t> sets;
};

// The same, as the package keeps it.
struct Held {
    const std::int32_t *size, *low, *high;
    const std::uint8_t* misses;
    const std::int64_t* offset;
    const std::uint64_t* sets;
};

inline bool has_bit(const std::uint64_t* set, std::int32_t code) {
    return (set[static_cast<std::uint32_t>(code) / 64] >> (code % 64)) & 1;
}

// A node contradicts a level if less than one in so many of the rows have it that its share of all rows
// would give, unless that is so few that it may be chance.
constexpr std::int64_t kContradiction = 100, kChance = 5;

class HoldingsGatherer {
public:
    // responses       the column that each tree gives
    // missing         per tree, the code of a missing number, -1 if there is none
    // contradictions  whether a node holds every level that it does not contradict, and every number
    HoldingsGatherer(const Forest& forest, std::size_t n_nodes, const std::int32_t* responses,
                     const std::int32_t* missing, bool contradictions)
        : forest_(forest), responses_(responses), missing_(missing), contradictions_(contradictions),
          start_(n_nodes),
          held_{std::vector<std::int32_t>(n_nodes),
                std::vector<std::int32_t>(n_nodes, contradictions ? 0 : std::numeric_limits<std::int32_t>::max()),
                std::vector<std::int32_t>(n_nodes, contradictions ? std::numeric_limits<std::int32_t>::max() : -1),
                std::vector<std::uint8_t>(n_nodes, contradictions),
                std::vector<std::int64_t>(n_nodes, -1),
                {}} {}

    Holdings gather() {
        for (std::size_t tree = 0; tree < forest_.n_trees; ++tree) {
            const auto first = static_cast<std::size_t>(forest_.roots[tree]);
            const auto last = tree + 1 < forest_.n_trees ? static_cast<std::size_t>(forest_.roots[tree + 1])
                                                         : start_.size();
            size_up(first, last);
            const auto n_levels = static_cast<std::size_t>(forest_.n_levels[responses_[tree]]);
            overall_.assign(n_levels, 0);
            for (std::size_t node = first; node < last; ++node) {
                if (n_levels) {
                    hold_levels(node, first, n_levels);
                } else if (!contradictions_) {
                    hold_numbers(node, missing_[tree]);
                }
            }
        }
        return std::move(held_);
    }

private:
    // Rows of each node; their values stand together, from start_ on.
    void size_up(std::size_t first, std::size_t last) {
        for (std::size_t node = last; node-- > first;) {
            const bool leaf = forest_.feature[node] == kLeaf;
            const std::int32_t left = forest_.left[node], right = forest_.right[node];
            held_.size[node] = leaf ? forest_.count[node] : held_.size[left] + held_.size[right];
            start_[node] = leaf ? forest_.start[node] : start_[left];
        }
    }

    void hold_levels(std::size_t node, std::size_t root, std::size_t n_levels) {
        const std::size_t offset = held_.sets.size();
        held_.offset[node] = static_cast<std::int64_t>(offset);
        held_.sets.resize(offset + (n_levels + 63) / 64, 0);
        count_.assign(n_levels, 0);
        const std::int32_t *value = forest_.values + start_[node], *end = value + held_.size[node];
        for (; value != end; ++value) ++count_[static_cast<std::size_t>(*value)];
        if (node == root) overall_ = count_;
        const std::int64_t total = held_.size[root];
        for (std::size_t level = 0; level < n_levels; ++level) {
            const std::int64_t expected = held_.size[node] * overall_[level];
            const bool fits = contradictions_
                                  ? count_[level] * kContradiction * total >= expected || expected < kChance * total
                                  : count_[level] > 0;
            if (fits) held_.sets[offset + level / 64] |= std::uint64_t{1} << (level % 64);
        }
    }

    void hold_numbers(std::size_t node, std::int32_t missing) {
        const std::int32_t *value = forest_.values + start_[node], *end = value + held_.size[node];
        for (; value != end; ++value) {
            if (*value == missing) {
                held_.misses[node] = 1;
            } else {
                held_.low[node] = std::min(held_.low[node], *value);
                held_.high[node] = std::max(held_.high[node], *value);
            }
        }
    }

    Forest forest_;
    const std::int32_t *responses_, *missing_;
    bool contradictions_;
    std::vector<std::int64_t> start_, overall_, count_;
    Holdings held_;
};

// The size of the largest node on a row's way down each tree that does not hold its value, 0 for none.
//   n_codes   per column; higher codes are values that training never held, of which nothing is said
//   codes     (n_columns, n_rows) descent codes
//   least     per tree, the size below which nodes are not looked at
//   out       (n_trees, n_rows)
inline void strain(const Forest& forest, const Held& held, const std::int32_t* responses,
                   const std::int32_t* missing, const std::int32_t* n_codes, const std::int32_t* codes,
                   std::size_t n_rows, const std::int32_t* least, std::int32_t* out) {
    for (std::size_t tree = 0; tree < forest.n_trees; ++tree) {
        const std::int32_t* answers = codes + static_cast<std::size_t>(responses[tree]) * n_rows;
        const std::int32_t most = n_codes[responses[tree]];
        for (std::size_t row = 0; row < n_rows; ++row) {
            const std::int32_t answer = answers[row];
            std::int32_t& found = out[tree * n_rows + row];
            found = 0;
            if (answer >= most) continue;
            auto at = static_cast<std::size_t>(forest.roots[tree]);
            while (held.size[at] >= least[tree]) {
                const bool holds = held.offset[at] >= 0      ? has_bit(held.sets + held.offset[at], answer)
                                   : answer == missing[tree] ? held.misses[at] != 0
                                                             : held.low[at] <= answer && answer <= held.high[at];
                if (!holds) {
                    found = held.size[at];
                    break;
                }
                const std::int32_t feature = forest.feature[at], cut = forest.cut[at];
                if (feature == kLeaf) break;
                const std::int32_t code = codes[static_cast<std::size_t>(feature) * n_rows + row];
                const bool left = forest.n_levels[feature] ? has_bit(forest.sets + cut, code) : code <= cut;
                at = static_cast<std::size_t>(left ? forest.left[at] : forest.right[at]);
            }
        }
    }
}

}  // namespace mcce
