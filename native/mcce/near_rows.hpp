// The rows of a small node, side by side: its descendants would find each in a cache line of its own.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "partition.hpp"
#include "tree.hpp"

namespace mcce {

class NearRows {
public:
    NearRows(const std::vector<Column>& columns, const std::int32_t* answers)
        : all_columns_(columns), all_answers_(answers), columns_(columns), answers_(answers), codes_(columns.size()) {}

    // The columns and answers of all rows, or of those gathered last, numbered from 0.
    const std::vector<Column>& columns() const { return columns_; }
    const std::int32_t* answers() const { return answers_; }

    // Whether a place is beyond the rows gathered last.
    bool is_beyond(std::size_t place) const { return place >= end_; }

    // Whether a node of so many rows is worth it. Few codes are read of columns that are kept sorted.
    bool is_worth(std::size_t n, std::size_t n_rows, const ColumnSpan& open) const {
        const auto n_sorted = std::count_if(open.begin(), open.end(), [this](auto number) {
            return columns_[static_cast<std::size_t>(number)].is_kept_sorted();
        });
        return n <= kMost && n <= n_rows / 4 && 2 * static_cast<std::size_t>(n_sorted) < open.n;
    }

    // Back to all rows.
    void release() {
        if (!end_) return;
        columns_ = all_columns_;
        answers_ = all_answers_;
        end_ = 0;
    }

    // Gathers the rows of a node, in some columns, and renumbers them.
    template <class Value>
    void gather(Partition<Value>& rows, std::size_t begin, std::size_t end, const ColumnSpan& open) {
        for (const auto number : open) {
            const auto at = static_cast<std::size_t>(number);
            columns_[at].gather(rows.at(begin), end - begin, codes_[at]);
            columns_[at].codes = codes_[at].data();
        }
        own_answers_.clear();
        for (std::size_t i = begin; i < end; ++i) own_answers_.push_back(answers_[*rows.at(i)]);
        answers_ = own_answers_.data();
        rows.renumber(begin, end);
        end_ = end;
    }

private:
    static constexpr std::size_t kMost = 32768;

    const std::vector<Column>& all_columns_;
    const std::int32_t* all_answers_;
    std::vector<Column> columns_;
    const std::int32_t* answers_;
    std::size_t end_ = 0;
    std::vector<std::vector<unsigned char>> codes_;  // of each column
    std::vector<std::int32_t> own_answers_;
};

}  // namespace mcce
