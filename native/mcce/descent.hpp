// Rows that descend a tree together, as a list that each split divides in two.
//
// So a node is read once for all its rows, a split that they all pass on the same side costs the same for
// one row as for a thousand, and no path is a branch that the processor has to predict.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

#include "compiler.hpp"
#include "forest.hpp"

namespace mcce {

// Codes are held in 16 bits if they fit, so that more rows fit in the cache.
template <class Code>
class Descent {
public:
    using Row = std::uint16_t;
    // Rows that descend together at most, a power of two: long lists whose columns still fit in the cache.
    static constexpr std::size_t kRows = 32768 / sizeof(Code);

    // The codes of the rows in a column.
    struct Cells {
        Code* codes = nullptr;
        // Of a column that is given, the codes that there are: from the lowest to the highest, and a bit for
        // each below 64. Of a column that is drawn, any.
        std::int32_t low = 0, high = 0;
        std::uint64_t met = 0;
        bool drawn = false;

        void meet(std::int32_t code) {
            low = met ? std::min(low, code) : code;
            high = met ? std::max(high, code) : code;
            met |= std::uint64_t{1} << (static_cast<std::uint32_t>(code) % 64);
        }
    };

    // The rows that have come to a node: row(first), ..., n of them.
    struct Part {
        std::int32_t at;
        Row first, n;
    };

    struct Leaves {
        const Part *first, *last;

        const Part* begin() const { return first; }
        const Part* end() const { return last; }
    };

    explicit Descent(const ForestView& forest)
        : forest_(forest), n_read_(forest.n_columns), rows_(2 * kRows), parts_(kRows + 1), leaves_(kRows) {}

    // The rows of lists; those that are to descend next come first.
    Row* rows() { return rows_.data(); }
    Row row(std::size_t place) const { return rows_[place]; }

    // How many rows splits have read the code of a column of.
    std::size_t n_read(std::int32_t column) const { return n_read_[static_cast<std::size_t>(column)]; }

    // Sends the first n rows down a tree; `sorted_by` is the column that they are sorted by, if any.
    Leaves descend(std::size_t tree, std::size_t n, const std::vector<Cells>& columns, std::int32_t sorted_by) {
        if (n > kMany) fetch(tree);
        Part* const bottom = parts_.data();
        Part* top = push(bottom, static_cast<std::int32_t>(forest_.roots[tree]), 0, n);
        Part* arrived = leaves_.data();
        while (top != bottom) {
            Part part = *--top;
            part.at = pass(part.at, columns);
            const Step& step = forest_.steps[part.at];
            if (step.is_leaf()) {
                MCCE_PREFETCH(forest_.values + step.word);
                *arrived++ = part;
                continue;
            }
            MCCE_PREFETCH(forest_.steps + step.right);
            const Code* codes = columns[step.column()].codes;
            n_read_[step.column()] += part.n;
            const bool by_search = static_cast<std::int32_t>(step.column()) == sorted_by && part.n > kLong;
            top = by_search ? split_sorted(step, part, codes, top) : split(step, part, codes, top);
        }
        return {leaves_.data(), arrived};
    }

    // Sorts rows by their codes, those of equal codes as they are. Radix sort: no branch depends on a code.
    void sort(std::vector<Row>& rows, const Code* codes) {
        constexpr int kBits = 9;
        constexpr std::int32_t kDigits = 1 << kBits;
        std::int32_t highest = 0;
        for (const Row row : rows) highest = std::max<std::int32_t>(highest, codes[row]);
        for (int shift = 0; shift < 31 && highest >> shift; shift += kBits) {
            const auto digit = [=](Row row) { return (codes[row] >> shift) & (kDigits - 1); };
            Row place[kDigits + 1] = {};
            for (const Row row : rows) ++place[digit(row) + 1];
            std::partial_sum(place, place + kDigits, place);
            std::copy(rows.begin(), rows.end(), rows_.begin());
            for (std::size_t i = 0; i < rows.size(); ++i) rows[place[digit(rows_[i])]++] = rows_[i];
        }
    }

private:
    static constexpr std::size_t kLong = 32;   // rows above which a binary search is faster than a pass
    static constexpr std::size_t kMany = 256;  // rows that come to most of a tree

