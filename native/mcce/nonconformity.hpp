// How unusual a row is to the trees of a chain: equals kernels/reference/_nonconformity.py bit for bit.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "forest.hpp"
#include "pulse.hpp"

namespace mcce {

// The values of a node's training rows in the column that its tree predicts; one entry per node.
struct NodeValues {
    std::vector<std::int32_t> size;
    std::vector<std::int32_t> low, high;  // codes of known numbers, low above high if there are none
    std::vector<std::uint8_t> misses;     // whether a number is missing
    std::vector<std::int64_t> offset;     // of the levels of a category in `sets`; -1 if there is no set
    std::vector<std::uint64_t> sets;
};

// A node contradicts a level that fewer than one in kContradiction of the expected rows have, given the
// level's share of all rows. Below kChance expected rows, the lack may be chance.
constexpr std::int64_t kContradiction = 100, kChance = 5;

// Whether a node of `size` rows holds a level that `count` of them have, and `overall` of all rows.
struct LevelRule {
    bool contradictions;
    std::int64_t total;

    bool holds(std::int64_t count, std::int64_t size, std::int64_t overall) const {
        if (!contradictions) return count > 0;
        const std::int64_t expected = size * overall;
        return count * kContradiction * total >= expected || expected < kChance * total;
    }
};

class NodeValuesBuilder {
public:
    // missing         per tree, the code of a missing number, -1 if there is none
    // contradictions  whether a node holds every number, and every level that it does not contradict
    // most_levels     of a category up to which nodes have sets of them
    NodeValuesBuilder(const ForestView& forest, const std::int32_t* missing, bool contradictions,
                      std::int64_t most_levels, Pulse& pulse)
        : forest_(forest), missing_(missing), contradictions_(contradictions), most_levels_(most_levels),
          pulse_(pulse), start_(forest.n_nodes) {
        const std::size_t n = forest.n_nodes;
        constexpr std::int32_t most = std::numeric_limits<std::int32_t>::max();
        built_.size.resize(n);
        built_.low.assign(n, contradictions ? 0 : most);
        built_.high.assign(n, contradictions ? most : -1);
        built_.misses.assign(n, contradictions);
        built_.offset.assign(n, -1);
    }

    NodeValues build() {
        for (std::size_t tree = 0; tree < forest_.n_trees; ++tree) {
            const auto first = static_cast<std::size_t>(forest_.roots[tree]), last = forest_.end_of(tree);
            count_rows(first, last);
            const auto n_levels = static_cast<std::size_t>(forest_.n_levels[forest_.responses[tree]]);
            if (static_cast<std::int64_t>(n_levels) > most_levels_) continue;
            overall_.assign(n_levels, 0);
            for (std::size_t node = first; node < last; ++node) {
                pulse_.tick(2 * n_levels + static_cast<std::size_t>(built_.size[node]));
                if (n_levels) {
                    add_levels(node, first, n_levels);
                } else if (!contradictions_) {
                    add_numbers(node, missing_[tree]);
                }
            }
        }
        return std::move(built_);
    }

private:
    // The size of each node; the values of its rows are adjacent, from start_ on.
    void count_rows(std::size_t first, std::size_t last) {
        for (std::size_t node = last; node-- > first;) {
            if (forest_.feature[node] == kLeaf) {
                built_.size[node] = forest_.count[node];
                start_[node] = forest_.start[node];
                continue;
            }
            const auto left = static_cast<std::size_t>(forest_.left[node]);
            const auto right = static_cast<std::size_t>(forest_.right[node]);
            built_.size[node] = built_.size[left] + built_.size[right];
            start_[node] = built_.size[left] ? start_[left] : start_[right];
        }
    }

    void add_levels(std::size_t node, std::size_t root, std::size_t n_levels) {
        const std::size_t offset = built_.sets.size();
        built_.offset[node] = static_cast<std::int64_t>(offset);
        built_.sets.resize(offset + (n_levels + 63) / 64, 0);
        count_.assign(n_levels, 0);
        const std::int32_t *value = forest_.values + start_[node], *end = value + built_.size[node];
        for (; value != end; ++value) ++count_[static_cast<std::size_t>(*value)];
        if (node == root) overall_ = count_;
        const LevelRule rule{contradictions_, built_.size[root]};
        for (std::size_t level = 0; level < n_levels; ++level) {
            if (rule.holds(count_[level], built_.size[node], overall_[level]))
                built_.sets[offset + level / 64] |= std::uint64_t{1} << (level % 64);
        }
    }

