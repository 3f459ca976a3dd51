// Numbers for distinct rows of codes: equals tests/oracles/numpy_kernels/ranking.py bit for bit.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "pulse.hpp"
#include "random.hpp"

namespace mcce {

// Distinct rows in the order of their first appearance. A row is hashed once, when it is placed.
class RowTable {
  public:
    explicit RowTable(std::size_t width) : width_(width), slots_(16, -1) {}

    std::size_t width() const { return width_; }

    // The number of each row; rows never seen before get the next numbers. All rows are placed, or none.
    //   rows   (n_rows, width)
    void place(const std::int32_t* rows, std::size_t n_rows, std::int64_t* numbers, Pulse& pulse) {
        const std::size_t n_known = hashes_.size();
        try {
            std::size_t n_slots = slots_.size();
            while (n_slots < 2 * (n_known + n_rows)) n_slots *= 2;
            if (n_slots > slots_.size()) {
                std::vector<std::int64_t>(n_slots).swap(slots_);
                enter_all();
            }
            for (std::size_t row = 0; row < n_rows; ++row) {
                pulse.tick(kPerRow + width_);
                numbers[row] = place_one(rows + row * width_);
            }
        } catch (...) {
            hashes_.resize(n_known);
            cells_.resize(n_known * width_);
            enter_all();
            throw;
        }
    }

  private:
    static constexpr std::size_t kPerRow = 32;  // work, roughly, of placing a row

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
        cells_.insert(cells_.end(), cells, cells + width_);
        hashes_.push_back(hash);
        return slots_[slot] = static_cast<std::int64_t>(hashes_.size()) - 1;
    }

    void enter_all() {
        std::fill(slots_.begin(), slots_.end(), -1);
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
