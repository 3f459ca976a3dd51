// Tables of nodes: their rows counted per code, for columns of few codes relative to their rows.
//
// Of two siblings only the smaller is counted: the larger one's table is the difference to their parent's.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "tree.hpp"

namespace mcce {

template <class Response>
class Tables {
public:
    using Entry = typename Response::Entry;
    static constexpr int kNone = -1;

    Tables(const std::vector<Column>& columns, const std::vector<std::int32_t>& inputs,
           const Response& response, std::size_t n_rows)
        : columns_(columns), width_(response.n_entries()), offset_(columns.size()) {
        for (const auto number : inputs) {
            if (!is_dense(number, n_rows)) continue;
            offset_[static_cast<std::size_t>(number)] = size_;
            size_ += size_of(number);
        }
        others_.resize(size_);
    }

    // Whether a column is worth counting in a table of a node of so many rows.
    bool is_dense(std::int32_t number, std::size_t n_rows) const {
        const Column& column = columns_[static_cast<std::size_t>(number)];
        return !column.is_kept_sorted() && column.n_codes > 1 && size_of(number) <= n_rows;
    }

    // A table that is not in use.
    int take() {
        if (free_.empty()) {
            free_.push_back(static_cast<int>(tables_.size()));
            tables_.emplace_back(size_);
        }
        const int table = free_.back();
        free_.pop_back();
        return table;
    }
    // Returns a table.
    void release(int& table) {
        if (table != kNone) free_.push_back(table);
        table = kNone;
    }
    // Whether there is room for one more.
    bool has_room() const { return !free_.empty() || (tables_.size() + 1) * size_ <= kMostEntries; }

    // The entries of a column, n_entries() for each code.
    Entry* entries(int table, std::int32_t number) {
        return &tables_[static_cast<std::size_t>(table)][offset_[static_cast<std::size_t>(number)]];
    }

    // Counts the rows that the response has loaded; there is room for their codes in `local`.
    void count(const Response& response, std::int32_t number, const std::uint32_t* rows, std::size_t n,
               int table, std::uint32_t* local) {
        Entry* counted = entries(table, number);
        const Column& column = columns_[static_cast<std::size_t>(number)];
        if constexpr (!Response::kByRow) {
            if (column.n_codes == 2) {
                column.gather(rows, n, local);
                counted[1] = response.ones(local, n);
                counted[0] = response.loaded() - counted[1];
                return;
            }
        }
        std::fill_n(counted, size_of(number), Entry{});
        std::fill_n(others_.begin(), size_of(number), Entry{});
        // Two tables in turn: with one, rows of the same code would wait for each other.
        column.with_codes([&](const auto* codes) {
            std::size_t i = 0;
            for (; i + 1 < n; i += 2) {
                response.enrol(counted + width_ * codes[rows[i]], i);
                response.enrol(others_.data() + width_ * codes[rows[i + 1]], i + 1);
            }
            if (i < n) response.enrol(counted + width_ * codes[rows[i]], i);
        });
        for (std::size_t k = 0; k < size_of(number); ++k) counted[k] += others_[k];
    }

    // Subtracts a child's entries from its parent's, which leaves the other child's.
    void subtract(std::int32_t number, int parent, int child) {
        Entry* rest = entries(parent, number);
        const Entry* counted = entries(child, number);
        for (std::size_t k = 0; k < size_of(number); ++k) rest[k] -= counted[k];
    }

private:
    static constexpr std::size_t kMostEntries = 1 << 20;

    std::size_t size_of(std::int32_t number) const {
        return static_cast<std::size_t>(columns_[static_cast<std::size_t>(number)].n_codes) * width_;
    }

    const std::vector<Column>& columns_;
    std::size_t width_, size_ = 0;
    std::vector<std::size_t> offset_;  // of each column within a table
    std::vector<std::vector<Entry>> tables_;
    std::vector<Entry> others_;
    std::vector<int> free_;
};

}  // namespace mcce
