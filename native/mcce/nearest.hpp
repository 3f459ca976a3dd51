// Distances to the nearest of many rows.
//
// A k-d tree over the rows, and of many columns an estimate of every distance. They only decide which rows
// can be skipped. A distance is summed feature by feature in column order, so they cannot change a bit.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "forest.hpp"
#include "gower.hpp"
#include "pulse.hpp"

namespace mcce {

// The rows in the order of the tree's leaves, and its nodes.
struct Neighbours {
    std::vector<double> points;
    std::vector<std::int64_t> first, last, left, right;  // rows and children of each node
    std::vector<std::int32_t> column;                    // that splits it, -1 for a leaf
    std::vector<double> left_edge, right_edge;           // greatest number or level left, least right
};

// Searches recurse, so the tree must be shallow; splits at the median make it so, but for odd data.
constexpr std::size_t kMaxDepth = 256;

class NeighbourBuilder {
public:
    // points   (n_rows, n_columns): range-scaled numbers, or levels where `is_level`
    NeighbourBuilder(const double* points, std::size_t n_rows, std::size_t n_columns,
                     const std::uint8_t* is_level, Pulse& pulse)
        : points_(points), n_columns_(n_columns), is_level_(is_level), pulse_(pulse), order_(n_rows) {
        // Numbers that cannot be compared cannot be put in order.
        std::size_t n_compared = 0;
        for (std::size_t i = 0; i < n_rows * n_columns; ++i) n_compared += points[i] == points[i];
        require(n_compared == n_rows * n_columns, "a point is NaN");
        std::iota(order_.begin(), order_.end(), std::size_t{0});
    }

    Neighbours build() {
        build(0, order_.size(), 0);
        built_.points.reserve(order_.size() * n_columns_);
        for (const std::size_t row : order_)
            built_.points.insert(built_.points.end(), points_ + row * n_columns_,
                                 points_ + (row + 1) * n_columns_);
        return std::move(built_);
    }

private:
    static constexpr std::size_t kFew = 24;  // rows that are not split further

    double value(std::size_t row, std::size_t column) const { return points_[row * n_columns_ + column]; }

    std::size_t build(std::size_t first, std::size_t last, std::size_t depth) {
        const std::size_t at = built_.first.size();
        built_.first.push_back(static_cast<std::int64_t>(first));
        built_.last.push_back(static_cast<std::int64_t>(last));
        for (auto* children : {&built_.left, &built_.right}) children->push_back(0);
        for (auto* edges : {&built_.left_edge, &built_.right_edge}) edges->push_back(0.0);
        built_.column.push_back(-1);
        if (last - first <= kFew || depth == kMaxDepth) return at;
        double widest = 0.0;
        std::size_t column = 0;
        for (std::size_t j = 0; j < n_columns_; ++j) {
            pulse_.tick(2 * (last - first));
            const double width = spread(first, last, j);
            if (width > widest) widest = width, column = j;
        }
        if (widest == 0.0) return at;
        built_.column[at] = static_cast<std::int32_t>(column);
        const std::size_t middle = part(first, last, column, at);
        const std::size_t left = build(first, middle, depth + 1), right = build(middle, last, depth + 1);
        built_.left[at] = static_cast<std::int64_t>(left);
        built_.right[at] = static_cast<std::int64_t>(right);
        return at;
    }

    auto place(std::size_t i) { return order_.begin() + static_cast<std::ptrdiff_t>(i); }

    // Splits rows at the median, so that the tree stays shallow; levels by number.
    std::size_t part(std::size_t first, std::size_t last, std::size_t column, std::size_t at) {
        const auto half = place(first + (last - first) / 2);
        std::nth_element(place(first), half, place(last),
                         [&](std::size_t a, std::size_t b) { return value(a, column) < value(b, column); });
        const double pivot = value(*half, column);
        auto middle = std::partition(place(first), place(last),
                                     [&](std::size_t row) { return value(row, column) < pivot; });
        if (middle == place(first))
            middle = std::partition(middle, place(last),
                                    [&](std::size_t row) { return value(row, column) <= pivot; });
        double low = -std::numeric_limits<double>::infinity(), high = -low;
        for (auto it = place(first); it != middle; ++it) low = std::max(low, value(*it, column));
        for (auto it = middle; it != place(last); ++it) high = std::min(high, value(*it, column));
        built_.left_edge[at] = low;
        built_.right_edge[at] = high;
        return static_cast<std::size_t>(middle - order_.begin());
    }

