// One exact CART tree on integer codes: equals tests/oracles/numpy_kernels/growing.py bit for bit.
//
// There are three ways to score the cuts of a column. Its size decides which, and all agree:
//   many codes in all             its rows are kept sorted, and every cut between them is tried;
//   few codes for the node's rows from the node's table, derived from its parent's where possible;
//   many codes for them           counted anew, level by level.
// All sums are integers. Gains are the two float64 formulas of the reference, evaluated only where a
// cheap bound says that they could win. A node that checks some columns only counts those alone.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>
#include <vector>

#include "compiler.hpp"
#include "near_rows.hpp"
#include "partition.hpp"
#include "pulse.hpp"
#include "random.hpp"
#include "responses.hpp"
#include "node_counts.hpp"
#include "tree.hpp"

namespace mcce {

template <class Response>
class Grower {
public:
    Grower(const std::vector<Column>& columns, const std::vector<std::int32_t>& inputs,
           Response response, const std::int32_t* answers, std::size_t n_rows, const Growth& growth,
           Pulse& pulse)
        : near_(columns, answers), response_(std::move(response)), growth_(growth), pulse_(pulse),
          tables_(near_.columns(), inputs, response_, n_rows), rows_(near_.columns(), inputs, n_rows),
          open_(inputs), local_(n_rows), order_(Response::kByRow ? n_rows : 0) {
        std::size_t most = 2;
        for (const auto number : inputs)
            if (!at(number).is_kept_sorted()) most = std::max(most, static_cast<std::size_t>(at(number).n_codes));
        // No more than that; memory that is not written to takes no room.
        tree_.values.reserve(n_rows);
        tallies_.assign(most, Tally{0, 0});
        met_.assign(most / 64 + 1, 0);
        levels_.resize(most + 1);
        place_.resize(most);
    }

    Tree grow() {
        std::vector<Node> waiting{{0, rows_.size(), 0, -1, 0, open_.size(), kNoTable, growth_.key}};
        while (!waiting.empty()) {
            Node node = waiting.back();
            waiting.pop_back();
            open_.resize(node.to);
            if (near_.is_beyond(node.begin)) gather_near(node);
            const std::int32_t number = tree_.size();
            if (node.parent >= 0) tree_.right[static_cast<std::size_t>(node.parent)] = number;
            if (!find_split(node)) {
                add_leaf(node);
                continue;
            }
            const ColumnSpan open{open_.data() + node.to, open_.size() - node.to};
            const std::size_t middle = rows_.divide(node.begin, node.end, best_, response_.values(), open);
            Node left{node.begin, middle, node.depth + 1, -1, node.to, open_.size(), kNoTable,
                      absorb(node.key, kLeftKey)};
            Node right{middle, node.end, node.depth + 1, number, node.to, open_.size(), kNoTable,
                       absorb(node.key, kRightKey)};
            tree_.add_split(best_, at(best_.column), left.size() >= right.size());
            // The branch of an undesired decision is never sampled from.
            if (best_.column == growth_.decision_column && !growth_.grow_undesired) left.end = left.begin;
            pass_on(node.table, left, right);
            waiting.push_back(right);
            waiting.push_back(left);
        }
        return std::move(tree_);
    }

private:
    using Value = typename Response::Value;
    using Tally = typename Response::Tally;
    using Entry = typename Response::Entry;
    using Prefix = typename Response::Prefix;

    static constexpr int kNoTable = Tables<Response>::kNone;
    static constexpr std::size_t kSparse = 256;  // codes per row above which sorting is cheaper
    static constexpr std::size_t kStretch = 16;  // cuts that are compared with the floor together
    static constexpr std::size_t kPerRow = 8;    // work, roughly, that a column is for one row of a node
    // What the key of a node absorbs to give those of its children; no column has such a number.
    static constexpr std::uint64_t kLeftKey = std::uint64_t{1} << 32, kRightKey = kLeftKey + 1;

