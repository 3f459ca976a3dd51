// An order of groups in which neighbours have similar codes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

namespace mcce {

// Numbers of groups sorted by their codes in some columns: by those of few values first, which most neighbours
// then have alike.
inline std::vector<std::size_t> sort_by_codes(const std::vector<const std::int32_t*>& columns, std::size_t n_groups) {
    std::vector<std::size_t> numbers(n_groups);
    std::iota(numbers.begin(), numbers.end(), std::size_t{0});
    std::vector<std::pair<std::ptrdiff_t, std::size_t>> keyed;
    for (std::size_t j = 0; j < columns.size(); ++j) {
        std::vector<std::int32_t> codes(columns[j], columns[j] + n_groups);
        std::sort(codes.begin(), codes.end());
        keyed.emplace_back(std::unique(codes.begin(), codes.end()) - codes.begin(), j);
    }
    std::sort(keyed.begin(), keyed.end());
    if (!keyed.empty())
        std::sort(numbers.begin(), numbers.end(), [&](std::size_t a, std::size_t b) {
            for (const auto& key : keyed) {
                const std::int32_t* codes = columns[key.second];
                if (codes[a] != codes[b]) return codes[a] < codes[b];
            }
            return a < b;
        });
    return numbers;
}

}  // namespace mcce
