// What errors at known rows say of other rows: equals tests/oracles/numpy_kernels/ranking.py bit for bit.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "pulse.hpp"

namespace mcce {

struct KnownErrors {
    const std::int64_t* row;  // among all cells
    const double* error;
};

// Adds to the total and the weight of each row those of the errors [first, last), in this order.
//   cells   (n_all, width), all rows
//   rows, first, last, total, weight   (n_rows,)
inline void weigh_errors(const std::int32_t* cells, std::size_t width, const std::int64_t* rows,
                         const std::int64_t* first, const std::int64_t* last, std::size_t n_rows,
                         const KnownErrors& known, double* total, double* weight, Pulse& pulse) {
    for (std::size_t i = 0; i < n_rows; ++i) {
        const std::int32_t* own = cells + static_cast<std::size_t>(rows[i]) * width;
        for (std::int64_t at = first[i]; at < last[i]; ++at) {
            const std::int32_t* other = cells + static_cast<std::size_t>(known.row[at]) * width;
            int n_other = 0;
            for (std::size_t j = 0; j < width; ++j) n_other += own[j] != other[j];
            const double share = std::ldexp(1.0, -n_other);
            total[i] += share * known.error[at];
            weight[i] += share;
            pulse.tick(1 + width / 4);
        }
    }
}

}  // namespace mcce
