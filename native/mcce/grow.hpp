// One exact CART tree on integer codes: equals kernels/reference/_grow.py bit for bit.
//
// A node's rows are counted per code. Which way depends on sizes alone, never the result:
//   two codes      counted in registers;
//   few codes      counted into an array with a bitmap of the codes met, scanned in code order;
//   many codes     sorted as (code, row) pairs where the node is small against the column.
// All sums are integers; gains are the two float64 formulas of the reference, evaluated only where a
// cheap exact-enough bound says that they could win.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace mcce {

constexpr std::int32_t kLeaf = -1;

// Descent codes of one column in the width it needs, and how it may be split.
struct Column {
    const void* codes;
    int width;  // bytes: 1, 2 or 4
    std::int32_t n_codes;
    bool by_set;
    bool ordered;
    const std::uint32_t* order;  // rows by code, for an ordered column of many codes; else null
};

struct Growth {
    std::int64_t min_samples_leaf;
    std::int64_t min_samples_split;
    std::int64_t max_depth;  // negative: no limit
    std::int32_t decision_column;
    bool grow_undesired;
};

struct Tree {
    std::vector<std::int32_t> feature, cut, left, right, count;
    std::vector<std::int64_t> start;
    std::vector<std::uint64_t> sets;
    std::vector<std::int32_t> values;
};

// The best division of a node so far, and what is needed to carry it out.
struct Split {
    double gain = -std::numeric_limits<double>::infinity();
    std::int32_t column = -1;          // none yet
    std::int32_t cut = 0;              // ordered columns: codes <= cut go left
    std::vector<std::int32_t> levels;  // unordered ones: the node's levels in order ...
    std::size_t n_left_levels = 0;     // ... of which so many go left
};

// ---------------------------------------------------------------------------------------------
// Responses: what a node is made pure in. A `Cell` tallies the rows of one code, a `Prefix` those
// that would go left. `gain` is false where the split certainly gains less than `best`.

class NumberResponse {
public:
    struct Cell {
        std::int64_t sum, count;
    };
    using Prefix = Cell;
    static constexpr bool kNeedsRows = false;

    explicit NumberResponse(const std::int64_t* units) : units_(units) {}

    // Takes a node's rows; true if it is pure.
    bool enter(const std::uint32_t* rows, std::size_t n) {
        node_.resize(n);
        const std::int64_t first = units_[rows[0]];
        std::int64_t sum = 0;
        bool pure = true;
        for (std::size_t i = 0; i < n; ++i) {
            node_[i] = units_[rows[i]];
            sum += node_[i];
            pure &= node_[i] == first;
        }
        if (pure) return true;
        const auto size = static_cast<std::int64_t>(n);
        mean_ = sum / size - (sum % size < 0);
        for (auto& unit : node_) unit -= mean_;
        all_ = {sum - size * mean_, size};
        return false;
    }
    Prefix start() const { return {0, 0}; }
    void advance_row(Prefix& prefix, std::uint32_t row) const {
        prefix.sum += units_[row] - mean_;
        ++prefix.count;
    }
    void add(Cell& cell, std::size_t i) const {
        cell.sum += node_[i];
        ++cell.count;
    }
    // The rows with code 1 in a column of two codes.
    Cell ones(const std::uint32_t* codes, std::size_t n) const {
        std::int64_t sum = 0, count = 0;
        for (std::size_t i = 0; i < n; ++i) {
            const auto one = static_cast<std::int64_t>(codes[i]);
            sum += node_[i] & -one;
            count += one;
        }
        return {sum, count};
    }
    const Cell& all() const { return all_; }
    static Cell minus(const Cell& a, const Cell& b) { return {a.sum - b.sum, a.count - b.count}; }
    static double level_mean(const Cell& cell) {
        return static_cast<double>(cell.sum) / static_cast<double>(cell.count);
    }
    static void advance(Prefix& prefix, const Cell& cell) {
        prefix.sum += cell.sum;
        prefix.count += cell.count;
    }
    bool gain(const Prefix& prefix, double best, double& gain) const {
        const auto n = static_cast<double>(all_.count);
        const auto n_left = static_cast<double>(prefix.count);
        const double n_right = n - n_left;
        const double t = static_cast<double>(prefix.sum) * n - static_cast<double>(all_.sum) * n_left;
        if (t * t < (best * (1.0 - 1e-9) - 1e-6) * (n_left * n_right) * n) return false;
        const double gap = static_cast<double>(prefix.sum) / n_left -
                           static_cast<double>(all_.sum - prefix.sum) / n_right;
        gain = (gap * gap) * (n_left * n_right / n);
        return true;
    }

private:
    const std::int64_t* units_;
    std::vector<std::int64_t> node_;  // the node's units, centred by their floor mean
    std::int64_t mean_ = 0;
    Cell all_{0, 0};
};