    // Rows [begin, end) of a node.
    struct Node {
        std::size_t begin, end;
        std::int64_t depth;
        std::int32_t parent;   // whose right child this is, or -1
        std::size_t from, to;  // of open_: the columns that may still split it
        int table;             // with the counts of its rows, if any
        std::uint64_t key;     // of the order in which it checks columns

        std::size_t size() const { return end - begin; }
    };

    // Gathers the rows of a node, if they are few of all; its descendants follow before other nodes.
    void gather_near(const Node& node) {
        near_.release();
        const ColumnSpan open{open_.data() + node.from, node.to - node.from};
        if (!is_too_small(node) && near_.is_worth(node.size(), rows_.size(), open))
            near_.gather(rows_, node.begin, node.end, open);
    }

    const Column& at(std::int32_t number) const { return near_.columns()[static_cast<std::size_t>(number)]; }

    bool is_too_small(const Node& node) const {
        const std::int64_t least = std::max<std::int64_t>(
            {growth_.min_samples_split, 2 * growth_.min_samples_leaf, 2});
        return static_cast<std::int64_t>(node.size()) < least ||
               (growth_.max_depth >= 0 && node.depth >= growth_.max_depth);
    }

    // Looks for the best admissible split of a node; false if it is a leaf.
    bool find_split(Node& node) {
        if (is_too_small(node) || response_.enter(node.begin, node.size())) return false;
        best_.gain = -std::numeric_limits<double>::infinity();
        best_.column = -1;
        const auto n = static_cast<std::int64_t>(node.size());
        part_ = std::max(growth_.min_samples_leaf, (n - 1) / growth_.smallest_part + 1);
        if constexpr (!Response::kByRow) floor_ = response_.floor(best_.gain);
        growth_.draws_columns() ? check_some(node) : check_all(node);
        return best_.column >= 0;
    }

    void check_all(Node& node) {
        if (node.table == kNoTable && has_dense(node)) {
            node.table = tables_.take();
            count(node, node.size());
        }
        for (std::size_t i = node.from; i < node.to; ++i) check(open_[i], node);
    }

    // Checks columns in the random order of the node until enough had an admissible split. Those that
    // are not open have none.
    void check_some(Node& node) {
        shuffled_.clear();
        for (std::size_t i = node.from; i < node.to; ++i)
            shuffled_.emplace_back(absorb(node.key, static_cast<std::uint64_t>(open_[i])), open_[i]);
        std::sort(shuffled_.begin(), shuffled_.end());
        std::int64_t n_checked = 0;
        for (const auto& [word, number] : shuffled_) {
            if (n_checked == growth_.max_features) {
                open_.push_back(number);
                continue;
            }
            if (tables_.is_dense(number, node.size())) {
                if (node.table == kNoTable) node.table = tables_.take();
                tables_.count(response_, number, rows_.at(node.begin), node.size(), node.table, local_.data());
            }
            check(number, node);
            n_checked += admissible_;
        }
        tables_.release(node.table);
    }

    void check(std::int32_t number, const Node& node) {
        pulse_.tick(kPerRow * node.size());
        divisible_ = admissible_ = false;
        if (at(number).n_codes > 1 && fits(at(number), node)) consider(number, at(number), node);
        if (divisible_) open_.push_back(number);
    }

    // Whether a set of a column's levels is no larger than the node that it splits.
    bool fits(const Column& column, const Node& node) const {
        const auto n_rows = static_cast<std::int64_t>(node.size());
        return !column.by_set || (column.n_codes - 1) / n_rows < growth_.levels_per_row;
    }

