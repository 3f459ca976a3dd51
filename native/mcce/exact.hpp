// Every row that the chain could draw for one person: equals tests/oracles/numpy_kernels/drawing.py bit for bit.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "forest.hpp"
#include "limits.hpp"
#include "pulse.hpp"

namespace mcce {

// The person whose rows are listed.
struct Person {
    const std::int32_t *given, *own;  // (n_columns,) tree codes, and exact ones
    const std::int32_t* stays;        // (n_columns,) what a leaf must hold for the own value to stay
    LimitsView limits;                // of one group
    const double* costs;              // of a change to each code, all columns concatenated
    const std::int64_t* offsets;      // (n_columns,) where the codes of a column begin in costs
};

// Which rows are listed: the first n_best with n_changes changes that come after a given row.
struct Wish {
    std::size_t n_changes, n_best;
    double after_total;
    const std::int32_t* after;  // (n_trees,) in column order
    std::int64_t max_nodes;
};

class Enumerator {
public:
    Enumerator(const ForestView& forest, const Person& person, Pulse& pulse)
        : forest_(forest), responses_(forest.responses, forest.responses + forest.n_trees), person_(person),
          pulse_(pulse), now_(person.given, person.given + forest.n_columns), drawn_(forest.n_columns), place_(forest.n_trees),
          row_(forest.n_trees), cost_(forest.n_trees), forced_(forest.n_trees + 1) {
        for (const std::int32_t response : responses_) drawn_[response] = true;
        std::vector<std::size_t> n_before(forest.n_columns + 1, 0);
        for (std::size_t j = 0; j < forest.n_columns; ++j) n_before[j + 1] = n_before[j] + drawn_[j];
        for (std::size_t tree = 0; tree < forest.n_trees; ++tree)
            place_[tree] = n_before[static_cast<std::size_t>(responses_[tree])];
        visits_.resize(forest.n_trees);
        for (std::size_t tree = forest.n_trees; tree-- > 0;)
            forced_[tree] = forced_[tree + 1] + !can_stay(tree);
    }

    void list(const Wish& wish) {
        wish_ = wish;
        complete_ = true;
        n_nodes_ = 0;
        n_visits_ = 0;
        rows_.clear();
        best_.clear();
        enter(0, 0, 0.0);
        while (n_visits_)
            if (!go_on()) leave();
        std::sort(best_.begin(), best_.end(), [this](const Entry& a, const Entry& b) { return before(a, b); });
    }

    bool complete() const { return complete_; }
    std::int64_t n_nodes() const { return n_nodes_; }
    std::size_t size() const { return best_.size(); }

    // The rows in order: codes[place][row], and their totals.
    void write(std::int32_t* codes, double* totals) const {
        for (std::size_t i = 0; i < best_.size(); ++i) {
            totals[i] = best_[i].total;
            for (std::size_t place = 0; place < row_.size(); ++place)
                codes[place * best_.size() + i] = rows_[best_[i].slot * row_.size() + place];
        }
    }

private:
    struct Entry {
        double total;
        std::size_t slot;  // of rows_
    };

    // What a leaf can give: its values within the runs. Codes from same_low to same_high count as own.
    struct Leaf {
        const std::int32_t *values, *end, *runs, *runs_end;
        std::int32_t own, same_low, same_high;
        bool may_stay;
    };

    // A leaf of each tree up to the current one, and how far its values have been taken.
    struct Visit {
        Leaf leaf;
        const std::int32_t *run, *value;  // the current ones; value is null before the first of a run
        bool stays;                       // whether the own value is still to be taken
        std::size_t n_changed;
        double total;
    };

    static constexpr std::size_t kPerNode = 64;  // work, roughly, of visiting a node
    static constexpr double kClose = 1.0 - 1.0 / (1 << 30);  // sums in another order of addition differ by less

