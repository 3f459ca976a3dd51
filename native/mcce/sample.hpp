// Step 2's inner loop: equals kernels/reference/_sample.py bit for bit.
//
// The rows of a group descend a tree together, as a list that each split divides in two. So a node is
// read once for all its rows, a split on a given column costs the same for one row as for a thousand,
// and no path is a branch that the processor has to predict.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

#include "back_off.hpp"
#include "forest.hpp"
#include "limits.hpp"
#include "pulse.hpp"
#include "random.hpp"

namespace mcce {

class Sampler {
public:
    Sampler(const ForestView& forest, const LimitsView& limits, const GuideView& guide, Pulse& pulse)
        : forest_(forest), limits_(limits), guide_(guide), pulse_(pulse),
          responses_(forest.responses, forest.responses + forest.n_trees),
          keys_(kRows), order_(kRows), rows_(2 * kRows), parts_(kRows + 1), leaves_(kRows) {}

    // Codes of the responses, in column order, for every group and draw: out[response][group][draw].
    //   given   (n_columns, n_groups) descent codes
    //   keys    (n_groups,)
    //   least   (n_draws,) allowed values that a node must hold to be drawn from; null: any leaf will do
    void sample(const std::int32_t* given, std::size_t n_groups, const std::uint64_t* keys,
                const std::int64_t* draws, std::size_t n_draws, const std::int64_t* least,
                std::int32_t* out) {
        const std::size_t n_columns = forest_.n_columns;
        columns_.assign(n_columns, {});
        for (const std::int32_t response : responses_) columns_[response].drawn = out;
        for (std::size_t group = 0; group < n_groups; ++group) {
            for (std::size_t j = 0; j < n_columns; ++j) {
                columns_[j].given = given[j * n_groups + group];
                columns_[j].kept.clear();
                if (limits_.own) limit(columns_[j], j * n_groups + group);
                if (guide_.own) guide(columns_[j], j * n_groups + group);
            }
            for (std::size_t first = 0; first < n_draws; first += kRows) {
                const std::size_t n = std::min(kRows, n_draws - first);
                for (std::size_t i = 0; i < n; ++i)
                    keys_[i] = absorb(keys[group], static_cast<std::uint64_t>(draws[first + i]));
                least_ = least ? least + first : nullptr;
                most_ = least ? *std::max_element(least_, least_ + n) : 0;
                std::int32_t* to = out + group * n_draws + first;
                for (Column& column : columns_) {
                    if (!column.drawn) continue;
                    column.drawn = to;
                    to += n_groups * n_draws;
                }
                draw_rows(n);
            }
        }
    }

private:
    using Row = std::uint16_t;
    // Rows that descend together, a power of two: long lists whose columns still fit in the cache.
    static constexpr std::size_t kRows = 4096;
    static constexpr std::size_t kLong = 32;  // rows above which a binary search is faster than a pass
    static constexpr std::size_t kPerRow = 32;  // work, roughly, of one row in one tree

    struct Column {
        std::int32_t* drawn = nullptr;  // the rows' codes; null for a given column ...
        std::int32_t given = 0;         // ... where all have this one
        std::size_t n_read = 0;         // rows that splits have read the code of
        bool limited = false;
        std::int32_t own = 0, same_low = 0, same_high = 0;
        std::int32_t stays = -1;  // with this value in a leaf, guided draws prefer the own one
        const std::int32_t *runs = nullptr, *runs_end = nullptr;
        std::vector<std::uint8_t> kept;  // rows with the own value, if its code is not the given one

        bool is_same(std::int32_t code) const { return code >= same_low && code <= same_high; }
    };

    // The values of a leaf within one run.
    struct Piece {
        const std::int32_t* values;
        std::uint32_t n;
    };

    // The rows that have come to a node: rows_[first], ..., n of them.
    struct Part {
        std::int32_t at;
        Row first, n;
    };