class BinaryResponse {
public:
    struct Cell {
        std::int32_t hits, count;
    };
    using Prefix = Cell;
    static constexpr bool kNeedsRows = false;

    explicit BinaryResponse(const std::int32_t* classes) : classes_(classes) {}

    bool enter(const std::uint32_t* rows, std::size_t n) {
        node_.resize(n);
        std::int32_t hits = 0;
        for (std::size_t i = 0; i < n; ++i) {
            node_[i] = static_cast<std::uint8_t>(classes_[rows[i]]);
            hits += node_[i];
        }
        all_ = {hits, static_cast<std::int32_t>(n)};
        purity_ = static_cast<double>(squares(all_)) / static_cast<double>(n);
        return hits == 0 || hits == all_.count;
    }
    Prefix start() const { return {0, 0}; }
    void advance_row(Prefix& prefix, std::uint32_t row) const {
        prefix.hits += classes_[row];
        ++prefix.count;
    }
    void add(Cell& cell, std::size_t i) const {
        cell.hits += node_[i];
        ++cell.count;
    }
    Cell ones(const std::uint32_t* codes, std::size_t n) const {
        std::int32_t hits = 0, count = 0;
        for (std::size_t i = 0; i < n; ++i) {
            hits += static_cast<std::int32_t>(codes[i]) & node_[i];
            count += static_cast<std::int32_t>(codes[i]);
        }
        return {hits, count};
    }
    const Cell& all() const { return all_; }
    static Cell minus(const Cell& a, const Cell& b) { return {a.hits - b.hits, a.count - b.count}; }
    static double level_mean(const Cell& cell) {
        return static_cast<double>(cell.hits) / static_cast<double>(cell.count);
    }
    static void advance(Prefix& prefix, const Cell& cell) {
        prefix.hits += cell.hits;
        prefix.count += cell.count;
    }
    bool gain(const Prefix& prefix, double best, double& gain) const {
        const Cell rest = minus(all_, prefix);
        const auto n = static_cast<double>(all_.count);
        const auto n_left = static_cast<double>(prefix.count);
        const auto n_right = static_cast<double>(rest.count);
        const auto t = static_cast<double>(static_cast<std::int64_t>(prefix.hits) * all_.count -
                                           static_cast<std::int64_t>(all_.hits) * prefix.count);
        if (2.0 * t * t < (best * (1.0 - 1e-9) - 1e-6) * (n_left * n_right) * n) return false;
        gain = static_cast<double>(squares(prefix)) / n_left +
               static_cast<double>(squares(rest)) / n_right - purity_;
        return true;
    }

private:
    static std::int64_t squares(const Cell& cell) {
        const std::int64_t hits = cell.hits, rest = cell.count - cell.hits;
        return hits * hits + rest * rest;
    }
    const std::int32_t* classes_;
    std::vector<std::uint8_t> node_;
    Cell all_{0, 0};
    double purity_ = 0.0;
};

// Many classes: a row that goes left when `seen` of its class stand there adds 2 seen + 1 to the
// sum of squares on the left, so the work does not depend on the number of classes.
class ClassResponse {
public:
    struct Cell {
        std::int32_t hits, count;  // rows of the node's most frequent class, and all
    };
    struct Prefix {
        std::int64_t squares, cross, count;
    };
    static constexpr bool kNeedsRows = true;