    void enter(std::size_t tree, std::size_t n_changed, double total) {
        const std::size_t n_left = forest_.n_trees - tree;
        if (n_changed + forced_[tree] > wish_.n_changes || n_changed + n_left < wish_.n_changes) return;
        if (best_.size() == wish_.n_best && total * kClose > best_.front().total) return;
        if (n_left == 0) return offer();
        if (n_nodes_ == wish_.max_nodes) complete_ = false;
        if (!complete_) return;
        ++n_nodes_;
        pulse_.tick(kPerNode);
        Visit& visit = visits_[n_visits_++];
        visit.leaf = read(tree, descend(static_cast<std::int32_t>(forest_.roots[tree])));
        visit.run = visit.leaf.runs;
        visit.value = nullptr;
        visit.stays = visit.leaf.may_stay;
        visit.n_changed = n_changed;
        visit.total = total;
    }

    // Takes values of the current leaf, the own one first, until one leads on to the next tree's leaf; false if
    // none does any more.
    bool go_on() {
        Visit& visit = visits_[n_visits_ - 1];
        const Leaf& leaf = visit.leaf;
        const std::size_t tree = n_visits_ - 1;
        const std::int32_t column = responses_[tree];
        if (visit.stays) {
            visit.stays = false;
            take(tree, leaf.own, person_.given[column], 0.0, visit.n_changed, visit.total);
            return true;
        }
        if (visit.n_changed == wish_.n_changes) return false;
        const double* costs = person_.costs + person_.offsets[column];
        for (; visit.run != leaf.runs_end; visit.run += 2, visit.value = nullptr) {
            while (next_change(visit)) {
                const std::int32_t code = *visit.value;
                require(costs[code] >= 0.0, "a cost is negative or NaN");  // here, as few of many are used
                take(tree, code, code, costs[code], visit.n_changed + 1, visit.total + costs[code]);
                if (n_visits_ > tree + 1) return true;
            }
        }
        return false;
    }

    // Moves on to the next value of the current run that is a change.
    static bool next_change(Visit& visit) {
        const Leaf& leaf = visit.leaf;
        do {
            visit.value = visit.value ? std::upper_bound(visit.value, leaf.end, *visit.value)
                                      : std::lower_bound(leaf.values, leaf.end, visit.run[0]);
            if (visit.value == leaf.end || *visit.value > visit.run[1]) return false;
        } while (*visit.value == leaf.own || (*visit.value >= leaf.same_low && *visit.value <= leaf.same_high));
        return true;
    }

    void leave() {
        const std::int32_t column = responses_[--n_visits_];
        now_[column] = person_.given[column];
    }

    void take(std::size_t tree, std::int32_t code, std::int32_t descent, double cost, std::size_t n_changed,
              double total) {
        now_[responses_[tree]] = descent;
        row_[place_[tree]] = code;
        cost_[place_[tree]] = cost;
        enter(tree + 1, n_changed, total);
    }

    std::int32_t descend(std::int32_t at) const {
        while (forest_.feature[at] != kLeaf) at = goes_left(at) ? forest_.left[at] : forest_.right[at];
        return at;
    }

    bool goes_left(std::int32_t at) const { return forest_.goes_left(at, now_[forest_.feature[at]]); }

    Leaf read(std::size_t tree, std::int32_t at) const {
        static constexpr std::int32_t kAll[] = {0, std::numeric_limits<std::int32_t>::max()};
        const std::int32_t column = responses_[tree];
        const std::int32_t* values = forest_.values + forest_.start[at];
        Leaf leaf{values, values + forest_.count[at], kAll, kAll + 2, person_.own[column], 1, 0, false};
        if (person_.limits.own && person_.limits.first[column] >= 0) {
            leaf.runs = person_.limits.runs + 2 * person_.limits.first[column];
            leaf.runs_end = person_.limits.runs + 2 * person_.limits.last[column];
            leaf.same_low = person_.limits.same[2 * column];
            leaf.same_high = person_.limits.same[2 * column + 1];
            leaf.may_stay = !holds(leaf, leaf.values[0], leaf.end[-1]) ||
                            holds(leaf, leaf.same_low, leaf.same_high);
        }
        leaf.may_stay |= lets_stay(person_.stays[column], leaf.values, leaf.end);
        return leaf;
    }