    // Draws n rows of one group, tree by tree. Lists are sorted by the column that splits read most in
    // the groups before, so that a cut of that column is found by binary search.
    void draw_rows(std::size_t n) {
        std::iota(order_.begin(), order_.end(), Row{0});
        sorted_by_ = kLeaf;
        std::size_t most = 0;
        for (std::size_t tree = 0; tree < forest_.n_trees; ++tree) {
            const std::int32_t response = responses_[tree];
            pulse_.tick(kPerRow * n);
            draw(tree, response, n);
            const Column& column = columns_[response];
            if (forest_.n_levels[response] > 0 || column.n_read <= most) continue;
            most = column.n_read;
            sorted_by_ = response;
            sort_order(column.drawn, n);
        }
        for (const Column& column : columns_)
            for (std::size_t i = 0; i < n && !column.kept.empty(); ++i)
                if (column.kept[i]) column.drawn[i] = column.own;
    }

    // Sets the limits of a column for one group.
    void limit(Column& column, std::size_t at) const {
        column.limited = column.drawn && limits_.first[at] >= 0;
        if (!column.limited) return;
        column.own = limits_.own[at];
        column.same_low = limits_.same[2 * at];
        column.same_high = limits_.same[2 * at + 1];
        column.runs = limits_.runs + 2 * limits_.first[at];
        column.runs_end = limits_.runs + 2 * limits_.last[at];
        if (column.own != column.given) column.kept.resize(kRows);
    }

    // Sets what guided draws of a column prefer for one group.
    void guide(Column& column, std::size_t at) const {
        if (!column.drawn) return;
        column.own = guide_.own[at];
        column.stays = guide_.stays[at];
        column.kept.resize(column.own != column.given ? kRows : 0);
    }

    // Radix sort by code: no branch depends on a code.
    void sort_order(const std::int32_t* codes, std::size_t n) {
        constexpr int kBits = 9;
        constexpr std::int32_t kDigits = 1 << kBits;
        const std::int32_t highest = *std::max_element(codes, codes + n);
        for (int shift = 0; shift < 31 && highest >> shift; shift += kBits) {
            const auto digit = [=](Row row) { return (codes[row] >> shift) & (kDigits - 1); };
            Row place[kDigits + 1] = {};
            for (std::size_t i = 0; i < n; ++i) ++place[digit(order_[i]) + 1];
            std::partial_sum(place, place + kDigits, place);
            std::copy_n(order_.data(), n, rows_.data());
            for (std::size_t i = 0; i < n; ++i) order_[place[digit(rows_[i])]++] = rows_[i];
        }
    }

    // Sends all rows down a tree, then draws a value for each from its leaf. In a second pass, so that
    // the processor can fetch a leaf while it works on another.
    void draw(std::size_t tree, std::int32_t response, std::size_t n) {
        std::copy_n(order_.data(), n, rows_.data());
        Part* const bottom = parts_.data();
        Part* top = push(bottom, static_cast<std::int32_t>(forest_.roots[tree]), 0, n);
        Part* arrived = leaves_.data();
        while (top != bottom) {
            Part part = *--top;
            part.at = pass_given(part.at);
            const std::int32_t feature = forest_.feature[part.at];
            if (feature == kLeaf) {
                *arrived++ = part;
                continue;
            }
            columns_[feature].n_read += part.n;
            const bool by_search = feature == sorted_by_ && part.n > kLong;
            top = by_search ? split_sorted(part, top) : split(part, top);
        }
        const bool limited = columns_[response].limited, guided = guide_.own != nullptr;
        bool listed = false;
        for (const Part* leaf = leaves_.data(); leaf != arrived; ++leaf) {
            if (least_ && is_small(*leaf, columns_[response], tree)) {
                if (!listed) list_places(tree, columns_[response]);
                listed = true;
                pick_backed_off(*leaf, response);
                continue;
            }
            limited ? pick_within(*leaf, response)
                    : guided ? pick_guided(*leaf, response) : pick_values(*leaf, response);
        }
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
        places_.find(forest_, tree, column.limited, runs, runs_end, column.stays);
    }

