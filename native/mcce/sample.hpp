// Step 2's inner loop: equals tests/oracles/numpy_kernels/drawing.py bit for bit.
//
// The rows of a group descend a tree together. Where columns have several trees, each row draws one, and so
// few rows of a group would come to a tree that groups with similar codes descend together.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

#include "back_off.hpp"
#include "descent.hpp"
#include "forest.hpp"
#include "groups.hpp"
#include "limits.hpp"
#include "pulse.hpp"
#include "random.hpp"

namespace mcce {

template <class Code>
class Sampler {
public:
    Sampler(const ForestView& forest, const LimitsView& limits, bool pooled, Pulse& pulse)
        : forest_(forest), limits_(limits), pooled_(pooled), pulse_(pulse), descent_(forest),
          cells_(forest.n_columns) {
        for (std::size_t tree = 0; tree < forest.n_trees; ++tree) {
            if (!tree || forest.responses[tree] != forest.responses[tree - 1])
                groves_.push_back({forest.responses[tree], tree, 0});
            most_trees_ = std::max(most_trees_, ++groves_.back().n_trees);
        }
        for (const Grove& grove : groves_) cells_of(grove.response).drawn = true;
    }

    // Codes of the responses, in column order, for every group and draw: out[response][group][draw].
    //   given   (n_columns, n_groups) tree codes
    //   keys    (n_groups,)
    //   least   (n_draws,) allowed values that a node must hold to be drawn from; null: any leaf will do
    void sample(const std::int32_t* given, std::size_t n_groups, const std::uint64_t* keys,
                const std::int64_t* draws, std::size_t n_draws, const std::int64_t* least,
                std::int32_t* out) {
        const std::vector<std::size_t> numbers = order_groups(given, n_groups);
        for (std::size_t first = 0; first < n_draws; first += kAlone) {
            const std::size_t n = std::min(kAlone, n_draws - first);
            least_ = least ? least + first : nullptr;
            most_ = least ? *std::max_element(least_, least_ + n) : 0;
            const std::size_t n_together = most_trees_ > 1 ? kTogether / n : 1;
            for (std::size_t from = 0; from < n_groups; from += n_together) {
                groups_.resize(std::min(n_together, n_groups - from));
                begin(given, n_groups, numbers.data() + from, n);
                for (std::size_t row = 0; row < n_rows(); ++row)
                    keys_[row] = absorb(keys[groups_[row / n].number], static_cast<std::uint64_t>(draws[first + row % n]));
                draw_rows();
                write(out + first, n_groups, n_draws);
            }
        }
    }

private:
    using Lists = Descent<Code>;
    using Row = typename Lists::Row;
    using Part = typename Lists::Part;
    using Cells = typename Lists::Cells;
    using Column = GroupColumn;
    // Rows of one group, and of several, that descend together.
    static constexpr std::size_t kAlone = 4096, kTogether = Lists::kRows;
    static_assert(kAlone <= kTogether, "groups of many rows are cut");
    static constexpr std::size_t kPerRow = 32;  // work, roughly, of one row in one tree

    struct Group {
        std::size_t number, first;  // of all groups, and its first row
        std::vector<Column> columns;
    };

    // The trees that predict one column.
    struct Grove {
        std::int32_t response;
        std::size_t first, n_trees;
    };

    // The values of a leaf within one run.
    struct Piece {
        const std::int32_t* values;
        std::uint32_t n;
    };

    Cells& cells_of(std::int32_t column) { return cells_[static_cast<std::size_t>(column)]; }
    Column& column_of(std::int32_t response) { return group_->columns[static_cast<std::size_t>(response)]; }
    std::size_t n_rows() const { return groups_.size() * n_each_; }

    // The groups, similar ones side by side if they descend together.
    std::vector<std::size_t> order_groups(const std::int32_t* given, std::size_t n_groups) const {
        std::vector<const std::int32_t*> columns;
        for (std::size_t j = 0; j < cells_.size(); ++j)
            if (!cells_[j].drawn && most_trees_ > 1) columns.push_back(given + j * n_groups);
        return sort_by_codes(columns, n_groups);
    }

