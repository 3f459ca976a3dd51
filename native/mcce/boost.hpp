// Gradient-boosted regression trees on binned columns.
//
// A node's histograms are counted from its rows, or are its parent's less its sibling's. All sums are
// integers. Gains are float64 by one formula, evaluated only where a product that takes no division says that
// they could win.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "forest.hpp"
#include "pulse.hpp"

namespace mcce {

constexpr std::size_t kMostLeaves = 32;  // of a tree

struct Boosting {
    std::int64_t n_trees;
    std::int64_t max_leaves;
    std::int64_t min_samples_leaf;
    std::int64_t shrinkage;
};

// Trees as arrays; see BoostedNodes in kernels/structs.py.
struct BoostedNodes {
    std::vector<std::int32_t> roots, feature, cut, left;
    std::vector<std::int64_t> value;
    std::vector<double> gain;

    std::int32_t add() {
        require(feature.size() < std::size_t{1} << 30, "the trees have too many nodes");
        feature.push_back(-1);
        cut.push_back(0);
        left.push_back(0);
        value.push_back(0);
        gain.push_back(0.0);
        return static_cast<std::int32_t>(feature.size()) - 1;
    }
};

class Booster {
public:
    // bins     (n_inputs, n_rows), each below its entry of n_bins, which is at most 256
    // units    so small that no sum of them leaves 55 bits
    Booster(std::vector<std::uint8_t> bins, const std::vector<std::int32_t>& n_bins,
            std::vector<std::int64_t> units, const Boosting& boosting, Pulse& pulse)
        : bins_(std::move(bins)), left_over_(std::move(units)), boosting_(boosting), pulse_(pulse),
          n_inputs_(n_bins.size()), n_rows_(left_over_.size()), rows_(n_rows_), scratch_(n_rows_),
          first_(1, 0) {
        // Inputs of one bin fill the last group up.
        const std::size_t n_groups = (n_inputs_ + kGroup - 1) / kGroup;
        groups_.resize(n_groups * n_rows_ * kGroup);
        for (std::size_t k = 0; k < n_groups * kGroup; ++k)
            first_.push_back(first_.back() + (k < n_inputs_ ? static_cast<std::size_t>(n_bins[k]) : 1));
        for (std::size_t k = 0; k < n_inputs_; ++k) {
            std::uint8_t* group = groups_.data() + k / kGroup * n_rows_ * kGroup + k % kGroup;
            for (std::size_t row = 0; row < n_rows_; ++row) group[row * kGroup] = bins_[k * n_rows_ + row];
        }
    }

    BoostedNodes run() {
        for (std::int64_t tree = 0; n_rows_ && tree < boosting_.n_trees; ++tree)
            if (!grow()) break;
        return std::move(nodes_);
    }

private:
    static constexpr std::size_t kGroup = 4;  // inputs counted together, whose tables stay in the cache

    struct Cell {
        std::int64_t sum, count;
    };

    // Rows [begin, end) of a node, and its best split.
    struct Leaf {
        std::size_t begin, end;
        std::int32_t node;
        std::int64_t total;
        std::vector<Cell> table;
        double gain;
        std::int32_t feature, cut;

        std::size_t size() const { return end - begin; }
    };

    // Adds one tree and takes it off what is left over; false if not even its root can be split.
    bool grow() {
        std::iota(rows_.begin(), rows_.end(), std::uint32_t{0});
        leaves_.clear();
        const std::int64_t total = std::accumulate(left_over_.begin(), left_over_.end(), std::int64_t{0});
        Leaf root{0, n_rows_, -1, total, {}, 0.0, -1, 0};
        pulse_.tick(n_rows_);
        if (boosting_.max_leaves < 2 || !can_be_split(root)) return false;
        count(root);
        find_split(root);
        if (!(root.gain > 0.0)) return release(root), false;
        root.node = nodes_.add();
        nodes_.roots.push_back(root.node);
        leaves_.push_back(std::move(root));
        while (static_cast<std::int64_t>(leaves_.size()) < boosting_.max_leaves) {
            const std::size_t best = find_best();
            if (!(leaves_[best].gain > 0.0)) break;
            split(best);
        }
        for (Leaf& leaf : leaves_) finish(leaf);
        return true;
    }