    // The next push overwrites an empty part: no branch, and never more parts than rows.
    static Part* push(Part* top, std::int32_t at, std::size_t first, std::size_t n) {
        *top = {at, static_cast<Row>(first), static_cast<Row>(n)};
        return top + (n > 0);
    }

    // The first node from here on that is a leaf or splits on a drawn column.
    std::int32_t pass_given(std::int32_t at) const {
        for (;;) {
            const std::int32_t feature = forest_.feature[at];
            if (feature == kLeaf || columns_[feature].drawn) return at;
            const bool left = forest_.goes_left(at, columns_[feature].given);
            at = left ? forest_.left[at] : forest_.right[at];
        }
    }

    // Splits a list that is sorted by the node's column, ascending or descending, in place.
    Part* split_sorted(Part part, Part* top) const {
        const std::int32_t cut = forest_.cut[part.at];
        const std::int32_t* codes = columns_[sorted_by_].drawn;
        const Row* rows = rows_.data() + part.first;
        const bool low_first = codes[*rows] <= cut;
        const Row* last = rows;  // of those on the side of the first
        for (std::size_t n = part.n; n > 1; n -= n / 2)
            last += (codes[last[n / 2]] <= cut) == low_first ? n / 2 : 0;
        const auto n_front = static_cast<std::size_t>(last - rows) + 1;
        const std::int32_t left = forest_.left[part.at], right = forest_.right[part.at];
        top = push(top, low_first ? right : left, part.first + n_front, part.n - n_front);
        return push(top, low_first ? left : right, part.first, n_front);
    }

    // Splits any list, from its half of rows_ into the other.
    Part* split(Part part, Part* top) {
        const std::int32_t feature = forest_.feature[part.at], cut = forest_.cut[part.at];
        const std::int32_t n_levels = forest_.n_levels[feature];
        const std::size_t first = part.first ^ kRows;
        const auto partition_by = [&](auto goes_left) {
            return partition(columns_[feature].drawn, &rows_[part.first], &rows_[first], part.n, goes_left);
        };
        std::size_t n_left;
        if (n_levels == 0) {
            n_left = partition_by([=](std::int32_t code) { return code <= cut; });
        } else if (n_levels < 64) {  // with the bit of unseen levels, one word
            const std::uint64_t word = forest_.sets[cut];
            n_left = partition_by([=](std::int32_t code) { return (word >> code) & 1; });
        } else {
            const std::uint64_t* set = forest_.sets + cut;
            n_left = partition_by([=](std::int32_t code) { return has_bit(set, code); });
        }
        top = push(top, forest_.right[part.at], first + n_left, part.n - n_left);
        return push(top, forest_.left[part.at], first, n_left);
    }

    // Fills in the rows that go left from the front, the others from the back, so sorted lists stay
    // sorted, ascending or descending. Each row is written to both places, as a branch would cost more;
    // a later row overwrites the wrong one.
    template <class GoesLeft>
    static std::size_t partition(const std::int32_t* codes, const Row* from, Row* to, std::size_t n,
                                 GoesLeft goes_left) {
        std::size_t n_left = 0;
        Row* back = to + n;  // less the rows so far; the next free place from the back is back[n_left]
        for (std::size_t i = 0; i < n; ++i) {
            const Row row = from[i];
            to[n_left] = row;
            (--back)[n_left] = row;
            n_left += goes_left(codes[row]);
        }
        return n_left;
    }