    // Takes groups that descend together, with n rows each.
    void begin(const std::int32_t* given, std::size_t n_groups, const std::size_t* numbers, std::size_t n) {
        n_each_ = n;
        keys_.resize(n_rows());
        codes_.resize(cells_.size() * n_rows());
        for (std::size_t i = 0; i < groups_.size(); ++i) {
            groups_[i].number = numbers[i];
            groups_[i].first = i * n;
            groups_[i].columns.resize(cells_.size());
        }
        for (std::size_t j = 0; j < cells_.size(); ++j) {
            cells_[j].codes = codes_.data() + j * n_rows();
            cells_[j].met = 0;
            for (Group& group : groups_) {
                const std::size_t at = j * n_groups + group.number;
                Column& column = group.columns[j];
                column.begin(given[at]);
                if (!cells_[j].drawn) {
                    cells_[j].meet(column.given);
                    std::fill_n(cells_[j].codes + group.first, n, static_cast<Code>(column.given));
                    continue;
                }
                if (limits_.own) column.limit(limits_, at, n);
            }
        }
    }

    // Writes what was drawn, response after response in column order.
    void write(std::int32_t* out, std::size_t n_groups, std::size_t n_draws) const {
        std::size_t response = 0;
        for (std::size_t j = 0; j < cells_.size(); ++j) {
            if (!cells_[j].drawn) continue;
            for (const Group& group : groups_) {
                const Column& column = group.columns[j];
                std::int32_t* to = out + (response * n_groups + group.number) * n_draws;
                std::copy_n(cells_[j].codes + group.first, n_each_, to);
                for (std::size_t i = 0; i < n_each_ && !column.kept.empty(); ++i)
                    if (column.kept[i]) to[i] = column.own;
            }
            ++response;
        }
    }

    // Draws all rows, column by column. Lists are sorted by the column that splits read most before, so
    // that a cut of that column is found by binary search.
    void draw_rows() {
        order_.resize(n_rows());
        std::iota(order_.begin(), order_.end(), Row{0});
        sorted_by_ = kLeaf;
        std::size_t most = 0;
        for (const Grove& grove : groves_) {
            draw_column(grove);
            const std::int32_t response = grove.response;
            if (forest_.n_levels[response] > 0 || descent_.n_read(response) <= most) continue;
            most = descent_.n_read(response);
            sorted_by_ = response;
            descent_.sort(order_, cells_of(response).codes);
        }
    }

    // Draws a column of all rows: from its tree, or from the one that each row has drawn of several.
    void draw_column(const Grove& grove) {
        pulse_.tick(kPerRow * n_rows());
        halves_.clear();
        if (grove.n_trees == 1) {
            std::copy(order_.begin(), order_.end(), descent_.rows());
            return draw(grove.first, grove.response, n_rows());
        }
        chosen_.resize(n_rows());
        pooled_ ? choose_by_leaves(grove) : choose_trees(grove);
        std::vector<std::size_t> ends(grove.n_trees + 1);
        for (const std::uint16_t tree : chosen_) ++ends[tree + 1];
        std::partial_sum(ends.begin(), ends.end(), ends.begin());
        by_tree_.resize(n_rows());
        for (const Row row : order_) by_tree_[ends[chosen_[row]]++] = row;
        std::size_t first = 0;
        for (std::size_t tree = 0; tree < grove.n_trees; ++tree) {
            const std::size_t n = ends[tree] - first;
            std::copy_n(by_tree_.data() + first, n, descent_.rows());
            draw(grove.first + tree, grove.response, n);
            first = ends[tree];
        }
    }

    // Each tree alike. Of the random word, one half draws the tree, the other one the value.
    void choose_trees(const Grove& grove) {
        const auto position = static_cast<std::uint64_t>(grove.response);
        halves_.resize(n_rows());
        for (std::size_t row = 0; row < n_rows(); ++row) {
            const std::uint64_t word = absorb(keys_[row], position);
            chosen_[row] = static_cast<std::uint16_t>(pick_other(word, grove.n_trees));
            halves_[row] = static_cast<std::uint32_t>(word >> 32);
        }
    }

