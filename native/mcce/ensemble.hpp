// Boosted trees, checked and bound once, and what they predict; see kernels/reference/_boost.py.
//
// A tree is not walked. For each input that it splits on, a table says which of its leaves a bin leaves
// possible, one bit each; the one leaf that all inputs leave possible is the row's (as in Lucchese et al.,
// "QuickScorer"). So a row takes one look per input and tree, and no branch.
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
        for (std::size_t tree = 0; tree < arrays.roots.size(); ++tree) {
            const bool is_last = tree + 1 == arrays.roots.size();
            const std::int64_t begin = arrays.roots[tree];
            const std::int64_t end = is_last ? static_cast<std::int64_t>(n) : arrays.roots[tree + 1];
            require(begin < end && end <= static_cast<std::int64_t>(n) && (tree ? begin > 0 : begin == 0),
                    "the roots do not ascend from 0");
            add_tree(arrays, static_cast<std::size_t>(begin), static_cast<std::size_t>(end));
        }
    }

    std::size_t n_columns() const { return n_columns_; }

    // codes   (at least n_columns, n_rows)
    void predict(const std::int32_t* codes, std::size_t n_rows, std::int64_t* out, Pulse& pulse) const {
        std::vector<std::uint8_t> block(kBlock * inputs_.size());
        for (std::size_t begin = 0; begin < n_rows; begin += kBlock) {
            const std::size_t n = std::min(kBlock, n_rows - begin);
            read(codes + begin, n_rows, n, block.data(), pulse);
            std::uint64_t sums[kBlock] = {};
            for (const Tree& tree : trees_) {
                pulse.tick((tree.end - tree.begin + 2) * n);
                add(tree, block.data(), n, sums);
            }
            for (std::size_t row = 0; row < n; ++row) out[begin + row] = static_cast<std::int64_t>(sums[row]);
        }
    }

private:
    using Leaves = std::uint32_t;  // one bit each
    static_assert(kMostLeaves == 32, "a tree has a bit for each leaf");
    static constexpr std::size_t kBlock = 512;

    // The leaves that each bin of an input leaves possible.
    struct Table {
        std::size_t input, first;  // of leaves_
    };

    struct Tree {
        std::size_t begin, end;  // of tables_
        std::size_t first;       // of values_, by leaf
        Leaves all;
    };

    struct Split {
        std::size_t input;
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
    void add_tree(const EnsembleArrays& arrays, std::size_t begin, std::size_t end) {
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
        Tree tree{tables_.size(), 0, values_.size(), 0};
        std::vector<Split> splits;
        tree.all = gather(arrays, begin, tree.first, splits);
        tabulate(std::move(splits));
        tree.end = tables_.size();
        trees_.push_back(tree);
    }

    void check_split(const EnsembleArrays& arrays, std::size_t node, std::size_t end) const {
        const std::int32_t feature = arrays.feature[node], cut = arrays.cut[node], left = arrays.left[node];
        require(feature >= 0 && static_cast<std::size_t>(feature) < inputs_.size(), "a node splits on no input");
        require(cut >= 0 && cut < 255, "a cut is beyond the bins");
        require(left > static_cast<std::int64_t>(node) && static_cast<std::size_t>(left) + 1 < end,
                "a child does not come after its parent");
    }

    // The leaves below a node, numbered from left to right, and the splits there.
    Leaves gather(const EnsembleArrays& arrays, std::size_t node, std::size_t first, std::vector<Split>& splits) {
        if (arrays.feature[node] == -1) {
            values_.push_back(static_cast<std::uint64_t>(arrays.value[node]));
            return Leaves{1} << (values_.size() - 1 - first);
        }
        const auto child = static_cast<std::size_t>(arrays.left[node]);
        const Leaves left = gather(arrays, child, first, splits), right = gather(arrays, child + 1, first, splits);
        splits.push_back({static_cast<std::size_t>(arrays.feature[node]), arrays.cut[node], left, right});
        return left | right;
    }

    void tabulate(std::vector<Split> splits) {
        std::sort(splits.begin(), splits.end(),
                  [](const Split& one, const Split& other) { return one.input < other.input; });
        for (std::size_t first = 0, last = 0; first < splits.size(); first = last) {
            const std::size_t input = splits[first].input;
            while (last < splits.size() && splits[last].input == input) ++last;
            tables_.push_back({input, leaves_.size()});
            leaves_.resize(leaves_.size() + n_bins_[input], ~Leaves{0});
            Leaves* possible = leaves_.data() + tables_.back().first;
            for (std::size_t i = first; i < last; ++i) {
                const auto n_left = std::min(static_cast<std::size_t>(splits[i].cut) + 1, n_bins_[input]);
                for (std::size_t bin = 0; bin < n_left; ++bin) possible[bin] &= ~splits[i].right;
                for (std::size_t bin = n_left; bin < n_bins_[input]; ++bin) possible[bin] &= ~splits[i].left;
            }
        }
    }

    // Bins of a block of rows, by input, then row.
    void read(const std::int32_t* codes, std::size_t stride, std::size_t n, std::uint8_t* block,
              Pulse& pulse) const {
        for (std::size_t k = 0; k < inputs_.size(); ++k) {
            const std::int32_t* own = codes + static_cast<std::size_t>(inputs_[k]) * stride;
            const std::uint8_t* bins = bins_.data() + first_[k];
            const auto n_codes = static_cast<std::uint64_t>(first_[k + 1] - first_[k]);
            bool known = true;
            for (std::size_t row = 0; row < n; ++row) {
                const auto code = static_cast<std::uint32_t>(own[row]);
                known &= code < n_codes;
                block[k * kBlock + row] = code < n_codes ? bins[code] : std::uint8_t{0};
            }
            require(known, "a code is none of its column's");
            pulse.tick(n);
        }
    }

    void add(const Tree& tree, const std::uint8_t* block, std::size_t n, std::uint64_t* sums) const {
        Leaves possible[kBlock];
        std::fill_n(possible, n, tree.all);
        for (std::size_t i = tree.begin; i < tree.end; ++i) {
            const Leaves* leaves = leaves_.data() + tables_[i].first;
            const std::uint8_t* bins = block + tables_[i].input * kBlock;
            for (std::size_t row = 0; row < n; ++row) possible[row] &= leaves[bins[row]];
        }
        const std::uint64_t* values = values_.data() + tree.first;
        // Sums of values from an unknown file may wrap, as they do in the reference.
        for (std::size_t row = 0; row < n; ++row) sums[row] += values[count_trailing_zeros(possible[row])];
    }

    std::vector<std::int32_t> inputs_;
    std::vector<std::int64_t> first_;
    std::vector<std::uint8_t> bins_;
    std::vector<std::size_t> n_bins_;
    std::size_t n_columns_ = 0;
    std::vector<Tree> trees_;
    std::vector<Table> tables_;
    std::vector<Leaves> leaves_;
    std::vector<std::uint64_t> values_;
};

}  // namespace mcce