    void consider(std::int32_t number, const Column& column, const Node& node) {
        least_ = growth_.min_samples_leaf;
        // A column of two codes splits a path only once, so it cannot make the tree deep.
        if constexpr (Response::kByRow) {
            if (column.n_codes > 2 && is_many(response_.n_present())) least_ = part_;
        }
        if (column.is_kept_sorted()) return scan_kept(number, column, node);
        if (tables_.is_dense(number, node.size())) return scan_table(number, column, node);
        column.gather(rows_.at(node.begin), node.size(), local_.data());
        if (static_cast<std::size_t>(column.n_codes) > kSparse * node.size()) {
            tally_sorted(node.size());
        } else {
            tally_marked(node.size(), static_cast<std::size_t>(column.n_codes));
        }
        if constexpr (Response::kByRow) {
            scan_rows(number, column, node);
        } else {
            scan_levels(number, column, node.size(), tallies_.data());
        }
        for (std::size_t i = 0; i < n_levels_; ++i)
            tallies_[static_cast<std::size_t>(levels_[i])] = Tally{0, 0};
    }

    bool is_many(std::size_t n) const { return static_cast<std::int64_t>(n) > growth_.many_levels; }

    bool try_split(std::int32_t number, const Prefix& prefix, std::size_t n) {
        const std::int64_t n_left = prefix.count, n_right = static_cast<std::int64_t>(n) - n_left;
        if (n_left < least_ || n_right < least_) {
            divisible_ |= n_left >= growth_.min_samples_leaf && n_right >= growth_.min_samples_leaf;
            return false;
        }
        divisible_ = admissible_ = true;
        if constexpr (!Response::kByRow) {
            if (!floor_.admits(prefix.sum, prefix.count)) return false;
        }
        const double gain = response_.gain(prefix);
        // Columns may come in any order; of equally good ones, the lowest wins.
        if (!(gain > best_.gain) && !(gain == best_.gain && number < best_.column)) return false;
        best_.gain = gain;
        best_.column = number;
        if constexpr (!Response::kByRow) floor_ = response_.floor(gain);
        return true;
    }

    // -----------------------------------------------------------------------------------------
    // Columns kept sorted.

    void scan_kept(std::int32_t number, const Column& column, const Node& node) {
        const std::uint32_t *rows = rows_.at(0), *places = rows_.sorted(number) + node.begin;
        column.with_codes([&](const auto* codes) {
            const auto code = [&](std::size_t i) { return std::uint32_t{codes[rows[places[i]]]}; };
            const auto try_cut = [&](std::size_t i, const Prefix& prefix) {
                if (code(i) != code(i + 1) && try_split(number, prefix, node.size()))
                    best_.cut = static_cast<std::int32_t>((code(i) + code(i + 1)) / 2);
            };
            if (code(0) == code(node.size() - 1)) return;
            divisible_ = true;
            // Between the first and the last place where enough rows go either way.
            const auto least = static_cast<std::size_t>(least_);
            if (2 * least > node.size() || code(least - 1) == code(node.size() - least)) return;
            admissible_ = true;
            try_cuts(places, node.size() - 1, try_cut);
        });
    }

    // Tries the cut after each place, except those that the floor rules out.
    template <class TryCut>
    void try_cuts(const std::uint32_t* places, std::size_t n_cuts, const TryCut& try_cut) {
        Prefix prefix = response_.start();
        if constexpr (Response::kByRow) {
            for (std::size_t i = 0; i < n_cuts; ++i) {
                response_.advance_row(prefix, places[i]);
                try_cut(i, prefix);
            }
        } else {
            std::int64_t sums[kStretch];
            for (std::size_t begin = 0; begin < n_cuts; begin += kStretch) {
                const std::size_t end = std::min(begin + kStretch, n_cuts);
                for (std::size_t i = begin; i < end; ++i) {
                    response_.advance_row(prefix, places[i]);
                    sums[i - begin] = prefix.sum;
                }
                const Floor floor = floor_;
                std::int64_t n_admitted = 0;
                for (std::size_t i = begin; i < end; ++i)
                    n_admitted += floor.admits(sums[i - begin], static_cast<std::int64_t>(i + 1));
                for (std::size_t i = begin; n_admitted && i < end; ++i)
                    if (floor_.admits(sums[i - begin], static_cast<std::int64_t>(i + 1)))
                        try_cut(i, Prefix::of(sums[i - begin], i + 1));
            }
        }
    }