    // Each tree as likely as its leaf holds allowed values; the first one if none does.
    void choose_by_leaves(const Grove& grove) {
        weights_.resize(n_rows() * most_trees_);
        for (std::size_t tree = 0; tree < grove.n_trees; ++tree) {
            pulse_.tick(kPerRow * n_rows());
            std::copy(order_.begin(), order_.end(), descent_.rows());
            for (const Part& leaf : descent_.descend(grove.first + tree, n_rows(), cells_, sorted_by_))
                for_each_group(leaf, limits_.own != nullptr, [&](const Part& part) {
                    const std::uint32_t weight = find_pieces(part.at, column_of(grove.response));
                    for (std::size_t i = 0; i < part.n; ++i)
                        weights_[descent_.row(part.first + i) * most_trees_ + tree] = weight;
                });
        }
        for (std::size_t row = 0; row < n_rows(); ++row) {
            const std::uint32_t* weights = &weights_[row * most_trees_];
            const std::uint64_t total = std::accumulate(weights, weights + grove.n_trees, std::uint64_t{0});
            std::uint64_t place = pick_other(absorb(keys_[row], static_cast<std::uint64_t>(grove.response)), total);
            std::uint16_t tree = 0;
            for (; total && place >= weights[tree]; ++tree) place -= weights[tree];
            chosen_[row] = tree;
        }
    }

    // Calls a function with the rows of a leaf, or with those of each group in turn if they differ.
    template <class Function>
    void for_each_group(Part part, bool differ, const Function& function) {
        group_ = groups_.data();
        if (!differ || groups_.size() == 1) return function(part);
        Row* const rows = descent_.rows() + part.first;
        std::sort(rows, rows + part.n);
        for (std::size_t done = 0; done < part.n;) {
            group_ = &groups_[rows[done] / n_each_];
            const std::size_t end = group_->first + n_each_, from = done;
            while (done < part.n && rows[done] < end) ++done;
            function(Part{part.at, static_cast<Row>(part.first + from), static_cast<Row>(done - from)});
        }
    }

    // Sends rows down a tree, then draws a value for each from its leaf. In a second pass, so that
    // the processor can fetch a leaf while it works on another.
    void draw(std::size_t tree, std::int32_t response, std::size_t n) {
        const bool personal = limits_.own || least_;
        listed_for_ = nullptr;
        for (const Part& leaf : descent_.descend(tree, n, cells_, sorted_by_)) {
            if (!personal) {
                pick_values(leaf, response);
                continue;
            }
            for_each_group(leaf, true, [&](const Part& part) { pick_personal(part, tree, response); });
        }
    }

    void pick_personal(const Part& part, std::size_t tree, std::int32_t response) {
        const Column& column = column_of(response);
        if (least_ && is_small(part, column, tree)) {
            if (listed_for_ != group_) list_places(tree, column);
            listed_for_ = group_;
            return pick_backed_off(part, response);
        }
        column.limited ? pick_within(part, response) : pick_values(part, response);
    }

    // Whether a leaf holds too few allowed values for some row, and a node above may hold more.
    bool is_small(Part part, const Column& column, std::size_t tree) {
        const std::int64_t root = forest_.roots[tree];
        const bool may = column.limited ? column.runs != column.runs_end : forest_.first[root] < forest_.end[root];
        return may && find_pieces(part.at, column) < most_;
    }

    void list_places(std::size_t tree, const Column& column) {
        const std::int64_t root = forest_.roots[tree];
        pulse_.tick(static_cast<std::size_t>(forest_.end[root] - forest_.first[root]));
        const std::int32_t *runs = nullptr, *runs_end = nullptr;
        if (column.limited) runs = column.runs, runs_end = column.runs_end;
        places_.find(forest_, tree, column.limited, runs, runs_end);
    }

    // A value of a leaf for each row; its random half word is known if a tree was drawn before.
    void pick_values(Part part, std::int32_t response) {
        const Step& leaf = forest_.steps[part.at];
        const std::int32_t* values = forest_.values + leaf.word;
        const auto count = static_cast<std::uint32_t>(leaf.right);
        const auto position = static_cast<std::uint64_t>(response);
        Code* const codes = cells_of(response).codes;
        const auto pick_all = [&](auto place) {
            for (std::size_t i = 0; i < part.n; ++i) {
                const Row row = descent_.row(part.first + i);
                codes[row] = static_cast<Code>(values[place(row)]);
            }
        };
        if (halves_.empty()) {
            pick_all([&](Row row) { return pick(keys_[row], position, count); });
        } else {
            pick_all([&](Row row) { return std::uint64_t{halves_[row]} * count >> 32; });
        }
    }