    void add_numbers(std::size_t node, std::int32_t missing) {
        const std::int32_t *value = forest_.values + start_[node], *end = value + built_.size[node];
        for (; value != end; ++value) {
            if (*value == missing) {
                built_.misses[node] = 1;
            } else {
                built_.low[node] = std::min(built_.low[node], *value);
                built_.high[node] = std::max(built_.high[node], *value);
            }
        }
    }

    ForestView forest_;
    const std::int32_t* missing_;
    bool contradictions_;
    std::int64_t most_levels_;
    Pulse& pulse_;
    std::vector<std::int64_t> start_, overall_, count_;
    NodeValues built_;
};

// Where each level is among the values of a tree, for nodes without sets of levels.
class LevelPlaces {
public:
    LevelPlaces() = default;

    // The values, n of them, are levels; the first is at place `begin` of the forest's values.
    LevelPlaces(const std::int32_t* values, std::size_t n, std::int64_t begin, std::size_t n_levels)
        : begin_(begin), first_(n_levels + 1), places_(n) {
        for (std::size_t i = 0; i < n; ++i) ++first_[static_cast<std::size_t>(values[i]) + 1];
        for (std::size_t level = 0; level < n_levels; ++level) first_[level + 1] += first_[level];
        std::vector<std::size_t> next(first_.begin(), first_.end() - 1);
        for (std::size_t i = 0; i < n; ++i)
            places_[next[static_cast<std::size_t>(values[i])]++] = static_cast<std::uint32_t>(i);
    }

    std::int64_t size() const { return static_cast<std::int64_t>(places_.size()); }

    // How often a level occurs in all, and among so many of the forest's values from a place on.
    std::int64_t count(std::int32_t level) const { return at(level + 1) - at(level); }
    std::int64_t count(std::int32_t level, std::int64_t start, std::int64_t n) const {
        const Place first = std::lower_bound(at(level), at(level + 1), start - begin_);
        return std::lower_bound(first, at(level + 1), start - begin_ + n) - first;
    }

private:
    using Place = const std::uint32_t*;

    Place at(std::int32_t level) const { return places_.data() + first_[static_cast<std::size_t>(level)]; }

    std::int64_t begin_ = 0;
    std::vector<std::size_t> first_;     // of each level in places_
    std::vector<std::uint32_t> places_;  // among the tree's values, by level, ascending within each
};

// A forest and the values of its nodes, checked and owned.
class Holdings {
public:
    // n_codes   per column; higher codes are values that training never held
    // missing, contradictions   as above
    Holdings(std::shared_ptr<const Forest> forest, std::vector<std::int32_t> n_codes,
             std::vector<std::int32_t> missing, bool contradictions, NodeValues values)
        : forest_(std::move(forest)), n_codes_(std::move(n_codes)), missing_(std::move(missing)),
          contradictions_(contradictions), values_(std::move(values)), start_(forest_->n_nodes()),
          places_(forest_->n_trees()) {
        require(n_codes_.size() == forest_->n_columns(), "n_codes needs one entry per column");
        require(missing_.size() == forest_->n_trees(), "missing needs one entry per tree");
        const std::size_t n = forest_->n_nodes();
        require(values_.size.size() == n && values_.low.size() == n && values_.high.size() == n &&
                    values_.misses.size() == n && values_.offset.size() == n,
                "the arrays of nodes differ in size");
        const ForestView view = forest_->view();
        std::int64_t n_before = 0;
        for (std::size_t node = 0; node < n; ++node) {
            start_[node] = n_before;
            if (view.feature[node] == kLeaf) n_before += view.count[node];
        }
        for (std::size_t tree = 0; tree < view.n_trees; ++tree)
            if (!has_sets(view, tree)) place_levels(view, tree);
    }

    const Forest& forest() const { return *forest_; }