    void pick_values(Part part, std::int32_t response) const {
        const std::int32_t* values = forest_.values + forest_.start[part.at];
        const auto count = static_cast<std::uint32_t>(forest_.count[part.at]);
        const auto position = static_cast<std::uint64_t>(response);
        const Row* rows = rows_.data() + part.first;
        std::int32_t* drawn = columns_[response].drawn;
        for (std::size_t i = 0; i < part.n; ++i)
            drawn[rows[i]] = values[pick(keys_[rows[i]], position, count)];
    }

    // The same, guided: a leaf that holds the own value may keep it.
    void pick_guided(Part part, std::int32_t response) {
        const std::int32_t* values = forest_.values + forest_.start[part.at];
        const auto count = static_cast<std::uint32_t>(forest_.count[part.at]);
        const auto position = static_cast<std::uint64_t>(response);
        Column& column = columns_[response];
        const bool may_stay = lets_stay(column.stays, values, values + count);
        for (std::size_t i = 0; i < part.n; ++i) {
            const Row row = rows_[part.first + i];
            const bool kept = may_stay && stays(row, response);
            column.drawn[row] = kept ? column.given : values[pick(keys_[row], position, count)];
            if (!column.kept.empty()) column.kept[row] = kept;
        }
    }

    // Whether a guided row keeps the own value. Its random word is none that values are picked with.
    bool stays(Row row, std::int32_t response) const {
        return happens(keys_[row], static_cast<std::uint64_t>(response) + columns_.size(), guide_.often);
    }

    // The same within the limits of the column; where nothing is allowed, the own value is kept.
    void pick_within(Part part, std::int32_t response) {
        Column& column = columns_[response];
        const std::uint32_t count = find_pieces(part.at, column);
        const std::int32_t* values = forest_.values + forest_.start[part.at];
        const bool may_stay = guide_.own && lets_stay(column.stays, values, values + forest_.count[part.at]);
        for (std::size_t i = 0; i < part.n; ++i) {
            const Row row = rows_[part.first + i];
            const bool wanted = may_stay && stays(row, response);
            const std::int32_t code = count && !wanted ? choose(row, response, count) : column.own;
            set(column, row, code, wanted || !count || column.is_same(code));
        }
    }

    // The same from a node above the leaf, for each row the first that holds enough allowed values.
    void pick_backed_off(Part part, std::int32_t response) {
        Column& column = columns_[response];
        for (std::size_t i = 0; i < part.n; ++i) {
            const Row row = rows_[part.first + i];
            const std::int32_t at = places_.climb(part.at, least_[row]);
            const AllowedPlaces::Range range = places_.range(at);
            if (!range.n || (guide_.own && places_.lets_stay(at) && stays(row, response))) {
                set(column, row, column.own, true);
                continue;
            }
            const std::uint32_t place = pick(keys_[row], static_cast<std::uint64_t>(response),
                                             static_cast<std::uint32_t>(range.n));
            const std::int32_t code = places_.value(range.first + place);
            set(column, row, code, column.limited && column.is_same(code));
        }
    }

    static void set(Column& column, Row row, std::int32_t code, bool kept) {
        column.drawn[row] = kept ? column.given : code;
        if (!column.kept.empty()) column.kept[row] = kept;
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
    GuideView guide_;
    Pulse& pulse_;
    std::vector<std::int32_t> responses_;
    std::vector<Column> columns_;
    std::vector<std::uint64_t> keys_;  // of the rows
    std::vector<Row> order_;           // in which rows enter each tree ...
    std::int32_t sorted_by_ = kLeaf;   // ... sorted by the codes of this column, if any
    std::vector<Row> rows_;            // all lists, in two halves: lists are split from one into the other
    std::vector<Part> parts_;          // the stack of lists on their way down
    std::vector<Part> leaves_;         // lists that have reached their leaf
    std::vector<Piece> pieces_;        // of the current leaf
    const std::int64_t* least_ = nullptr;  // allowed values that a row must be drawn among, if any ...
    std::int64_t most_ = 0;                // ... the largest of them
    AllowedPlaces places_;                 // of the current tree and group
};

}  // namespace mcce