    ClassResponse(const std::int32_t* classes, std::size_t n_classes)
        : classes_(classes), totals_(n_classes), left_(n_classes) {}

    bool enter(const std::uint32_t* rows, std::size_t n) {
        for (const auto k : present_) totals_[static_cast<std::size_t>(k)] = 0;
        present_.clear();
        node_.resize(n);
        for (std::size_t i = 0; i < n; ++i) {
            node_[i] = classes_[rows[i]];
            if (totals_[static_cast<std::size_t>(node_[i])]++ == 0) present_.push_back(node_[i]);
        }
        all_squares_ = 0;
        target_ = present_[0];
        for (const auto k : present_) {
            const std::int64_t count = total(k), most = total(target_);
            all_squares_ += count * count;
            if (count > most || (count == most && k < target_)) target_ = k;
        }
        purity_ = static_cast<double>(all_squares_) / static_cast<double>(n);
        return present_.size() == 1;
    }
    void add(Cell& cell, std::size_t i) const {
        cell.hits += node_[i] == target_;
        ++cell.count;
    }
    static double level_mean(const Cell& cell) {
        return static_cast<double>(cell.hits) / static_cast<double>(cell.count);
    }
    Prefix start() {
        for (const auto k : present_) left_[static_cast<std::size_t>(k)] = 0;
        return {0, 0, 0};
    }
    void advance_row(Prefix& prefix, std::uint32_t row) {
        const auto k = static_cast<std::size_t>(classes_[row]);
        prefix.squares += 2 * left_[k]++ + 1;
        prefix.cross += totals_[k];
        ++prefix.count;
    }
    bool gain(const Prefix& prefix, double, double& gain) const {
        const std::int64_t right = all_squares_ - 2 * prefix.cross + prefix.squares;
        const auto n_right = static_cast<std::int64_t>(node_.size()) - prefix.count;
        gain = static_cast<double>(prefix.squares) / static_cast<double>(prefix.count) +
               static_cast<double>(right) / static_cast<double>(n_right) - purity_;
        return true;
    }

private:
    std::int64_t total(std::int32_t k) const { return totals_[static_cast<std::size_t>(k)]; }

    const std::int32_t* classes_;
    std::vector<std::int32_t> node_, present_;
    std::vector<std::int64_t> totals_, left_;
    std::int64_t all_squares_ = 0;
    std::int32_t target_ = 0;
    double purity_ = 0.0;
};

// ---------------------------------------------------------------------------------------------
// The tree itself.

template <class Response>
class Grower {
public:
    using Cell = typename Response::Cell;

    Grower(const std::vector<Column>& columns, const std::vector<std::int32_t>& inputs,
           Response response, const std::int32_t* answers, std::size_t n_rows, const Growth& growth)
        : columns_(columns), inputs_(inputs), response_(std::move(response)),
          answers_(answers), growth_(growth), rows_(n_rows), local_(n_rows), order_(n_rows) {
        std::int32_t most = 2;
        for (const auto column : inputs) most = std::max(most, at(column).n_codes);
        cells_.assign(static_cast<std::size_t>(most), Cell{0, 0});
        others_.assign(static_cast<std::size_t>(most), Cell{0, 0});
        met_.assign(static_cast<std::size_t>(most) / 64 + 1, 0);
        place_.resize(static_cast<std::size_t>(most) + 1);
        goes_left_.resize(static_cast<std::size_t>(most) + 1);
        for (std::size_t i = 0; i < n_rows; ++i) rows_[i] = static_cast<std::uint32_t>(i);
        keep_orders(n_rows);
    }

