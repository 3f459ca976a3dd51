// All training rows in the leaves of a tree whose splits were chosen on some of them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "pulse.hpp"
#include "tree.hpp"

namespace mcce {

// The rows descend together, as a list that each split divides in two.
class Filler {
public:
    Filler(const std::vector<Column>& columns, const std::int32_t* answers, std::size_t n_rows, Pulse& pulse)
        : columns_(columns), answers_(answers), pulse_(pulse), rows_(n_rows), spare_(n_rows) {
        std::iota(rows_.begin(), rows_.end(), std::uint32_t{0});
    }

    // Leaves that were never grown stay empty.
    Tree fill(Tree tree) {
        tree.values.clear();
        std::vector<Part> waiting{{0, 0, rows_.size()}};
        while (!waiting.empty()) {
            const Part part = waiting.back();
            waiting.pop_back();
            const auto at = static_cast<std::size_t>(part.at);
            if (tree.feature[at] == kLeaf) {
                fill_leaf(tree, at, part);
                continue;
            }
            pulse_.tick(kPerRow * (part.end - part.begin));
            const std::size_t middle = divide(tree, at, part);
            // Left children come first, so that leaves are filled in their order.
            waiting.push_back({tree.right[at], middle, part.end});
            waiting.push_back({tree.left[at], part.begin, middle});
        }
        return tree;
    }

private:
    struct Part {
        std::int32_t at;
        std::size_t begin, end;
    };

    static constexpr std::size_t kPerRow = 2;  // work, roughly, of a row at a split

    void fill_leaf(Tree& tree, std::size_t at, const Part& part) const {
        const bool grown = tree.count[at] > 0;
        const std::size_t first = tree.values.size(), n = grown ? part.end - part.begin : 0;
        for (std::size_t i = 0; i < n; ++i) tree.values.push_back(answers_[rows_[part.begin + i]]);
        std::sort(tree.values.begin() + static_cast<std::ptrdiff_t>(first), tree.values.end());
        tree.start[at] = static_cast<std::int64_t>(first);
        tree.count[at] = static_cast<std::int32_t>(n);
    }

    std::size_t divide(const Tree& tree, std::size_t at, const Part& part) {
        const Column& column = columns_[static_cast<std::size_t>(tree.feature[at])];
        const auto cut = static_cast<std::uint32_t>(tree.cut[at]);
        std::size_t middle = part.begin;
        column.with_codes([&](const auto* codes) {
            if (!column.by_set) {
                middle = partition(part, [=](std::uint32_t row) { return codes[row] <= cut; });
                return;
            }
            const std::uint64_t* set = tree.sets.data() + cut;
            middle = partition(part, [=](std::uint32_t row) {
                const std::uint32_t code = codes[row];
                return (set[code / 64] >> (code % 64)) & 1;
            });
        });
        return middle;
    }

    template <class GoesLeft>
    std::size_t partition(const Part& part, const GoesLeft& goes_left) {
        std::size_t left = part.begin, right = 0;
        for (std::size_t i = part.begin; i < part.end; ++i) {
            const std::uint32_t row = rows_[i];
            const bool is_left = goes_left(row);
            // Written to both sides, as a branch would cost more; the next row overwrites the wrong one.
            rows_[left] = row;
            spare_[right] = row;
            left += is_left;
            right += !is_left;
        }
        std::copy_n(spare_.begin(), right, rows_.begin() + static_cast<std::ptrdiff_t>(left));
        return left;
    }

    const std::vector<Column>& columns_;
    const std::int32_t* answers_;
    Pulse& pulse_;
    std::vector<std::uint32_t> rows_, spare_;
};

}  // namespace mcce
