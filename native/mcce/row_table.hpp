// Numbers for distinct rows of codes: equals kernels/reference/_rows.py bit for bit.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "random.hpp"

namespace mcce {

// Distinct rows in the order of their first appearance. A row is hashed once, when it is placed.
class RowTable {
  public:
    explicit RowTable(std::size_t width) : width_(width), slots_(16, -1) {}

    std::size_t width() const { return width_; }

    // The number of each row; rows never seen before get the next numbers.
    //   rows   (n_rows, width)
    void place(const std::int32_t* rows, std::size_t n_rows, std::int64_t* numbers) {
        while (slots_.size() < 2 * (hashes_.size() + n_rows)) grow();
        for (std::size_t row = 0; row < n_rows; ++row) numbers[row] = place_one(rows + row * width_);
    }

  private:
    std::int64_t place_one(const std::int32_t* cells) {
        std::uint64_t hash = 0;
        for (std::size_t j = 0; j < width_; ++j)
            hash = (hash ^ static_cast<std::uint32_t>(cells[j])) * 0x9FB21C651E98DF25ULL + (hash >> 29);
        std::size_t slot = slot_of(hash);
        for (; slots_[slot] >= 0; slot = (slot + 1) & (slots_.size() - 1)) {
            const auto known = static_cast<std::size_t>(slots_[slot]);
            if (hashes_[known] == hash && std::equal(cells, cells + width_, cells_.data() + known * width_))
                return slots_[slot];
        }
        slots_[slot] = static_cast<std::int64_t>(hashes_.size());
        hashes_.push_back(hash);
        cells_.insert(cells_.end(), cells, cells + width_);
        return slots_[slot];
    }

    void grow() {
        slots_.assign(2 * slots_.size(), -1);
        for (std::size_t known = 0; known < hashes_.size(); ++known) {
            std::size_t slot = slot_of(hashes_[known]);
            while (slots_[slot] >= 0) slot = (slot + 1) & (slots_.size() - 1);
            slots_[slot] = static_cast<std::int64_t>(known);
        }
    }

    std::size_t slot_of(std::uint64_t hash) const { return static_cast<std::size_t>(mix(hash)) & (slots_.size() - 1); }

    std::size_t width_;
    std::vector<std::int64_t> slots_;
    std::vector<std::uint64_t> hashes_;
    std::vector<std::int32_t> cells_;
};

}  // namespace mcce