    Tree grow() {
        struct Waiting {
            std::size_t begin, end;
            std::int64_t depth;
            std::int32_t parent;  // whose right child this is, or -1
        };
        std::vector<Waiting> waiting{{0, rows_.size(), 0, -1}};
        while (!waiting.empty()) {
            const Waiting here = waiting.back();
            waiting.pop_back();
            const auto node = static_cast<std::int32_t>(tree_.feature.size());
            if (here.parent >= 0) tree_.right[static_cast<std::size_t>(here.parent)] = node;
            if (!find_split(here.begin, here.end, here.depth)) {
                add_leaf(here.begin, here.end);
                continue;
            }
            const std::size_t middle = divide(here.begin, here.end);
            add_split(middle - here.begin, here.end - middle);
            const bool skip = best_.column == growth_.decision_column && !growth_.grow_undesired;
            waiting.push_back({middle, here.end, here.depth + 1, node});
            waiting.push_back({here.begin, skip ? here.begin : middle, here.depth + 1, -1});
        }
        return std::move(tree_);
    }

private:
    struct Kept {
        std::uint32_t row, code;
    };

    void keep_orders(std::size_t n_rows) {
        kept_.resize(columns_.size());
        for (const auto number : inputs_) {
            const Column& column = at(number);
            if (!column.order) continue;
            kept_columns_.push_back(number);
            gather(column, 0, n_rows);
            auto& kept = kept_[static_cast<std::size_t>(number)];
            kept.resize(n_rows);
            for (std::size_t i = 0; i < n_rows; ++i) kept[i] = {column.order[i], local_[column.order[i]]};
        }
        if (kept_columns_.empty()) return;
        side_.resize(n_rows);
        aside_.resize(n_rows);
    }

    const Column& at(std::int32_t column) const { return columns_[static_cast<std::size_t>(column)]; }

    // Looks for the best admissible split of rows [begin, end); false if the node is a leaf.
    bool find_split(std::size_t begin, std::size_t end, std::int64_t depth) {
        const auto n = static_cast<std::int64_t>(end - begin);
        const std::int64_t least = std::max<std::int64_t>(
            {growth_.min_samples_split, 2 * growth_.min_samples_leaf, 2});
        if (n < least || (growth_.max_depth >= 0 && depth >= growth_.max_depth)) return false;
        if (response_.enter(&rows_[begin], end - begin)) return false;
        best_.gain = -std::numeric_limits<double>::infinity();
        best_.column = -1;
        for (const auto column : inputs_) consider(column, begin, end - begin);
        return best_.column >= 0;
    }

    void consider(std::int32_t number, std::size_t begin, std::size_t n) {
        const Column& column = at(number);
        if (column.n_codes < 2) return;
        if (column.order) return scan_kept(number, kept_[static_cast<std::size_t>(number)], begin, n);
        const auto n_codes = static_cast<std::size_t>(column.n_codes);
        if constexpr (!Response::kNeedsRows) {
            if (n_codes > 2 && n_codes <= n && column.ordered) return scan_dense(number, column, begin, n);
        }
        gather(column, begin, n);
        if constexpr (!Response::kNeedsRows) {
            if (n_codes == 2) return consider_two(number, n);
        }
        if (n_codes > kSparse * n) {
            levels_.clear();
            count_sorted(n);
        } else {
            count_marked(n);
            if constexpr (!Response::kNeedsRows) {
                if (column.ordered) return scan_marked(number, n_codes, n);
            }
            levels_.clear();
            list_marked(n_codes);
        }
        if (levels_.size() > 1) scan(number, column, begin, n);
        for (const auto level : levels_) cells_[static_cast<std::size_t>(level)] = Cell{0, 0};
    }

    // Scores every cut of a column whose rows are kept in order.
    void scan_kept(std::int32_t number, const std::vector<Kept>& kept, std::size_t begin, std::size_t n) {
        auto prefix = response_.start();
        const Kept* entry = &kept[begin];
        for (std::size_t i = 0; i + 1 < n; ++i) {
            response_.advance_row(prefix, entry[i].row);
            if (entry[i].code != entry[i + 1].code && try_split(number, prefix, prefix.count, n))
                best_.cut = static_cast<std::int32_t>((entry[i].code + entry[i + 1].code) / 2);
        }
    }

    // The node's codes of a column, side by side.
    void gather(const Column& column, std::size_t begin, std::size_t n) {
        const std::uint32_t* rows = &rows_[begin];
        with_codes(column, [&](const auto* codes) {
            for (std::size_t i = 0; i < n; ++i) local_[i] = codes[rows[i]];
        });
    }

