// How unusual a row is to the trees of a chain: the nodes on its path that do not hold its level.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "forest.hpp"
#include "pulse.hpp"

namespace mcce {

// The levels of a node's training rows in the category that its tree predicts; one entry per node.
struct NodeLevels {
    std::vector<std::int32_t> size;
    std::vector<std::int64_t> offset;  // of its levels in `sets`; -1 if there is no set
    std::vector<std::uint64_t> sets;
};

inline std::size_t n_levels_of(const ForestView& forest, std::size_t tree) {
    const std::int32_t n_levels = forest.n_levels[forest.responses[tree]];
    require(n_levels > 0, "a tree predicts no category");
    return static_cast<std::size_t>(n_levels);
}

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

class NodeLevelsBuilder {
public:
    // contradictions  whether a node holds every level that it does not contradict
    // most_levels     of a category up to which nodes have sets of them
    NodeLevelsBuilder(const ForestView& forest, bool contradictions, std::int64_t most_levels, Pulse& pulse)
        : forest_(forest), contradictions_(contradictions), most_levels_(most_levels), pulse_(pulse) {
        for (std::size_t node = 0; node < forest.n_nodes; ++node)
            built_.size.push_back(static_cast<std::int32_t>(forest.end[node] - forest.first[node]));
        built_.offset.assign(forest.n_nodes, -1);
    }

    NodeLevels build() {
        for (std::size_t tree = 0; tree < forest_.n_trees; ++tree) {
            const auto first = static_cast<std::size_t>(forest_.roots[tree]), last = forest_.end_of(tree);
            const std::size_t n_levels = n_levels_of(forest_, tree);
            if (static_cast<std::int64_t>(n_levels) > most_levels_) continue;
            overall_.assign(n_levels, 0);
            for (std::size_t node = first; node < last; ++node) {
                pulse_.tick(2 * n_levels + static_cast<std::size_t>(built_.size[node]));
                add_levels(node, first, n_levels);
            }
        }
        return std::move(built_);
    }

private:
    void add_levels(std::size_t node, std::size_t root, std::size_t n_levels) {
        const std::size_t offset = built_.sets.size();
        built_.offset[node] = static_cast<std::int64_t>(offset);
        built_.sets.resize(offset + (n_levels + 63) / 64, 0);
        count_.assign(n_levels, 0);
        const std::int32_t *value = forest_.values + forest_.first[node], *end = forest_.values + forest_.end[node];
        for (; value != end; ++value) ++count_[static_cast<std::size_t>(*value)];
        if (node == root) overall_ = count_;
        const LevelRule rule{contradictions_, built_.size[root]};
        for (std::size_t level = 0; level < n_levels; ++level) {
            if (rule.holds(count_[level], built_.size[node], overall_[level]))
                built_.sets[offset + level / 64] |= std::uint64_t{1} << (level % 64);
        }
    }

    ForestView forest_;
    bool contradictions_;
    std::int64_t most_levels_;
    Pulse& pulse_;
    std::vector<std::int64_t> overall_, count_;
    NodeLevels built_;
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

// A forest and the levels of its nodes, checked and owned.
class Holdings {
public:
    // contradictions   as above
    Holdings(std::shared_ptr<const Forest> forest, bool contradictions, NodeLevels held)
        : forest_(std::move(forest)), contradictions_(contradictions), held_(std::move(held)),
          places_(forest_->n_trees()) {
        const std::size_t n = forest_->n_nodes();
        require(held_.size.size() == n && held_.offset.size() == n, "the arrays of nodes differ in size");
        const ForestView view = forest_->view();
        for (std::size_t tree = 0; tree < view.n_trees; ++tree)
            if (!check_sets(view, tree)) place_levels(view, tree);
    }

    const Forest& forest() const { return *forest_; }

