// The training rows by node while a tree grows: a split moves those that go left to the front.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "tree.hpp"

namespace mcce {

// Some columns, by number.
struct ColumnSpan {
    const std::int32_t* numbers;
    std::size_t n;

    const std::int32_t* begin() const { return numbers; }
    const std::int32_t* end() const { return numbers + n; }
};

template <class Value>
class Partition {
public:
    Partition(const std::vector<Column>& columns, const std::vector<std::int32_t>& inputs, std::size_t n_rows)
        : columns_(columns), rows_(n_rows), moved_(n_rows), sorted_(columns.size()), spare_rows_(n_rows),
          spare_values_(n_rows), side_(n_rows) {
        for (std::size_t i = 0; i < n_rows; ++i) rows_[i] = static_cast<std::uint32_t>(i);
        std::size_t most = 2;
        for (const auto number : inputs) {
            const Column& column = columns_[static_cast<std::size_t>(number)];
            if (!column.ordered) most = std::max(most, static_cast<std::size_t>(column.n_codes));
            if (column.is_kept_sorted()) sorted_[static_cast<std::size_t>(number)] = column.sort_rows(n_rows);
        }
        goes_left_.resize(most);
    }

    std::size_t size() const { return rows_.size(); }

    // The rows from a place on.
    const std::uint32_t* at(std::size_t place) const { return rows_.data() + place; }

    // Renumbers the rows of a node from 0, in their order.
    void renumber(std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i) rows_[i] = static_cast<std::uint32_t>(i - begin);
    }

    // Places of rows by code, sorted within each node, of a column with an order.
    const std::uint32_t* sorted(std::int32_t number) const {
        return sorted_[static_cast<std::size_t>(number)].data();
    }

    // Divides a node, its rows' values with them; returns where its right child begins. Only the orders
    // of the columns that are still open are kept up.
    std::size_t divide(std::size_t begin, std::size_t end, const Split& split, std::vector<Value>& values,
                       const ColumnSpan& open) {
        const std::size_t middle = begin + choose_sides(begin, end, split);
        std::size_t left = begin, right = 0;
        for (std::size_t i = begin; i < end; ++i) {
            const bool goes_left = side_[i - begin];
            const std::uint32_t row = rows_[i];
            const Value value = values[i];
            moved_[i] = static_cast<std::uint32_t>(goes_left ? left : middle + right);
            // Written to both sides, as a branch would cost more; the next row overwrites the wrong one.
            rows_[left] = row;
            values[left] = value;
            spare_rows_[right] = row;
            spare_values_[right] = value;
            left += goes_left;
            right += !goes_left;
        }
        std::copy_n(spare_rows_.begin(), right, rows_.begin() + static_cast<std::ptrdiff_t>(middle));
        std::copy_n(spare_values_.begin(), right, values.begin() + static_cast<std::ptrdiff_t>(middle));
        for (const auto number : open)
            if (columns_[static_cast<std::size_t>(number)].is_kept_sorted())
                divide_sorted(sorted_[static_cast<std::size_t>(number)], begin, end, middle);
        return middle;
    }

private:
    // Marks the rows of a node that go left; returns how many.
    std::size_t choose_sides(std::size_t begin, std::size_t end, const Split& split) {
        const Column& column = columns_[static_cast<std::size_t>(split.column)];
        const std::uint32_t* rows = at(begin);
        const auto cut = static_cast<std::uint32_t>(split.cut);
        const std::size_t n = end - begin;
        std::size_t n_left = 0;
        if (!column.ordered)
            split.for_each_level([this](std::size_t level, bool left) { goes_left_[level] = left; });
        column.with_codes([&](const auto* codes) {
            const auto choose = [&](const auto& goes_left) {
                for (std::size_t i = 0; i < n; ++i) n_left += side_[i] = goes_left(codes[rows[i]]);
            };
            if (column.ordered) {
                choose([=](std::uint32_t code) { return code <= cut; });
            } else {
                choose([this](std::uint32_t code) { return goes_left_[code]; });
            }
        });
        return n_left;
    }

    // Divides a sorted order so that both children stay sorted.
    void divide_sorted(std::vector<std::uint32_t>& places, std::size_t begin, std::size_t end,
                       std::size_t middle) {
        std::size_t left = begin, right = 0;
        for (std::size_t i = begin; i < end; ++i) {
            const std::uint32_t place = moved_[places[i]];
            const bool goes_left = place < middle;
            places[left] = place;
            spare_rows_[right] = place;
            left += goes_left;
            right += !goes_left;
        }
        std::copy_n(spare_rows_.begin(), right, places.begin() + static_cast<std::ptrdiff_t>(middle));
    }

    const std::vector<Column>& columns_;
    std::vector<std::uint32_t> rows_, moved_;         // rows by node, and the place each was moved to
    std::vector<std::vector<std::uint32_t>> sorted_;  // of each column
    std::vector<std::uint32_t> spare_rows_;
    std::vector<Value> spare_values_;
    std::vector<std::uint8_t> side_, goes_left_;
};

}  // namespace mcce