    // Calls a function with a column's codes in their own width.
    template <class Function>
    static void with_codes(const Column& column, const Function& function) {
        if (column.width == 1) {
            function(static_cast<const std::uint8_t*>(column.codes));
        } else if (column.width == 2) {
            function(static_cast<const std::uint16_t*>(column.codes));
        } else {
            function(static_cast<const std::uint32_t*>(column.codes));
        }
    }

    void consider_two(std::int32_t number, std::size_t n) {
        if constexpr (!Response::kNeedsRows) {
            const Cell one = response_.ones(local_.data(), n);
            const Cell zero = Response::minus(response_.all(), one);
            if (one.count == 0 || zero.count == 0) return;
            const bool swap = !at(number).ordered &&
                              Response::level_mean(one) < Response::level_mean(zero);
            typename Response::Prefix prefix{0, 0};
            Response::advance(prefix, swap ? one : zero);
            if (try_split(number, prefix, prefix.count, n)) {
                best_.cut = 0;
                best_.levels = swap ? std::vector<std::int32_t>{1, 0} : std::vector<std::int32_t>{0, 1};
                best_.n_left_levels = 1;
            }
        }
    }

    // Tallies the rows per code, and lists the codes met by sorting them.
    void count_sorted(std::size_t n) {
        for (std::size_t i = 0; i < n; ++i) {
            if (cells_[local_[i]].count == 0) levels_.push_back(static_cast<std::int32_t>(local_[i]));
            response_.add(cells_[local_[i]], i);
        }
        std::sort(levels_.begin(), levels_.end());
    }

    // Tallies the rows per code, and marks the codes met in a bitmap.
    void count_marked(std::size_t n) {
        for (std::size_t i = 0; i < n; ++i) {
            response_.add(cells_[local_[i]], i);
            met_[local_[i] >> 6] |= std::uint64_t{1} << (local_[i] & 63);
        }
    }

    // Scores every cut of an ordered column with fewer codes than the node has rows. Rows are counted
    // in two tallies by turns: one alone would wait for itself where most rows have one code.
    void scan_dense(std::int32_t number, const Column& column, std::size_t begin, std::size_t n) {
        const auto n_codes = static_cast<std::size_t>(column.n_codes);
        const std::uint32_t* rows = &rows_[begin];
        const auto count = [&](const auto* codes) {
            std::size_t i = 0;
            for (; i + 1 < n; i += 2) {
                response_.add(cells_[codes[rows[i]]], i);
                response_.add(others_[codes[rows[i + 1]]], i + 1);
            }
            if (i < n) response_.add(cells_[codes[rows[i]]], i);
        };
        with_codes(column, count);
        typename Response::Prefix prefix{0, 0};
        std::size_t before = 0;
        bool won = false;
        for (std::size_t code = 0; code < n_codes; ++code) {
            if (cells_[code].count + others_[code].count == 0) continue;
            if (won) best_.cut = static_cast<std::int32_t>((before + code) / 2);
            Response::advance(prefix, cells_[code]);
            Response::advance(prefix, others_[code]);
            cells_[code] = others_[code] = Cell{0, 0};
            won = try_split(number, prefix, prefix.count, n);
            before = code;
        }
    }

    void list_marked(std::size_t n_codes) {
        for (std::size_t word = 0; word * 64 < n_codes; ++word) {
            for (std::uint64_t bits = met_[word]; bits; bits &= bits - 1)
                levels_.push_back(static_cast<std::int32_t>(word * 64) + __builtin_ctzll(bits));
            met_[word] = 0;
        }
    }

    // Scores every cut of an ordered column straight from the bitmap, clearing as it goes.
    void scan_marked(std::int32_t number, std::size_t n_codes, std::size_t n) {
        typename Response::Prefix prefix{0, 0};
        std::size_t before = 0;
        bool won = false;
        for (std::size_t word = 0; word * 64 < n_codes; ++word) {
            for (std::uint64_t bits = met_[word]; bits; bits &= bits - 1) {
                const std::size_t code = word * 64 + static_cast<std::size_t>(__builtin_ctzll(bits));
                if (won) best_.cut = static_cast<std::int32_t>((before + code) / 2);
                Response::advance(prefix, cells_[code]);
                cells_[code] = Cell{0, 0};
                won = try_split(number, prefix, prefix.count, n);
                before = code;
            }
            met_[word] = 0;
        }
    }