    // The leaf of the largest gain, of equals the lowest node.
    std::size_t find_best() {
        pulse_.tick(leaves_.size());
        std::size_t best = 0;
        for (std::size_t i = 1; i < leaves_.size(); ++i) {
            const Leaf &one = leaves_[i], &other = leaves_[best];
            if (one.gain > other.gain || (one.gain == other.gain && one.node < other.node)) best = i;
        }
        return best;
    }

    bool can_be_split(const Leaf& leaf) const {
        return static_cast<std::int64_t>(leaf.size() / 2) >= boosting_.min_samples_leaf && n_inputs_;
    }

    void split(std::size_t at) {
        Leaf parent = std::move(leaves_[at]);
        const std::size_t middle = divide(parent);
        const std::int32_t left = nodes_.add(), right = nodes_.add();
        const auto node = static_cast<std::size_t>(parent.node);
        nodes_.feature[node] = parent.feature;
        nodes_.cut[node] = parent.cut;
        nodes_.left[node] = left;
        nodes_.gain[node] = parent.gain;
        std::int64_t total = 0;
        const Cell* cells = parent.table.data() + first_[static_cast<std::size_t>(parent.feature)];
        for (std::int32_t bin = 0; bin <= parent.cut; ++bin) total += cells[bin].sum;
        Leaf one{parent.begin, middle, left, total, {}, 0.0, -1, 0};
        Leaf other{middle, parent.end, right, parent.total - total, {}, 0.0, -1, 0};
        // The last leaves are not split any more.
        const bool is_last = static_cast<std::int64_t>(leaves_.size()) + 1 >= boosting_.max_leaves;
        if (!is_last) pass_on(parent, one, other);
        release(parent);
        leaves_[at] = std::move(one);
        leaves_.push_back(std::move(other));
    }

    // Derives the histograms of two children from their parent's, and looks for their splits.
    void pass_on(Leaf& parent, Leaf& one, Leaf& other) {
        Leaf& smaller = one.size() <= other.size() ? one : other;
        Leaf& larger = one.size() <= other.size() ? other : one;
        if (!can_be_split(larger)) return;
        count(smaller);
        larger.table = std::move(parent.table);
        parent.table.clear();
        for (std::size_t i = 0; i < larger.table.size(); ++i) {
            larger.table[i].sum -= smaller.table[i].sum;
            larger.table[i].count -= smaller.table[i].count;
        }
        pulse_.tick(larger.table.size());
        find_split(larger);
        if (can_be_split(smaller)) find_split(smaller);
    }

    // Brings the rows of the left child to the front, both sides in their order.
    std::size_t divide(const Leaf& leaf) {
        const std::uint8_t* bins = bins_.data() + static_cast<std::size_t>(leaf.feature) * n_rows_;
        std::size_t n_left = 0, n_right = 0;
        for (std::size_t i = leaf.begin; i < leaf.end; ++i) {
            const std::uint32_t row = rows_[i];
            const bool goes_left = bins[row] <= leaf.cut;
            scratch_[n_right] = row;
            rows_[leaf.begin + n_left] = row;
            n_left += goes_left;
            n_right += !goes_left;
        }
        std::copy_n(scratch_.begin(), n_right, rows_.begin() + static_cast<std::ptrdiff_t>(leaf.begin + n_left));
        pulse_.tick(2 * leaf.size());
        return leaf.begin + n_left;
    }