    // The size of the largest node on a row's path down each tree that does not hold its level; 0 if
    // all do, and for levels that training never held.
    //   codes     (n_columns, n_rows) tree codes
    //   out       (n_trees, n_rows)
    void nonconformity(const std::int32_t* codes, std::size_t n_rows, std::int32_t* out, Pulse& pulse) const {
        const ForestView forest = forest_->view();
        for (std::size_t tree = 0; tree < forest.n_trees; ++tree) {
            const auto response = static_cast<std::size_t>(forest.responses[tree]);
            const auto score = [&](const auto& holds) {
                const std::int32_t* levels = codes + response * n_rows;
                for (std::size_t row = 0; row < n_rows; ++row) {
                    if (row % kRows == 0) pulse.tick(kRows * kPerRow);
                    const bool known = levels[row] < forest.n_levels[response];
                    *out++ = known ? descend(forest, tree, levels[row], codes + row, n_rows, holds) : 0;
                }
            };
            if (has_sets(forest, tree)) {
                score([this](std::size_t at, std::int32_t level) { return has_level(at, level); });
            } else {
                const LevelPlaces& places = places_[tree];
                score([&](std::size_t at, std::int32_t level) {
                    return counts_level(forest.first[at], held_.size[at], level, places);
                });
            }
        }
    }

private:
    static constexpr std::size_t kRows = 1024, kPerRow = 64;  // and the work, roughly, of each

    bool has_sets(const ForestView& forest, std::size_t tree) const {
        return held_.offset[static_cast<std::size_t>(forest.roots[tree])] != -1;
    }

    // Checks a tree; false if its nodes have no sets of levels.
    bool check_sets(const ForestView& forest, std::size_t tree) const {
        const auto n_words = static_cast<std::int64_t>((n_levels_of(forest, tree) + 63) / 64);
        const auto n_all = static_cast<std::int64_t>(held_.sets.size());
        const bool sets = has_sets(forest, tree);
        for (auto node = static_cast<std::size_t>(forest.roots[tree]); node < forest.end_of(tree); ++node) {
            const std::int64_t offset = held_.offset[node];
            require(sets ? offset >= 0 && offset <= n_all - n_words : offset == -1,
                    "a node has no set of levels, or one too many");
        }
        return sets;
    }

    void place_levels(const ForestView& forest, std::size_t tree) {
        const auto root = static_cast<std::size_t>(forest.roots[tree]);
        const std::int64_t first = forest.first[root];
        const auto n = static_cast<std::size_t>(forest.end[root] - first);
        places_[tree] = {forest.values + first, n, first, n_levels_of(forest, tree)};
    }

    // One row down one tree; its codes are `n_rows` apart.
    template <class Holds>
    std::int32_t descend(const ForestView& forest, std::size_t tree, std::int32_t level,
                         const std::int32_t* codes, std::size_t n_rows, const Holds& holds) const {
        auto at = static_cast<std::size_t>(forest.roots[tree]);
        while (holds(at, level)) {
            const std::int32_t feature = forest.feature[at];
            if (feature == kLeaf) return 0;
            const std::int32_t code = codes[static_cast<std::size_t>(feature) * n_rows];
            const bool left = forest.goes_left(static_cast<std::int32_t>(at), code);
            at = static_cast<std::size_t>(left ? forest.left[at] : forest.right[at]);
        }
        return held_.size[at];
    }

    bool has_level(std::size_t at, std::int32_t level) const {
        return has_bit(held_.sets.data() + held_.offset[at], level);
    }

    // The same in a tree whose nodes have no sets, given the first value and the size of a node.
    bool counts_level(std::int64_t first, std::int64_t size, std::int32_t level, const LevelPlaces& places) const {
        const LevelRule rule{contradictions_, places.size()};
        return rule.holds(places.count(level, first, size), size, places.count(level));
    }

    std::shared_ptr<const Forest> forest_;
    bool contradictions_;
    NodeLevels held_;
    std::vector<LevelPlaces> places_;  // of each tree; empty if its nodes have sets
};

}  // namespace mcce