    // The size of the largest node on a row's path down each tree that does not hold its value; 0 if
    // all do, and for values that training never held.
    //   codes     (n_columns, n_rows) descent codes
    //   least     per tree, the size below which nodes are ignored
    //   out       (n_trees, n_rows)
    void nonconformity(const std::int32_t* codes, std::size_t n_rows, const std::int32_t* least,
                       std::int32_t* out, Pulse& pulse) const {
        const ForestView forest = forest_->view();
        for (std::size_t tree = 0; tree < forest.n_trees; ++tree) {
            const auto response = static_cast<std::size_t>(forest.responses[tree]);
            const auto score = [&](const auto& holds) {
                const std::int32_t* values = codes + response * n_rows;
                for (std::size_t row = 0; row < n_rows; ++row) {
                    if (row % kRows == 0) pulse.tick(kRows * kPerRow);
                    const bool known = values[row] < n_codes_[response];
                    *out++ = known ? descend(forest, tree, values[row], codes + row, n_rows, least[tree], holds) : 0;
                }
            };
            const LevelPlaces& places = places_[tree];
            const std::int32_t missing = missing_[tree];
            if (places.size()) {
                score([&](std::size_t at, std::int32_t level) { return holds_level(at, level, places); });
            } else {
                score([this, missing](std::size_t at, std::int32_t value) { return holds(at, value, missing); });
            }
        }
    }

private:
    static constexpr std::size_t kRows = 1024, kPerRow = 64;  // and the work, roughly, of each

    // Checks a tree; false if it predicts a category of which nodes have no sets of levels.
    bool has_sets(const ForestView& forest, std::size_t tree) const {
        const auto response = static_cast<std::size_t>(forest.responses[tree]);
        const std::int32_t n_levels = forest.n_levels[response];
        require(!n_levels || n_codes_[response] == n_levels,
                "n_codes of a category is not its number of levels");
        const std::int64_t n_words = (n_levels + 63) / 64;
        const auto n_all = static_cast<std::int64_t>(values_.sets.size());
        const auto root = static_cast<std::size_t>(forest.roots[tree]);
        const bool sets = n_levels && values_.offset[root] != -1;
        for (std::size_t node = root; node < forest.end_of(tree); ++node) {
            const std::int64_t offset = values_.offset[node];
            require(sets ? offset >= 0 && offset <= n_all - n_words : offset == -1,
                    "a node has no set of levels, or one too many");
        }
        return sets || !n_levels;
    }

    void place_levels(const ForestView& forest, std::size_t tree) {
        const auto first = static_cast<std::size_t>(forest.roots[tree]), last = forest.end_of(tree);
        std::int64_t n = 0;
        for (std::size_t node = first; node < last; ++node)
            if (forest.feature[node] == kLeaf) n += forest.count[node];
        const auto n_levels = static_cast<std::size_t>(forest.n_levels[forest.responses[tree]]);
        places_[tree] = {forest.values + start_[first], static_cast<std::size_t>(n), start_[first], n_levels};
    }

    // One row down one tree; its codes are `n_rows` apart.
    template <class Holds>
    std::int32_t descend(const ForestView& forest, std::size_t tree, std::int32_t value,
                         const std::int32_t* codes, std::size_t n_rows, std::int32_t least,
                         const Holds& holds) const {
        auto at = static_cast<std::size_t>(forest.roots[tree]);
        while (values_.size[at] >= least) {
            if (!holds(at, value)) return values_.size[at];
            const std::int32_t feature = forest.feature[at];
            if (feature == kLeaf) return 0;
            const std::int32_t code = codes[static_cast<std::size_t>(feature) * n_rows];
            const bool left = forest.goes_left(static_cast<std::int32_t>(at), code);
            at = static_cast<std::size_t>(left ? forest.left[at] : forest.right[at]);
        }
        return 0;
    }

    bool holds(std::size_t at, std::int32_t value, std::int32_t missing) const {
        if (values_.offset[at] >= 0) return has_bit(values_.sets.data() + values_.offset[at], value);
        if (value == missing) return values_.misses[at] != 0;
        return values_.low[at] <= value && value <= values_.high[at];
    }

    // The same for a level of which no node of the tree has a set.
    bool holds_level(std::size_t at, std::int32_t level, const LevelPlaces& places) const {
        const std::int64_t size = values_.size[at];
        const LevelRule rule{contradictions_, places.size()};
        return rule.holds(places.count(level, start_[at], size), size, places.count(level));
    }

    std::shared_ptr<const Forest> forest_;
    std::vector<std::int32_t> n_codes_, missing_;
    bool contradictions_;
    NodeValues values_;
    std::vector<std::int64_t> start_;  // of each node's values in the forest
    std::vector<LevelPlaces> places_;  // of each tree; empty if its nodes have sets, or numbers
};

}  // namespace mcce
