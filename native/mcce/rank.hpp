// Step 3's inner loops: equals tests/oracles/numpy_kernels/ranking.py bit for bit.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "forest.hpp"
#include "gower.hpp"
#include "measure.hpp"
#include "pulse.hpp"
#include "random.hpp"

namespace mcce {

constexpr std::size_t kPerDraw = 16;  // work, roughly, of looking for an equal draw

// Marks the first draw of each distinct candidate of one group.
//   codes   column j of draw k at codes[j * stride + k]
inline void first_of_each(const std::int32_t* codes, std::size_t n_columns, std::size_t stride,
                          std::size_t n_draws, std::uint8_t* first, Pulse& pulse) {
    std::size_t size = 16;
    while (size < 2 * n_draws) size *= 2;
    std::vector<std::uint64_t> hash(n_draws, 0);
    // Two columns at a time, since multiplication is the slow part.
    for (std::size_t column = 0; column < n_columns; column += 2) {
        pulse.tick(2 * n_draws);
        const std::int32_t* one = codes + column * stride;
        const std::int32_t* other = column + 1 < n_columns ? one + stride : one;
        for (std::size_t draw = 0; draw < n_draws; ++draw) {
            const std::uint64_t both = static_cast<std::uint32_t>(one[draw]) |
                                       std::uint64_t{static_cast<std::uint32_t>(other[draw])} << 32;
            hash[draw] = (hash[draw] ^ both) * 0x9FB21C651E98DF25ULL + (hash[draw] >> 29);
        }
    }
    std::vector<std::int64_t> table(size, -1);
    pulse.tick(kPerDraw * n_draws);
    for (std::size_t draw = 0; draw < n_draws; ++draw) {
        std::size_t slot = mix(hash[draw]) & (size - 1);
        first[draw] = 1;
        for (; table[slot] >= 0; slot = (slot + 1) & (size - 1)) {
            const auto other = static_cast<std::size_t>(table[slot]);
            bool same = hash[other] == hash[draw];
            for (std::size_t column = 0; same && column < n_columns; ++column)
                same = codes[column * stride + other] == codes[column * stride + draw];
            if (same) {
                first[draw] = 0;
                break;
            }
        }
        if (first[draw]) table[slot] = static_cast<std::int64_t>(draw);
    }
}

// One mutable feature of candidates and people; numbers is null where differences are 0 or 1.
struct Cells {
    const std::int32_t* codes;        // (n_groups, n_draws)
    const double* numbers;            // (n_codes,)
    std::size_t n_codes;
    const std::int32_t* own_codes;    // (n_people,)
    const double* own_numbers;        // (n_people,)
    double spread;
};

struct Best {
    std::int32_t draw, sparsity;
    double distance, gower;
};

enum Key : int { kNone = -1, kSparsity = 0, kDistance = 1 };

struct RankRules {
    int first_key, second_key;  // Key
    double tolerance;           // numeric changes up to this share of the range do not count
    std::int64_t max_sparsity;  // candidates beyond these bounds are not listed
    double max_distance;
};

// Lists the best few candidates of one person at a time.
class Ranker {
public:
    Ranker(std::vector<Cells> cells, std::size_t n_features, std::size_t n_draws,
           const RankRules& rules, Pulse& pulse)
        : cells_(std::move(cells)), n_features_(static_cast<double>(n_features)), n_draws_(n_draws),
          rules_(rules), pulse_(pulse), sparsity_(n_draws), total_(n_draws) {}

    // Writes at most `n_best` to `out`, best first; returns how many are allowed in all.
    // `distance` or `measurer`, if not null, replaces Gower's in ranking.
    std::size_t rank(std::size_t person, std::size_t group, const std::uint8_t* allowed, const double* distance,
                     Measurer* measurer, std::size_t n_best, std::vector<Best>& out) {
        pulse_.tick(n_draws_ * (1 + cells_.size()));
        count_changes(person, group);
        std::size_t n_allowed = choose(allowed, n_best);
        // Of another distance, Gower's is measured too, but only of what is listed.
        const bool by_gower = !measurer && !distance;
        if (by_gower) measure(person, group);
        if (measurer) measure_by(*measurer, person, group);
        out.clear();
        for (std::size_t i = 0; i < chosen_.size(); ++i) {
            const auto k = static_cast<std::size_t>(chosen_[i]);
            const double gower = by_gower ? total_[i] / n_features_ : 0.0;
            const double ranked_by = by_gower ? gower : measurer ? measurer->distance(i, person) : distance[k];
            if (ranked_by <= rules_.max_distance)
                out.push_back({chosen_[i], sparsity_[k], ranked_by, gower});
        }
        if (bounded()) n_allowed = out.size();
        keep_first(std::min(n_best, out.size()), out);
        if (!by_gower) {
            chosen_.clear();
            for (const Best& one : out) chosen_.push_back(one.draw);
            measure(person, group);
            for (std::size_t i = 0; i < out.size(); ++i) out[i].gower = total_[i] / n_features_;
        }
        require(!beyond_ && !(measurer && measurer->beyond()), "a code has no number");
        return n_allowed;
    }

private:
    bool bounded() const { return rules_.max_distance < std::numeric_limits<double>::infinity(); }