    // Scores every prefix of the node's levels, in code order or in the level order.
    void scan(std::int32_t number, const Column& column, std::size_t begin, std::size_t n) {
        if (!column.ordered) order_levels();
        const std::vector<std::int32_t>& levels = column.ordered ? levels_ : ranked_;
        std::size_t won = 0;
        if constexpr (Response::kNeedsRows) {
            won = scan_rows(number, levels, begin, n);
        } else {
            typename Response::Prefix prefix{0, 0};
            for (std::size_t i = 0; i + 1 < levels.size(); ++i) {
                Response::advance(prefix, cells_[static_cast<std::size_t>(levels[i])]);
                if (try_split(number, prefix, prefix.count, n)) won = i + 1;
            }
        }
        if (!won) return;
        best_.cut = (levels[won - 1] + levels[won]) / 2;
        best_.n_left_levels = won;
        if (!column.ordered) best_.levels = levels;
    }

    // The same for a response that must see the rows level by level.
    std::size_t scan_rows(std::int32_t number, const std::vector<std::int32_t>& levels,
                          std::size_t begin, std::size_t n) {
        std::uint32_t next = 0;
        for (const auto level : levels) {
            place_[static_cast<std::size_t>(level)] = next;
            next += static_cast<std::uint32_t>(cells_[static_cast<std::size_t>(level)].count);
        }
        for (std::size_t i = 0; i < n; ++i) order_[place_[local_[i]]++] = rows_[begin + i];
        auto prefix = response_.start();
        std::size_t won = 0, done = 0;
        for (std::size_t i = 0; i + 1 < levels.size(); ++i) {
            const auto size = static_cast<std::size_t>(cells_[static_cast<std::size_t>(levels[i])].count);
            for (const std::size_t end = done + size; done < end; ++done)
                response_.advance_row(prefix, order_[done]);
            if (try_split(number, prefix, prefix.count, n)) won = i + 1;
        }
        return won;
    }

    template <class Prefix>
    bool try_split(std::int32_t number, const Prefix& prefix, std::int64_t n_left, std::size_t n) {
        const std::int64_t n_right = static_cast<std::int64_t>(n) - n_left;
        if (n_left < growth_.min_samples_leaf || n_right < growth_.min_samples_leaf) return false;
        double gain;
        if (!response_.gain(prefix, best_.gain, gain) || !(gain > best_.gain)) return false;
        best_.gain = gain;
        best_.column = number;
        return true;
    }

    // Levels by mean response, ties by number.
    void order_levels() {
        keyed_.clear();
        for (const auto level : levels_)
            keyed_.emplace_back(Response::level_mean(cells_[static_cast<std::size_t>(level)]), level);
        std::sort(keyed_.begin(), keyed_.end());
        ranked_.clear();
        for (const auto& entry : keyed_) ranked_.push_back(entry.second);
    }

    // Moves the rows that go left to the front; returns where the right ones begin.
    std::size_t divide(std::size_t begin, std::size_t end) {
        const Column& column = at(best_.column);
        gather(column, begin, end - begin);
        if (!column.ordered)
            for (std::size_t i = 0; i < best_.levels.size(); ++i)
                goes_left_[static_cast<std::size_t>(best_.levels[i])] = i < best_.n_left_levels;
        const auto cut = static_cast<std::uint32_t>(best_.cut);
        std::size_t left = begin, right = 0;
        for (std::size_t i = begin; i < end; ++i) {
            const std::uint32_t row = rows_[i], code = local_[i - begin];
            const bool goes_left = column.ordered ? code <= cut : goes_left_[code] != 0;
            rows_[left] = row;
            order_[right] = row;
            left += goes_left;
            right += !goes_left;
        }
        std::copy(order_.begin(), order_.begin() + static_cast<std::ptrdiff_t>(right),
                  rows_.begin() + static_cast<std::ptrdiff_t>(left));
        if (!kept_columns_.empty()) divide_kept(begin, left, end);
        return left;
    }