    // How far apart rows may be in a column.
    double spread(std::size_t first, std::size_t last, std::size_t column) const {
        double low = value(order_[first], column), high = low;
        for (std::size_t i = first; i < last; ++i) {
            low = std::min(low, value(order_[i], column));
            high = std::max(high, value(order_[i], column));
        }
        return is_level_[column] ? level_gap(low, high) : std::min(scaled_gap(low, high), 1.0);
    }

    const double* points_;
    std::size_t n_columns_;
    const std::uint8_t* is_level_;
    Pulse& pulse_;
    std::vector<std::size_t> order_;
    Neighbours built_;
};

// Refuses a tree in which a search could leave the rows or not end.
inline void check_neighbours(const Neighbours& tree, std::size_t n_rows, std::size_t n_columns) {
    const std::size_t n = tree.first.size();
    require(n > 0 && tree.last.size() == n && tree.left.size() == n && tree.right.size() == n &&
                tree.column.size() == n && tree.left_edge.size() == n && tree.right_edge.size() == n,
            "the arrays of nodes differ in size");
    std::vector<std::size_t> depth(n, 0);  // 0 for nodes that are nobody's child so far
    for (std::size_t at = 0; at < n; ++at) {
        require(0 <= tree.first[at] && tree.first[at] <= tree.last[at] &&
                    tree.last[at] <= static_cast<std::int64_t>(n_rows),
                "a node has rows that there are not");
        if (tree.column[at] < 0) continue;
        require(static_cast<std::size_t>(tree.column[at]) < n_columns, "a node is divided by no column");
        for (const std::int64_t child : {tree.left[at], tree.right[at]}) {
            require(static_cast<std::int64_t>(at) < child && child < static_cast<std::int64_t>(n),
                    "a child does not come after its parent");
            std::size_t& its_depth = depth[static_cast<std::size_t>(child)];
            require(!its_depth, "a node has two parents");
            its_depth = depth[at] + 1;
            require(its_depth <= kMaxDepth, "the tree is too deep");
        }
    }
}

// Columns in single precision, from the least value of each on: enough to estimate the distances of a row to
// all rows, many at a time, and those of the next one from the cells in which it differs. Empty for few
// columns, where a tree is better.
class ShortColumns {
public:
    static constexpr std::size_t kMany = 16;

    ShortColumns(const double* points, std::size_t n_rows, std::size_t n_columns)
        : n_rows_(n_rows), least_(n_columns < kMany ? 0 : n_columns, std::numeric_limits<double>::infinity()),
          cells_(n_rows * least_.size()) {
        std::vector<float> row(least_.size()), most(least_.size());
        for (std::size_t i = 0; i < n_rows; ++i)
            for (std::size_t j = 0; j < least_.size(); ++j)
                least_[j] = std::min(least_[j], points[i * n_columns + j]);
        for (std::size_t i = 0; i < n_rows; ++i) {
            shorten(points + i * n_columns, row.data());
            for (std::size_t j = 0; j < row.size(); ++j) {
                cells_[j * n_rows + i] = row[j];
                if (row[j] < kFar) most[j] = std::max(most[j], row[j]);
            }
        }
        for (const float value : most) error_ += kRounding * (2.0 + static_cast<double>(value));
        error_ += kRounding * static_cast<double>(most.size()) * static_cast<double>(most.size());
    }

    std::size_t size() const { return least_.size(); }
    std::size_t n_rows() const { return n_rows_; }
    // By how much an estimate may be off.
    double error() const { return error_; }

    void shorten(const double* row, float* out) const {
        for (std::size_t j = 0; j < least_.size(); ++j)
            out[j] = static_cast<float>(std::min(std::max(row[j] - least_[j], -double{kFar}), double{kFar}));
    }

    // Adds the gaps of all rows to a cell in one column.
    void add(std::size_t j, float cell, float* totals) const {
        const float* cells = &cells_[j * n_rows_];
        for (std::size_t i = 0; i < n_rows_; ++i) totals[i] += gap(cells[i], cell);
    }

    // Replaces the gaps to one cell by those to another.
    void exchange(std::size_t j, float from, float to, float* totals) const {
        const float* cells = &cells_[j * n_rows_];
        for (std::size_t i = 0; i < n_rows_; ++i) totals[i] += gap(cells[i], to) - gap(cells[i], from);
    }

private:
    static constexpr float kFar = 1e30F;
    static constexpr double kRounding = 4e-7;  // of one number, several times over