    void count(Leaf& leaf) {
        if (spare_.empty()) spare_.emplace_back();
        leaf.table = std::move(spare_.back());
        spare_.pop_back();
        leaf.table.assign(first_.back(), Cell{0, 0});
        for (std::size_t k = 0; k < n_inputs_; k += kGroup) {
            Cell* const table = leaf.table.data();
            Cell* const tables[kGroup] = {table + first_[k], table + first_[k + 1], table + first_[k + 2],
                                          table + first_[k + 3]};
            const std::uint8_t* group = groups_.data() + k * n_rows_;
            for (std::size_t i = leaf.begin; i < leaf.end; ++i) {
                const std::size_t row = rows_[i];
                const std::int64_t unit = left_over_[row];
                for (std::size_t j = 0; j < kGroup; ++j) {
                    Cell& cell = tables[j][group[row * kGroup + j]];
                    cell.sum += unit;
                    cell.count += 1;
                }
            }
            pulse_.tick(kGroup * leaf.size());
        }
    }

    void find_split(Leaf& leaf) {
        const double n = static_cast<double>(leaf.size());
        const double mean = static_cast<double>(leaf.total) / n;
        for (std::size_t k = 0; k < n_inputs_; ++k) {
            const Cell* cells = leaf.table.data() + first_[k];
            const std::int32_t last = best_cut(leaf, cells, n, mean);
            if (last < 0) continue;
            std::int32_t following = last + 1;
            while (!cells[following].count) ++following;
            leaf.feature = static_cast<std::int32_t>(k);
            leaf.cut = (last + following) / 2;
        }
        pulse_.tick(2 * first_.back());
    }

    // The last bin on the left of the best split of one input, -1 if none beats the best so far. All
    // bins together hold every row of the leaf, which are enough for two; so no bin is read beyond them.
    std::int32_t best_cut(Leaf& leaf, const Cell* cells, double n, double mean) const {
        // Rounding errors are far below this part.
        constexpr double kNearly = 1.0 - 1e-9;
        const auto size = static_cast<std::int64_t>(leaf.size());
        const std::int64_t least = boosting_.min_samples_leaf, most = size - least;
        std::int64_t sum = 0, count = 0;
        std::int32_t bin = -1, last = -1;
        while (count < least) {
            sum += cells[++bin].sum;
            count += cells[bin].count;
        }
        double floor = leaf.gain / n * kNearly;
        // A bin without rows gains what the one before it does, and so never wins.
        while (count <= most) {
            const double n_left = static_cast<double>(count), n_right = n - n_left;
            const double excess = static_cast<double>(sum) - mean * n_left;
            const double square = excess * excess, product = n_left * n_right;
            if (!(square < floor * product)) {
                const double gain = square / product * n;
                if (gain > leaf.gain) {
                    leaf.gain = gain;
                    floor = gain / n * kNearly;
                    last = bin;
                }
            }
            sum += cells[++bin].sum;
            count += cells[bin].count;
        }
        return last;
    }

    // Division rounds toward zero, so that no leaf corrects more than its mean.
    void finish(Leaf& leaf) {
        const std::int64_t value = leaf.total / (boosting_.shrinkage * static_cast<std::int64_t>(leaf.size()));
        nodes_.value[static_cast<std::size_t>(leaf.node)] = value;
        for (std::size_t i = leaf.begin; i < leaf.end; ++i) left_over_[rows_[i]] -= value;
        pulse_.tick(leaf.size());
        release(leaf);
    }

    // Keeps the memory of a table for the next one.
    void release(Leaf& leaf) {
        if (leaf.table.capacity()) spare_.push_back(std::move(leaf.table));
        leaf.table.clear();
    }

    std::vector<std::uint8_t> bins_;  // by input, then row
    std::vector<std::int64_t> left_over_;
    Boosting boosting_;
    Pulse& pulse_;
    std::size_t n_inputs_, n_rows_;
    std::vector<std::uint8_t> groups_;  // the same by group of inputs, then row, then input
    std::vector<std::uint32_t> rows_, scratch_;
    std::vector<std::size_t> first_;  // cell of each input's bin 0
    std::vector<Leaf> leaves_;
    std::vector<std::vector<Cell>> spare_;
    BoostedNodes nodes_;
};

}  // namespace mcce