    // Asks for a whole tree, which is faster than node by node.
    void fetch(std::size_t tree) const {
        const std::size_t end = forest_.end_of(tree);
        for (auto node = static_cast<std::size_t>(forest_.roots[tree]); node < end; node += 64 / sizeof(Step))
            MCCE_PREFETCH(forest_.steps + node);
    }

    // The next push overwrites an empty part: no branch, and never more parts than rows.
    static Part* push(Part* top, std::int32_t at, std::size_t first, std::size_t n) {
        *top = {at, static_cast<Row>(first), static_cast<Row>(n)};
        return top + (n > 0);
    }

    // The first node from here on that is a leaf, or that not all rows leave on the same side.
    std::int32_t pass(std::int32_t at, const std::vector<Cells>& columns) const {
        for (;;) {
            const Step& step = forest_.steps[at];
            if (step.is_leaf()) return at;
            const Cells& cells = columns[step.column()];
            if (cells.drawn) return at;
            const std::int32_t next = next_of(step, at, cells);
            if (next == kNoNode) return at;
            at = next;
        }
    }

    // The child that rows with given codes go to, if it is the same for all.
    std::int32_t next_of(const Step& step, std::int32_t at, const Cells& cells) const {
        if (step.kind() == Step::kCut) {
            if (cells.high <= step.cut()) return at + 1;
            return cells.low > step.cut() ? step.right : kNoNode;
        }
        if (step.kind() == Step::kSet) {
            const std::uint64_t inside = cells.met & step.word;
            if (inside == cells.met) return at + 1;
            return inside ? kNoNode : step.right;
        }
        if (cells.low != cells.high) return kNoNode;
        return has_bit(forest_.sets + step.word, cells.low) ? at + 1 : step.right;
    }

    // Splits a list that is sorted by the node's column, ascending or descending, in place.
    Part* split_sorted(const Step& step, Part part, const Code* codes, Part* top) const {
        const std::int32_t cut = step.cut();
        const Row* rows = rows_.data() + part.first;
        const bool low_first = codes[*rows] <= cut;
        const Row* last = rows;  // of those on the side of the first
        for (std::size_t n = part.n; n > 1; n -= n / 2)
            last += (codes[last[n / 2]] <= cut) == low_first ? n / 2 : 0;
        const auto n_front = static_cast<std::size_t>(last - rows) + 1;
        const std::int32_t left = part.at + 1, right = step.right;
        top = push(top, low_first ? right : left, part.first + n_front, part.n - n_front);
        return push(top, low_first ? left : right, part.first, n_front);
    }

    // Splits any list, from its half of rows_ into the other.
    Part* split(const Step& step, Part part, const Code* codes, Part* top) {
        const std::size_t first = part.first ^ kRows;
        const auto partition_by = [&](auto goes_left) {
            return partition(codes, &rows_[part.first], &rows_[first], part.n, goes_left);
        };
        std::size_t n_left;
        if (step.kind() == Step::kCut) {
            n_left = partition_by([cut = step.cut()](std::int32_t code) { return code <= cut; });
        } else if (step.kind() == Step::kSet) {
            n_left = partition_by([word = step.word](std::int32_t code) { return (word >> code) & 1; });
        } else {
            n_left = partition_by([set = forest_.sets + step.word](std::int32_t code) { return has_bit(set, code); });
        }
        top = push(top, step.right, first + n_left, part.n - n_left);
        return push(top, part.at + 1, first, n_left);
    }

    // Fills in the rows that go left from the front, the others from the back, so sorted lists stay
    // sorted, ascending or descending. Each row is written to both places, as a branch would cost more;
    // a later row overwrites the wrong one.
    template <class GoesLeft>
    static std::size_t partition(const Code* codes, const Row* from, Row* to, std::size_t n,
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

    ForestView forest_;
    std::vector<std::size_t> n_read_;
    std::vector<Row> rows_;     // all lists, in two halves: lists are split from one into the other
    std::vector<Part> parts_;   // the stack of lists on their way down
    std::vector<Part> leaves_;  // lists that have reached their leaf
};

}  // namespace mcce