    static bool paper_order(const Best& a, const Best& b) {
        if (a.sparsity != b.sparsity) return a.sparsity < b.sparsity;
        if (a.distance != b.distance) return a.distance < b.distance;
        return a.draw < b.draw;
    }

    bool before(const Best& a, const Best& b) const {
        for (const int key : {rules_.first_key, rules_.second_key}) {
            if (key == kSparsity && a.sparsity != b.sparsity) return a.sparsity < b.sparsity;
            if (key == kDistance && a.distance != b.distance) return a.distance < b.distance;
        }
        return a.draw < b.draw;
    }

    // The first n of the candidates, in order.
    void keep_first(std::size_t n, std::vector<Best>& out) const {
        const auto end = out.begin() + static_cast<std::ptrdiff_t>(n);
        if (rules_.first_key == kSparsity && rules_.second_key == kDistance) {
            std::partial_sort(out.begin(), end, out.end(), paper_order);
        } else {
            std::partial_sort(out.begin(), end, out.end(),
                              [this](const Best& a, const Best& b) { return before(a, b); });
        }
        out.resize(n);
    }

    // Notes, rather than follows, a code beyond the table: a check of all codes would be another pass.
    double gap(const Cells& cells, std::int32_t code, std::int32_t own, double number) {
        if (code == own) return 0.0;
        if (!cells.numbers) return 1.0;
        const auto at = static_cast<std::size_t>(code);
        if (at < cells.n_codes) return number_gap(cells.numbers[at], number, cells.spread);
        beyond_ = true;
        return 1.0;
    }

    void count_changes(std::size_t person, std::size_t group) {
        std::fill(sparsity_.begin(), sparsity_.end(), 0);
        for (const auto& cells : cells_) {
            const std::int32_t* codes = cells.codes + group * n_draws_;
            const std::int32_t own = cells.own_codes[person];
            if (rules_.tolerance == 0.0 || !cells.numbers) {
                for (std::size_t k = 0; k < n_draws_; ++k) sparsity_[k] += codes[k] != own;
                continue;
            }
            const double number = cells.own_numbers[person];
            for (std::size_t k = 0; k < n_draws_; ++k)
                sparsity_[k] +=
                    codes[k] != own && gap(cells, codes[k], own, number) > rules_.tolerance;
        }
    }

    // Selects the draws that could be among the best, by sparsity alone; returns how many are allowed.
    std::size_t choose(const std::uint8_t* allowed, std::size_t n_best) {
        counts_.assign(cells_.size() + 1, 0);
        for (std::size_t k = 0; k < n_draws_; ++k)
            counts_[static_cast<std::size_t>(sparsity_[k])] += allowed[k];
        std::int64_t bound = std::min<std::int64_t>(rules_.max_sparsity,
                                                    static_cast<std::int64_t>(cells_.size()));
        std::size_t n_allowed = 0, seen = 0;
        for (std::int64_t s = 0; s <= bound; ++s) n_allowed += counts_[static_cast<std::size_t>(s)];
        if (rules_.first_key == kSparsity && !bounded()) {
            std::int64_t enough = -1;
            while (enough < bound && seen < n_best) seen += counts_[static_cast<std::size_t>(++enough)];
            bound = enough;
        }
        chosen_.clear();
        for (std::size_t k = 0; k < n_draws_; ++k)
            if (allowed[k] && sparsity_[k] <= bound) chosen_.push_back(static_cast<std::int32_t>(k));
        return n_allowed;
    }

    // Adds one feature at a time in column order, as the reference does.
    void measure(std::size_t person, std::size_t group) {
        std::fill_n(total_.begin(), chosen_.size(), 0.0);
        for (const auto& cells : cells_) {
            const std::int32_t* codes = cells.codes + group * n_draws_;
            const std::int32_t own = cells.own_codes[person];
            const double number = cells.numbers ? cells.own_numbers[person] : 0.0;
            for (std::size_t i = 0; i < chosen_.size(); ++i)
                total_[i] += gap(cells, codes[chosen_[i]], own, number);
        }
    }

    void measure_by(Measurer& measurer, std::size_t person, std::size_t group) {
        measurer.begin(chosen_.size());
        for (std::size_t at = 0; at < cells_.size(); ++at)
            measurer.add(at, person, cells_[at].codes + group * n_draws_, cells_[at].own_codes[person], chosen_);
    }

    std::vector<Cells> cells_;
    double n_features_;
    std::size_t n_draws_;
    RankRules rules_;
    Pulse& pulse_;
    bool beyond_ = false;  // whether a code is none of its table
    std::vector<std::int32_t> sparsity_, chosen_;
    std::vector<std::size_t> counts_;
    std::vector<double> total_;
};

}  // namespace mcce