    // The same division of every kept order, so that each stays in order within the children.
    void divide_kept(std::size_t begin, std::size_t middle, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i) side_[rows_[i]] = i < middle;
        for (const auto number : kept_columns_) {
            std::vector<Kept>& kept = kept_[static_cast<std::size_t>(number)];
            std::size_t left = begin, right = 0;
            for (std::size_t i = begin; i < end; ++i) {
                const Kept entry = kept[i];
                const bool goes_left = side_[entry.row];
                kept[left] = entry;
                aside_[right] = entry;
                left += goes_left;
                right += !goes_left;
            }
            std::copy(aside_.begin(), aside_.begin() + static_cast<std::ptrdiff_t>(right),
                      kept.begin() + static_cast<std::ptrdiff_t>(left));
        }
    }

    void add_leaf(std::size_t begin, std::size_t end) {
        const std::size_t start = tree_.values.size();
        for (std::size_t i = begin; i < end; ++i) tree_.values.push_back(answers_[rows_[i]]);
        std::sort(tree_.values.begin() + static_cast<std::ptrdiff_t>(start), tree_.values.end());
        add_node(kLeaf, 0, 0, start, end - begin);
    }

    void add_split(std::size_t n_left, std::size_t n_right) {
        const Column& column = at(best_.column);
        std::int32_t cut = best_.cut;
        if (column.by_set) {
            cut = static_cast<std::int32_t>(tree_.sets.size());
            add_set(column, n_left >= n_right);
        }
        add_node(best_.column, cut, static_cast<std::int32_t>(tree_.feature.size()) + 1, 0, 0);
    }

    // The levels that go left; those the node does not hold follow the order, or the larger child.
    void add_set(const Column& column, bool left_is_larger) {
        const auto n_codes = static_cast<std::size_t>(column.n_codes);
        std::fill_n(goes_left_.begin(), n_codes + 1, static_cast<std::uint8_t>(left_is_larger));
        if (column.ordered) {
            for (std::size_t code = 0; code < n_codes; ++code)
                goes_left_[code] = code <= static_cast<std::size_t>(best_.cut);
        } else {
            for (std::size_t i = 0; i < best_.levels.size(); ++i)
                goes_left_[static_cast<std::size_t>(best_.levels[i])] = i < best_.n_left_levels;
        }
        const std::size_t start = tree_.sets.size();
        tree_.sets.resize(start + (n_codes + 64) / 64, 0);
        for (std::size_t code = 0; code <= n_codes; ++code)
            if (goes_left_[code]) tree_.sets[start + code / 64] |= std::uint64_t{1} << (code % 64);
    }

    void add_node(std::int32_t feature, std::int32_t cut, std::int32_t left, std::size_t start,
                  std::size_t count) {
        tree_.feature.push_back(feature);
        tree_.cut.push_back(cut);
        tree_.left.push_back(left);
        tree_.right.push_back(0);
        tree_.start.push_back(static_cast<std::int64_t>(start));
        tree_.count.push_back(static_cast<std::int32_t>(count));
    }

    static constexpr std::size_t kSparse = 256;  // codes per row beyond which sorting is cheaper

    const std::vector<Column>& columns_;
    const std::vector<std::int32_t>& inputs_;
    Response response_;
    const std::int32_t* answers_;
    Growth growth_;
    Tree tree_;
    Split best_;
    std::vector<std::uint32_t> rows_, local_, order_, place_;
    std::vector<Cell> cells_, others_;
    std::vector<std::int32_t> levels_, ranked_;
    std::vector<std::pair<double, std::int32_t>> keyed_;
    std::vector<std::uint64_t> met_;
    std::vector<std::uint8_t> goes_left_, side_;
    std::vector<std::int32_t> kept_columns_;
    std::vector<std::vector<Kept>> kept_;  // by column number
    std::vector<Kept> aside_;
};

}  // namespace mcce
