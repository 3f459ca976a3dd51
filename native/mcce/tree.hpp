// The columns that a tree is grown from, and the tree; kernels/structs.py documents its arrays.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <numeric>
#include <type_traits>
#include <vector>

#include "compiler.hpp"

namespace mcce {

constexpr std::int32_t kLeaf = -1;
// Beyond so many codes the rows of an ordered column are worth keeping sorted.
constexpr std::int32_t kManyCodes = 4096;

// Descent codes of one column in the width it needs, and how it may be split.
struct Column {
    const void* codes;
    int width;  // bytes: 1, 2 or 4
    std::int32_t n_codes;
    bool by_set;
    bool ordered;

    // Whether the rows of each node are kept sorted by this column.
    bool is_kept_sorted() const { return ordered && n_codes > kManyCodes; }

    // Calls a function with the codes in their own width.
    template <class Function>
    void with_codes(const Function& function) const {
        if (width == 1) {
            function(static_cast<const std::uint8_t*>(codes));
        } else if (width == 2) {
            function(static_cast<const std::uint16_t*>(codes));
        } else {
            function(static_cast<const std::uint32_t*>(codes));
        }
    }

    // The codes of some rows, side by side.
    void gather(const std::uint32_t* rows, std::size_t n, std::uint32_t* out) const {
        with_codes([&](const auto* own) {
            for (std::size_t i = 0; i < n; ++i) out[i] = own[rows[i]];
        });
    }

    // The same in their own width.
    void gather(const std::uint32_t* rows, std::size_t n, std::vector<unsigned char>& out) const {
        out.resize(n * static_cast<std::size_t>(width));
        with_codes([&](const auto* own) {
            using Code = std::remove_const_t<std::remove_pointer_t<decltype(own)>>;
            for (std::size_t i = 0; i < n; ++i) std::memcpy(&out[i * sizeof(Code)], &own[rows[i]], sizeof(Code));
        });
    }

    // All rows by code, then by number.
    std::vector<std::uint32_t> sort_rows(std::size_t n_rows) const {
        std::vector<std::uint32_t> next(static_cast<std::size_t>(n_codes) + 1), rows(n_rows);
        with_codes([&](const auto* own) {
            for (std::size_t row = 0; row < n_rows; ++row) ++next[std::size_t{own[row]} + 1];
            std::partial_sum(next.begin(), next.end(), next.begin());
            for (std::size_t row = 0; row < n_rows; ++row) rows[next[own[row]]++] = static_cast<std::uint32_t>(row);
        });
        return rows;
    }
};

// When a tree stops, and which splits are admissible; see Growth in kernels/structs.py.
struct Growth {
    std::int64_t min_samples_leaf;
    std::int64_t min_samples_split;
    std::int64_t max_depth;  // negative: no limit
    std::int32_t decision_column;
    bool grow_undesired;
    std::int64_t levels_per_row;  // of a node that a set of levels may split
    std::int64_t many_levels;     // beyond so many, one in smallest_part rows must go either way
    std::int64_t smallest_part;
    std::int64_t max_features;  // columns that a node checks; negative: all
    std::uint64_t key;          // of the order in which it does

    bool draws_columns() const { return max_features >= 0; }
};

// A split of a node.
struct Split {
    double gain = -std::numeric_limits<double>::infinity();
    std::int32_t column = -1;          // none yet
    std::int32_t cut = 0;              // ordered columns: codes <= cut go left
    std::vector<std::int32_t> levels;  // unordered ones: the node's levels in order ...
    std::size_t n_left_levels = 0;     // ... of which the first go left

    // Calls a function with each level of the node in an unordered column, and whether it goes left.
    template <class Function>
    void for_each_level(const Function& function) const {
        for (std::size_t i = 0; i < levels.size(); ++i)
            function(static_cast<std::size_t>(levels[i]), i < n_left_levels);
    }
};

struct Tree {
    std::vector<std::int32_t> feature, cut, left, right, count;
    std::vector<std::int64_t> start;
    std::vector<std::uint64_t> sets;
    std::vector<std::int32_t> values;

    std::int32_t size() const { return static_cast<std::int32_t>(feature.size()); }

    // A leaf of the last `n` values.
    void add_leaf(std::size_t n) {
        const std::size_t first = values.size() - n;
        std::sort(values.begin() + static_cast<std::ptrdiff_t>(first), values.end());
        add_node(kLeaf, 0, 0, first, n);
    }

    // A node whose left child comes next. Levels it lacks follow the order, or the larger child.
    void add_split(const Split& split, const Column& column, bool left_is_larger) {
        if (!column.by_set) return add_node(split.column, split.cut, size() + 1, 0, 0);
        const std::size_t offset = sets.size(), n_codes = static_cast<std::size_t>(column.n_codes);
        const std::uint64_t others = left_is_larger ? ~std::uint64_t{0} : 0;
        sets.resize(offset + n_codes / 64 + 1, others);
        sets.back() &= below(n_codes % 64 + 1);
        std::uint64_t* set = sets.data() + offset;
        if (column.ordered) {
            const std::size_t n_left = static_cast<std::size_t>(split.cut) + 1;
            std::fill_n(set, n_codes / 64 + 1, std::uint64_t{0});
            std::fill_n(set, n_left / 64, ~std::uint64_t{0});
            set[n_left / 64] |= below(n_left % 64);
            set[n_codes / 64] |= (others & 1) << (n_codes % 64);
        } else {
            split.for_each_level([set](std::size_t level, bool goes_left) {
                const std::uint64_t bit = std::uint64_t{1} << (level % 64);
                goes_left ? set[level / 64] |= bit : set[level / 64] &= ~bit;
            });
        }
        add_node(split.column, static_cast<std::int32_t>(offset), size() + 1, 0, 0);
    }

private:
    // The lowest bits, 64 at most.
    static std::uint64_t below(std::size_t n_bits) {
        return n_bits < 64 ? (std::uint64_t{1} << n_bits) - 1 : ~std::uint64_t{0};
    }

    void add_node(std::int32_t column, std::int32_t at, std::int32_t child, std::size_t first, std::size_t n) {
        feature.push_back(column);
        cut.push_back(at);
        left.push_back(child);
        right.push_back(0);
        start.push_back(static_cast<std::int64_t>(first));
        count.push_back(static_cast<std::int32_t>(n));
    }
};

}  // namespace mcce
