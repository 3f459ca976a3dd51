// How usual a row is to a chain of trees: equals kernels/reference/_support.py bit for bit.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
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

// A level is not held if fewer rows have it than this share of what its share of all rows would give, unless
// that is so few that it may be chance.
constexpr std::int64_t kUnusual = 20, kChance = 5;

// What every node holds, from the leaves up.
//   responses   the column that each tree gives
//   missing     per tree, the code of a missing number, -1 if there is none
inline Holdings gather_holdings(const Forest& forest, std::size_t n_nodes, const std::int32_t* responses,
                                const std::int32_t* missing) {
    Holdings held{std::vector<std::int32_t>(n_nodes),
                  std::vector<std::int32_t>(n_nodes, std::numeric_limits<std::int32_t>::max()),
                  std::vector<std::int32_t>(n_nodes, -1),
                  std::vector<std::uint8_t>(n_nodes),
                  std::vector<std::int64_t>(n_nodes, -1),
                  {}};
    std::vector<std::int64_t> start(n_nodes);  // of the values below a node, which stand together
    std::vector<std::int64_t> overall, count;
    for (std::size_t tree = 0; tree < forest.n_trees; ++tree) {
        const auto first = static_cast<std::size_t>(forest.roots[tree]);
        const auto last = tree + 1 < forest.n_trees ? static_cast<std::size_t>(forest.roots[tree + 1]) : n_nodes;
        for (std::size_t node = last; node-- > first;) {
            const bool leaf = forest.feature[node] == kLeaf;
            const std::int32_t left = forest.left[node], right = forest.right[node];
            held.size[node] = leaf ? forest.count[node] : held.size[left] + held.size[right];
            start[node] = leaf ? forest.start[node] : start[left];
        }
        const auto n_levels = static_cast<std::size_t>(forest.n_levels[responses[tree]]);
        const std::size_t n_words = (n_levels + 63) / 64;
        overall.assign(n_levels, 0);
        count.assign(n_levels, 0);
        for (std::size_t node = first; node < last; ++node) {
            const std::int32_t *value = forest.values + start[node], *end = value + held.size[node];
            if (n_levels) {
                held.offset[node] = static_cast<std::int64_t>(held.sets.size());
                held.sets.resize(held.sets.size() + n_words, 0);
                for (const std::int32_t* v = value; v != end; ++v) ++count[static_cast<std::size_t>(*v)];
                if (node == first) overall = count;
                for (const std::int32_t* v = value; v != end; ++v) {
                    const auto level = static_cast<std::size_t>(*v);
                    const std::int64_t n = count[level];  // 0 if it was looked at before
                    const std::int64_t expected = held.size[node] * overall[level];
                    if (n && (n * kUnusual * held.size[first] >= expected || expected < kChance * held.size[first]))
                        held.sets[static_cast<std::size_t>(held.offset[node]) + level / 64] |= std::uint64_t{1} << (level % 64);
                    count[level] = 0;
                }
                continue;
            }
            for (; value != end; ++value) {
                if (*value == missing[tree]) {
                    held.misses[node] = 1;
                } else {
                    held.low[node] = std::min(held.low[node], *value);
                    held.high[node] = std::max(held.high[node], *value);
                }
            }
        }
    }
    return held;
}

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