    // -----------------------------------------------------------------------------------------
    // Columns in the node's table.

    bool has_dense(const Node& node) const {
        return std::any_of(open_.begin() + static_cast<std::ptrdiff_t>(node.from),
                           open_.begin() + static_cast<std::ptrdiff_t>(node.to),
                           [&](auto number) { return tables_.is_dense(number, node.size()); });
    }

    // Fills a node's table for the open columns that are dense in so many rows.
    void count(const Node& node, std::size_t n_rows) {
        for (std::size_t i = node.from; i < node.to; ++i)
            if (tables_.is_dense(open_[i], n_rows))
                tables_.count(response_, open_[i], rows_.at(node.begin), node.size(), node.table, local_.data());
    }

    // Derives the tables of children from their parent's.
    void pass_on(int table, Node& left, Node& right) {
        Node& smaller = left.size() <= right.size() ? left : right;
        Node& larger = left.size() <= right.size() ? right : left;
        const auto wants = [&](const Node& node) { return !is_too_small(node) && has_dense(node); };
        // A child without rows was cut off: the other one's table is not a difference.
        if (table == kNoTable || !smaller.size() || !wants(larger) || !tables_.has_room())
            return tables_.release(table);
        larger.table = table;
        smaller.table = tables_.take();
        response_.load(smaller.begin, smaller.size());
        count(smaller, larger.size());
        for (std::size_t i = larger.from; i < larger.to; ++i)
            if (tables_.is_dense(open_[i], larger.size()))
                tables_.subtract(open_[i], larger.table, smaller.table);
        if (!wants(smaller)) tables_.release(smaller.table);
    }

    void scan_table(std::int32_t number, const Column& column, const Node& node) {
        const Entry* entries = tables_.entries(node.table, number);
        n_levels_ = 0;
        for (std::int32_t code = 0; code < column.n_codes; ++code) {
            levels_[n_levels_] = code;
            n_levels_ += response_.count(entry(entries, code)) != 0;
        }
        scan_levels(number, column, node.size(), entries);
    }

    // -----------------------------------------------------------------------------------------
    // Levels: the codes of a node, counted in a table or in tallies.

    template <class Count>
    const Count* entry(const Count* counts, std::int32_t level) const {
        const std::size_t width = std::is_same_v<Count, Entry> ? response_.n_entries() : 1;
        return counts + static_cast<std::size_t>(level) * width;
    }

    // Tallies the rows per code, and lists the codes met by sorting them.
    void tally_sorted(std::size_t n) {
        n_levels_ = 0;
        for (std::size_t i = 0; i < n; ++i) {
            Tally& tally = tallies_[local_[i]];
            if (tally.count == 0) levels_[n_levels_++] = static_cast<std::int32_t>(local_[i]);
            response_.add(tally, i);
        }
        std::sort(levels_.begin(), levels_.begin() + static_cast<std::ptrdiff_t>(n_levels_));
    }

    // Tallies the rows per code, and lists the codes met from a bitmap.
    void tally_marked(std::size_t n, std::size_t n_codes) {
        for (std::size_t i = 0; i < n; ++i) {
            response_.add(tallies_[local_[i]], i);
            met_[local_[i] >> 6] |= std::uint64_t{1} << (local_[i] & 63);
        }
        n_levels_ = 0;
        for (std::size_t word = 0; word * 64 < n_codes; ++word) {
            for (std::uint64_t bits = met_[word]; bits; bits &= bits - 1)
                levels_[n_levels_++] = static_cast<std::int32_t>(word * 64) + count_trailing_zeros(bits);
            met_[word] = 0;
        }
    }