    // Two levels that differ are at least 1 apart.
    static float gap(float one, float other) {
        const float apart = std::fabs(one - other);
        return apart < 1.0F ? apart : 1.0F;
    }

    std::size_t n_rows_;
    std::vector<double> least_;
    std::vector<float> cells_;  // by column, then row
    double error_ = 0.0;        // only gaps below 1 are not exact
};

// The rows as a search reads them.
struct NeighboursView {
    const double* points;
    std::size_t n_columns;
    const std::uint8_t* is_level;
    const Neighbours& tree;
    const ShortColumns& short_columns;
};

class Seeker {
public:
    Seeker(const NeighboursView& all, std::size_t k)
        : all_(all), tree_(all.tree), k_(k), offset_(all.n_columns, 0.0), short_(all.short_columns.size()) {}

    // Distances of a row to the k nearest, ascending; infinite beyond the number of rows.
    void seek(const double* row, double* best) {
        std::fill_n(best, k_, std::numeric_limits<double>::infinity());
        if (short_.empty()) return visit(0, row, 0.0, best);
        estimate(row);
        const double error = all_.short_columns.error();
        for (std::size_t i = 0; i < totals_.size(); ++i)
            if (static_cast<double>(totals_[i]) <= best[k_ - 1] + error) measure(i, row, best);
    }

private:
    // A row with more other cells than one in so many is estimated anew.
    static constexpr std::size_t kFewOthers = 8;
    static constexpr double kSlack = 1.0 - 1e-9;  // bounds are summed in another order than distances

    void visit(std::size_t at, const double* row, double bound, double* best) {
        if (tree_.column[at] < 0) return look(at, row, best);
        const auto column = static_cast<std::size_t>(tree_.column[at]);
        const double own = row[column], left_edge = tree_.left_edge[at], right_edge = tree_.right_edge[at];
        const bool is_level = all_.is_level[column];
        const double left = own > left_edge ? (is_level ? 1.0 : scaled_gap(own, left_edge)) : 0.0;
        const double right = own < right_edge ? (is_level ? 1.0 : scaled_gap(own, right_edge)) : 0.0;
        const bool left_first = left <= right;
        for (const bool go_left : {left_first, !left_first}) {
            const double was = offset_[column], now = std::max(was, go_left ? left : right);
            const double total = bound - was + now;
            if (total * kSlack >= best[k_ - 1]) continue;
            offset_[column] = now;
            visit(static_cast<std::size_t>(go_left ? tree_.left[at] : tree_.right[at]), row, total, best);
            offset_[column] = was;
        }
    }

    void look(std::size_t at, const double* row, double* best) const {
        for (std::int64_t i = tree_.first[at]; i < tree_.last[at]; ++i)
            measure(static_cast<std::size_t>(i), row, best);
    }

    // Puts the distance to one of the rows among the best, if it is.
    void measure(std::size_t i, const double* row, double* best) const {
        const double* point = all_.points + i * all_.n_columns;
        double total = 0.0;
        for (std::size_t j = 0; j < all_.n_columns && total < best[k_ - 1]; ++j)
            total += all_.is_level[j] ? level_gap(point[j], row[j]) : scaled_gap(point[j], row[j]);
        if (total >= best[k_ - 1]) return;
        std::size_t place = k_ - 1;
        for (; place > 0 && best[place - 1] > total; --place) best[place] = best[place - 1];
        best[place] = total;
    }

    // Estimates the distances to all rows, from those of an earlier row that shares most cells.
    void estimate(const double* row) {
        const ShortColumns& columns = all_.short_columns;
        columns.shorten(row, short_.data());
        std::vector<std::size_t> others;
        for (std::size_t j = 0; j < earlier_.size(); ++j)
            if (short_[j] != earlier_[j]) others.push_back(j);
        if (earlier_.empty() || kFewOthers * others.size() > short_.size()) {
            earlier_ = short_;
            others.clear();
            earlier_totals_.assign(columns.n_rows(), 0.0F);
            for (std::size_t j = 0; j < short_.size(); ++j) columns.add(j, short_[j], earlier_totals_.data());
        }
        totals_ = earlier_totals_;
        for (const std::size_t j : others) columns.exchange(j, earlier_[j], short_[j], totals_.data());
    }

    NeighboursView all_;
    const Neighbours& tree_;
    std::size_t k_;
    std::vector<double> offset_;
    std::vector<float> short_, totals_;             // the row, and its estimated distances
    std::vector<float> earlier_, earlier_totals_;  // and those of an earlier one
};

}  // namespace mcce
