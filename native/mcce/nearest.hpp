// Distances to the nearest of many rows: equals kernels/reference/_nearest.py bit for bit.
//
// A k-d tree over the rows, and of many columns a short form of each row. They only decide which rows can
// be skipped. A distance is summed feature by feature in column order, so they cannot change a bit.
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

// Rows in single precision, from the least value of each column on: enough for a lower bound of a distance,
// which many columns at a time can be summed up for. Empty for few columns, where it would not pay.
class ShortRows {
public:
    static constexpr std::size_t kLanes = 16, kMany = 32;

    ShortRows(const double* points, std::size_t n_rows, std::size_t n_columns)
        : least_(n_columns < kMany ? 0 : n_columns, std::numeric_limits<double>::infinity()),
          width_((least_.size() + kLanes - 1) / kLanes * kLanes), rows_(n_rows * width_) {
        for (std::size_t i = 0; i < n_rows; ++i)
            for (std::size_t j = 0; j < least_.size(); ++j)
                least_[j] = std::min(least_[j], points[i * n_columns + j]);
        for (std::size_t i = 0; i < n_rows; ++i) shorten(points + i * n_columns, &rows_[i * width_]);
        for (std::size_t j = 0; j < least_.size(); ++j) {
            float most = 0.0F;
            for (std::size_t i = 0; i < n_rows; ++i)
                if (rows_[i * width_ + j] < kFar) most = std::max(most, rows_[i * width_ + j]);
            error_ += kRounding * (2.0 + static_cast<double>(most));
        }
        error_ += kRounding * static_cast<double>(width_) * static_cast<double>(width_);
    }

    std::size_t width() const { return width_; }

    void shorten(const double* row, float* out) const {
        for (std::size_t j = 0; j < least_.size(); ++j)
            out[j] = static_cast<float>(std::min(std::max(row[j] - least_[j], -double{kFar}), double{kFar}));
    }

    // Whether a row is certainly not nearer than a distance to one in this form.
    bool is_beyond(std::size_t i, const float* row, double distance) const {
        const float* point = &rows_[i * width_];
        const double least = distance + error_;
        float sums[kLanes] = {};
        for (std::size_t begin = 0; begin < width_; begin += kStretch) {
            const std::size_t end = std::min(begin + kStretch, width_);
            for (std::size_t j = begin; j < end; j += kLanes)
                for (std::size_t lane = 0; lane < kLanes; ++lane) {
                    const float gap = std::fabs(point[j + lane] - row[j + lane]);
                    sums[lane] += gap < 1.0F ? gap : 1.0F;
                }
            double total = 0.0;
            for (const float sum : sums) total += static_cast<double>(sum);
            if (total > least) return true;
        }
        return false;
    }

private:
    static constexpr std::size_t kStretch = 128;
    static constexpr float kFar = 1e30F;
    static constexpr double kRounding = 4e-7;  // of one number, several times over

    std::vector<double> least_;
    double error_ = 0.0;  // a sum of gaps is off by less: only gaps below 1 are not exact
    std::size_t width_;
    std::vector<float> rows_;
};

// The rows as a search reads them.
struct NeighboursView {
    const double* points;
    std::size_t n_columns;
    const std::uint8_t* is_level;
    const Neighbours& tree;
    const ShortRows& short_rows;
};

class Seeker {
public:
    Seeker(const NeighboursView& all, std::size_t k)
        : all_(all), tree_(all.tree), k_(k), offset_(all.n_columns, 0.0), short_(all.short_rows.width()) {}

    // Distances of a row to the k nearest, ascending; infinite beyond the number of rows.
    void seek(const double* row, double* best) {
        std::fill_n(best, k_, std::numeric_limits<double>::infinity());
        all_.short_rows.shorten(row, short_.data());
        visit(0, row, 0.0, best);
    }

private:
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
        for (std::int64_t i = tree_.first[at]; i < tree_.last[at]; ++i) {
            if (!short_.empty() && all_.short_rows.is_beyond(static_cast<std::size_t>(i), short_.data(), best[k_ - 1]))
                continue;
            const double* point = all_.points + static_cast<std::size_t>(i) * all_.n_columns;
            double total = 0.0;
            for (std::size_t j = 0; j < all_.n_columns && total < best[k_ - 1]; ++j)
                total += all_.is_level[j] ? level_gap(point[j], row[j]) : scaled_gap(point[j], row[j]);
            if (total >= best[k_ - 1]) continue;
            std::size_t place = k_ - 1;
            for (; place > 0 && best[place - 1] > total; --place) best[place] = best[place - 1];
            best[place] = total;
        }
    }

    NeighboursView all_;
    const Neighbours& tree_;
    std::size_t k_;
    std::vector<double> offset_;
    std::vector<float> short_;
};

}  // namespace mcce