    // Scores every prefix of the node's levels, in code order or in the level order.
    template <class Count>
    void scan_levels(std::int32_t number, const Column& column, std::size_t n, const Count* counts) {
        if (n_levels_ < 2) return;
        if (!column.ordered) order_levels(counts);
        Prefix prefix = response_.start();
        std::size_t won = 0;
        for (std::size_t i = 0; i + 1 < n_levels_; ++i) {
            response_.advance(prefix, entry(counts, levels_[i]));
            if (try_split(number, prefix, n)) won = i + 1;
        }
        close(column, won);
    }

    // The same for a response that takes its rows one by one.
    void scan_rows(std::int32_t number, const Column& column, const Node& node) {
        if (n_levels_ < 2) return;
        if (!column.ordered) order_levels(tallies_.data());
        std::uint32_t next = 0;
        for (std::size_t i = 0; i < n_levels_; ++i) {
            const auto level = static_cast<std::size_t>(levels_[i]);
            place_[level] = next;
            next += static_cast<std::uint32_t>(tallies_[level].count);
        }
        for (std::size_t i = 0; i < node.size(); ++i)
            order_[place_[local_[i]]++] = static_cast<std::uint32_t>(node.begin + i);
        Prefix prefix = response_.start();
        std::size_t won = 0, done = 0;
        for (std::size_t i = 0; i + 1 < n_levels_; ++i) {
            for (const std::size_t end = place_[static_cast<std::size_t>(levels_[i])]; done < end; ++done)
                response_.advance_row(prefix, order_[done]);
            if (try_split(number, prefix, node.size())) won = i + 1;
        }
        close(column, won);
    }

    // Levels by mean response, ties by number. Many of them must not be split off few by few.
    template <class Count>
    void order_levels(const Count* counts) {
        if (is_many(n_levels_)) least_ = part_;
        keyed_.clear();
        for (std::size_t i = 0; i < n_levels_; ++i)
            keyed_.emplace_back(response_.level_mean(entry(counts, levels_[i])), levels_[i]);
        std::sort(keyed_.begin(), keyed_.end());
        for (std::size_t i = 0; i < n_levels_; ++i) levels_[i] = keyed_[i].second;
    }

    // Records the split after the first `won` levels, if any.
    void close(const Column& column, std::size_t won) {
        // Levels that are no prefix of the order here may be one in a descendant.
        divisible_ |= !column.ordered;
        if (!won) return;
        best_.cut = (levels_[won - 1] + levels_[won]) / 2;
        best_.n_left_levels = won;
        if (!column.ordered)
            best_.levels.assign(levels_.begin(), levels_.begin() + static_cast<std::ptrdiff_t>(n_levels_));
    }

    void add_leaf(Node& node) {
        for (std::size_t i = node.begin; i < node.end; ++i) tree_.values.push_back(near_.answers()[*rows_.at(i)]);
        tree_.add_leaf(node.size());
        tables_.release(node.table);
    }

    NearRows near_;
    Response response_;  // its values are in the order of rows_
    Growth growth_;
    Pulse& pulse_;
    Tree tree_;
    Tables<Response> tables_;

    // The current node: the best split so far, whether the current column may split it or a descendant,
    // and whether it may split it.
    Split best_;
    Floor floor_{1, 0, 1.0, 0.0};
    bool divisible_ = false, admissible_ = false;
    std::int64_t least_ = 0, part_ = 0;  // rows on either side: of the current column, and of even splits

    Partition<Value> rows_;
    std::vector<std::int32_t> open_;

    std::vector<std::int32_t> levels_;
    std::size_t n_levels_ = 0;
    std::vector<Tally> tallies_;
    std::vector<std::uint64_t> met_;
    std::vector<std::pair<double, std::int32_t>> keyed_;
    std::vector<std::pair<std::uint64_t, std::int32_t>> shuffled_;
    std::vector<std::uint32_t> place_, local_, order_;
};

}  // namespace mcce