    // The same within the limits of the column; where nothing is allowed, the own value is kept.
    void pick_within(Part part, std::int32_t response) {
        Column& column = column_of(response);
        const std::uint32_t count = find_pieces(part.at, column);
        const std::int32_t* values = forest_.values + forest_.start[part.at];
        for (std::size_t i = 0; i < part.n; ++i) {
            const Row row = descent_.row(part.first + i);
            const std::int32_t code = count ? choose(row, response, count) : column.own;
            set(response, row, code, !count || column.is_same(code));
        }
    }

    // The same from a node above the leaf, for each row the first that holds enough allowed values.
    void pick_backed_off(Part part, std::int32_t response) {
        Column& column = column_of(response);
        for (std::size_t i = 0; i < part.n; ++i) {
            const Row row = descent_.row(part.first + i);
            const std::int32_t at = places_.climb(part.at, least_[row - group_->first]);
            const AllowedPlaces::Range range = places_.range(at);
            if (!range.n) {
                set(response, row, column.own, true);
                continue;
            }
            const std::uint32_t place = pick(keys_[row], static_cast<std::uint64_t>(response),
                                             static_cast<std::uint32_t>(range.n));
            const std::int32_t code = places_.value(range.first + place);
            set(response, row, code, column.limited && column.is_same(code));
        }
    }

    void set(std::int32_t response, Row row, std::int32_t code, bool kept) {
        Column& column = column_of(response);
        cells_of(response).codes[row] = static_cast<Code>(kept ? column.given : code);
        if (!column.kept.empty()) column.kept[row - group_->first] = kept;
    }

    // The allowed values of a leaf, and how many there are.
    std::uint32_t find_pieces(std::int32_t at, const Column& column) {
        const std::int32_t* values = forest_.values + forest_.start[at];
        const std::int32_t* end = values + forest_.count[at];
        if (!column.limited) return static_cast<std::uint32_t>(end - values);
        std::uint32_t count = 0;
        pieces_.clear();
        for (const std::int32_t* run = column.runs; run != column.runs_end; run += 2) {
            values = std::lower_bound(values, end, run[0]);
            const std::int32_t* after = std::upper_bound(values, end, run[1]);
            pieces_.push_back({values, static_cast<std::uint32_t>(after - values)});
            count += pieces_.back().n;
            values = after;
        }
        return count;
    }

    // One of the `count` values in pieces_.
    std::int32_t choose(Row row, std::int32_t response, std::uint32_t count) const {
        std::uint32_t place = pick(keys_[row], static_cast<std::uint64_t>(response), count);
        const Piece* piece = pieces_.data();
        for (; place >= piece->n; ++piece) place -= piece->n;
        return piece->values[place];
    }

    ForestView forest_;
    LimitsView limits_;
    bool pooled_;
    Pulse& pulse_;
    std::vector<Grove> groves_;  // in the order in which they are visited
    std::size_t most_trees_ = 0;
    Lists descent_;
    std::vector<Group> groups_;         // that descend together ...
    std::size_t n_each_ = 0;            // ... with so many rows each
    std::vector<Cells> cells_;  // all their codes ...
    std::vector<Code> codes_;            // ... column by column
    std::vector<std::uint64_t> keys_;    // of the rows
    std::vector<Row> order_;             // in which rows enter each tree ...
    std::int32_t sorted_by_ = kLeaf;     // ... sorted by the codes of this column, if any
    Group* group_ = nullptr;             // the current one
    std::vector<Piece> pieces_;          // of the current leaf
    std::vector<std::uint16_t> chosen_;   // the tree that each row has drawn, of those of a column ...
    std::vector<std::uint32_t> halves_;   // ... the half word that its value is picked with, if known ...
    std::vector<Row> by_tree_;            // ... the rows in the order of trees ...
    std::vector<std::uint32_t> weights_;  // ... and how likely each tree was, for each row
    const std::int64_t* least_ = nullptr;  // allowed values that a row must be drawn among, if any ...
    std::int64_t most_ = 0;                // ... the largest of them
    AllowedPlaces places_;                 // of the current tree, and of this group
    const Group* listed_for_ = nullptr;
};

}  // namespace mcce
