// Boosted trees, checked and bound once, and what they predict.
//
// A tree is not walked. For each bin of each input, a table says which leaves of every tree the bin leaves
// possible, one bit each; the one leaf that all inputs leave possible is the row's (as in Lucchese et al.,
// "QuickScorer"). So a row takes one look per input, at all trees side by side, and no branch.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "boost.hpp"
#include "compiler.hpp"
#include "forest.hpp"
#include "pulse.hpp"

namespace mcce {

struct EnsembleArrays {
    std::vector<std::int32_t> roots, feature, cut, left;
    std::vector<std::int64_t> value;
    std::vector<std::int32_t> inputs;
    std::vector<std::int64_t> first;
    std::vector<std::uint8_t> bins;
};

class Ensemble {
public:
    explicit Ensemble(const EnsembleArrays& arrays)
        : inputs_(arrays.inputs), first_(arrays.first), bins_(arrays.bins) {
        check_inputs();
        const std::size_t n = arrays.feature.size();
        require(arrays.cut.size() == n && arrays.left.size() == n && arrays.value.size() == n,
                "the arrays of nodes differ in size");
        require(!arrays.roots.empty() || !n, "there are nodes without a tree");
        std::vector<Split> splits;
        for (std::size_t tree = 0; tree < arrays.roots.size(); ++tree) {
            const bool is_last = tree + 1 == arrays.roots.size();
            const std::int64_t begin = arrays.roots[tree];
            const std::int64_t end = is_last ? static_cast<std::int64_t>(n) : arrays.roots[tree + 1];
            require(begin < end && end <= static_cast<std::int64_t>(n) && (tree ? begin > 0 : begin == 0),
                    "the roots do not ascend from 0");
            add_tree(arrays, static_cast<std::size_t>(begin), static_cast<std::size_t>(end), splits);
        }
        tabulate(splits);
    }

    std::size_t n_columns() const { return n_columns_; }

    // codes   (at least n_columns, n_all)
    // rows    (n_rows,), which of them
    void predict(const std::int32_t* codes, std::size_t n_all, const std::int64_t* rows, std::size_t n_rows,
                 std::int64_t* out, Pulse& pulse) const {
        std::vector<std::uint8_t> block(kBlock * inputs_.size());
        std::vector<Leaves> possible(first_value_.size());
        for (std::size_t begin = 0; begin < n_rows; begin += kBlock) {
            const std::size_t n = std::min(kBlock, n_rows - begin);
            read(codes, n_all, rows + begin, n, block.data(), pulse);
            for (std::size_t row = 0; row < n; ++row) out[begin + row] = sum(block.data() + row, possible.data());
            pulse.tick(n * (tables_.size() + 1) * first_value_.size() / kLeavesPerTick);
        }
    }

private:
    using Leaves = std::uint32_t;  // one bit each
    static_assert(kMostLeaves == 32, "a tree has a bit for each leaf");
    static constexpr std::size_t kBlock = 512, kLeavesPerTick = 8;

    // The leaves that each bin of an input leaves possible: by bin, then tree.
    struct Table {
        std::size_t input;
        std::vector<Leaves> leaves;
    };

    struct Split {
        std::size_t tree, input;
        std::int32_t cut;
        Leaves left, right;
    };

    void check_inputs() {
        require(first_.size() == inputs_.size() + 1 && first_.front() == 0, "the bins do not begin at 0");
        for (std::size_t k = 0; k < inputs_.size(); ++k) {
            require(inputs_[k] >= 0, "an input is no column");
            require(first_[k + 1] >= first_[k], "the bins do not ascend");
            n_columns_ = std::max(n_columns_, static_cast<std::size_t>(inputs_[k]) + 1);
        }
        require(first_.back() == static_cast<std::int64_t>(bins_.size()), "the inputs do not share out the bins");
        for (std::size_t k = 0; k < inputs_.size(); ++k) {
            const auto begin = bins_.begin() + first_[k], end = bins_.begin() + first_[k + 1];
            n_bins_.push_back(begin == end ? 1 : std::size_t{*std::max_element(begin, end)} + 1);
        }
    }

    // Nodes [begin, end) are a tree: every node but the first is the child of one before it.
    void add_tree(const EnsembleArrays& arrays, std::size_t begin, std::size_t end,
                  std::vector<Split>& splits) {
        require(end - begin < 2 * kMostLeaves, "a tree has too many leaves");
        std::vector<bool> is_child(end - begin);
        for (std::size_t node = begin; node < end; ++node) {
            require(node == begin || is_child[node - begin], "a node has no parent");
            if (arrays.feature[node] == -1) continue;
            check_split(arrays, node, end);
            const auto left = static_cast<std::size_t>(arrays.left[node]) - begin;
            require(!is_child[left] && !is_child[left + 1], "a node has two parents");
            is_child[left] = is_child[left + 1] = true;
        }
        first_value_.push_back(values_.size());
        gather(arrays, begin, splits);
    }