    // Whether a leaf has an allowed value from low to high.
    static bool holds(const Leaf& leaf, std::int32_t low, std::int32_t high) {
        for (const std::int32_t* run = leaf.runs; run != leaf.runs_end; run += 2) {
            const std::int32_t* value = std::lower_bound(leaf.values, leaf.end, std::max(low, run[0]));
            if (value != leaf.end && *value <= std::min(high, run[1])) return true;
        }
        return false;
    }

    // Whether some leaf of a tree can give the own value, whatever the trees before it give.
    bool can_stay(std::size_t tree) {
        pulse_.tick(kPerNode * (forest_.end_of(tree) - static_cast<std::size_t>(forest_.roots[tree])));
        std::vector<std::int32_t> open{static_cast<std::int32_t>(forest_.roots[tree])};
        while (!open.empty()) {
            const std::int32_t at = open.back();
            open.pop_back();
            if (forest_.feature[at] == kLeaf) {
                if (forest_.count[at] && read(tree, at).may_stay) return true;
                continue;
            }
            const bool both = drawn_[forest_.feature[at]];
            if (both || !goes_left(at)) open.push_back(forest_.right[at]);
            if (both || goes_left(at)) open.push_back(forest_.left[at]);
        }
        return false;
    }

    bool before(const Entry& a, const Entry& b) const {
        return less(a.total, row_at(a.slot), b.total, row_at(b.slot));
    }

    bool less(double total, const std::int32_t* row, double than_total, const std::int32_t* than) const {
        if (total != than_total) return total < than_total;
        return std::lexicographical_compare(row, row + row_.size(), than, than + row_.size());
    }

    const std::int32_t* row_at(std::size_t slot) const { return rows_.data() + slot * row_.size(); }

    // Inserts the current row among the best, a heap with the worst at the front.
    void offer() {
        const double total = std::accumulate(cost_.begin(), cost_.end(), 0.0);
        if (!less(wish_.after_total, wish_.after, total, row_.data())) return;
        const auto order = [this](const Entry& a, const Entry& b) { return before(a, b); };
        Entry entry{total, best_.size()};
        if (best_.size() == wish_.n_best) {
            if (!less(total, row_.data(), best_.front().total, row_at(best_.front().slot))) return;
            std::pop_heap(best_.begin(), best_.end(), order);
            entry.slot = best_.back().slot;
            best_.pop_back();
            const auto place = static_cast<std::ptrdiff_t>(entry.slot * row_.size());
            std::copy(row_.begin(), row_.end(), rows_.begin() + place);
        } else {
            rows_.insert(rows_.end(), row_.begin(), row_.end());
        }
        best_.push_back(entry);
        std::push_heap(best_.begin(), best_.end(), order);
    }

    ForestView forest_;
    std::vector<std::int32_t> responses_;
    Person person_;
    Pulse& pulse_;
    std::vector<std::int32_t> now_;      // tree codes of the current row
    std::vector<std::uint8_t> drawn_;    // whether a column is a response
    std::vector<std::size_t> place_;     // of each tree's response in column order
    std::vector<std::int32_t> row_;      // the current row, in column order ...
    std::vector<double> cost_;           // ... and the cost of each change
    std::vector<std::size_t> forced_;    // features that must change, per tree counted from it to the last
    std::vector<Visit> visits_;          // of the trees so far; recursion would be too deep for many trees
    std::size_t n_visits_ = 0;
    Wish wish_{};
    bool complete_ = true;
    std::int64_t n_nodes_ = 0;
    std::vector<std::int32_t> rows_;
    std::vector<Entry> best_;
};

}  // namespace mcce