    void check_split(const EnsembleArrays& arrays, std::size_t node, std::size_t end) const {
        const std::int32_t feature = arrays.feature[node], cut = arrays.cut[node], left = arrays.left[node];
        require(feature >= 0 && static_cast<std::size_t>(feature) < inputs_.size(), "a node splits on no input");
        require(cut >= 0 && cut < 255, "a cut is beyond the bins");
        require(left > static_cast<std::int64_t>(node) && static_cast<std::size_t>(left) + 1 < end,
                "a child does not come after its parent");
    }

    // The leaves below a node of the last tree, numbered from left to right, and the splits there.
    Leaves gather(const EnsembleArrays& arrays, std::size_t node, std::vector<Split>& splits) {
        if (arrays.feature[node] == -1) {
            values_.push_back(static_cast<std::uint64_t>(arrays.value[node]));
            return Leaves{1} << (values_.size() - 1 - first_value_.back());
        }
        const auto child = static_cast<std::size_t>(arrays.left[node]);
        const Leaves left = gather(arrays, child, splits), right = gather(arrays, child + 1, splits);
        splits.push_back({first_value_.size() - 1, static_cast<std::size_t>(arrays.feature[node]), arrays.cut[node],
                          left, right});
        return left | right;
    }

    void tabulate(const std::vector<Split>& splits) {
        const std::size_t n_trees = first_value_.size();
        for (std::size_t input = 0; input < inputs_.size(); ++input) {
            std::vector<Leaves> leaves;
            for (const Split& split : splits) {
                if (split.input != input) continue;
                leaves.resize(n_bins_[input] * n_trees, ~Leaves{0});
                for (std::size_t bin = 0; bin < n_bins_[input]; ++bin) {
                    const bool goes_left = bin <= static_cast<std::size_t>(split.cut);
                    leaves[bin * n_trees + split.tree] &= ~(goes_left ? split.right : split.left);
                }
            }
            if (!leaves.empty()) tables_.push_back({input, std::move(leaves)});
        }
    }

    // Bins of a block of rows, by input, then row.
    void read(const std::int32_t* codes, std::size_t stride, const std::int64_t* rows, std::size_t n,
              std::uint8_t* block, Pulse& pulse) const {
        for (std::size_t k = 0; k < inputs_.size(); ++k) {
            const std::int32_t* own = codes + static_cast<std::size_t>(inputs_[k]) * stride;
            const std::uint8_t* bins = bins_.data() + first_[k];
            const auto n_codes = static_cast<std::uint64_t>(first_[k + 1] - first_[k]);
            bool known = true;
            for (std::size_t row = 0; row < n; ++row) {
                const auto code = static_cast<std::uint32_t>(own[rows[row]]);
                known &= code < n_codes;
                block[k * kBlock + row] = code < n_codes ? bins[code] : std::uint8_t{0};
            }
            require(known, "a code is none of its column's");
            pulse.tick(n);
        }
    }

    // The sum of all trees for a row, given its first bin and room for one entry per tree.
    std::int64_t sum(const std::uint8_t* bins, Leaves* possible) const {
        const std::size_t n_trees = first_value_.size();
        std::fill_n(possible, n_trees, ~Leaves{0});
        for (const Table& table : tables_) {
            const Leaves* leaves = table.leaves.data() + bins[table.input * kBlock] * n_trees;
            for (std::size_t tree = 0; tree < n_trees; ++tree) possible[tree] &= leaves[tree];
        }
        // Sums of values from an unknown file may wrap, as they do in the reference.
        std::uint64_t total = 0;
        for (std::size_t tree = 0; tree < n_trees; ++tree) {
            total += values_[first_value_[tree] + static_cast<std::size_t>(count_trailing_zeros(possible[tree]))];
        }
        return static_cast<std::int64_t>(total);
    }

    std::vector<std::int32_t> inputs_;
    std::vector<std::int64_t> first_;
    std::vector<std::uint8_t> bins_;
    std::vector<std::size_t> n_bins_;
    std::size_t n_columns_ = 0;
    std::vector<Table> tables_;
    std::vector<std::size_t> first_value_;  // of each tree, by leaf
    std::vector<std::uint64_t> values_;
};

}  // namespace mcce
