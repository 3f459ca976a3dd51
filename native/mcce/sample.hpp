// Step 2's inner loop: equals kernels/reference/_sample.py bit for bit.
//
// Nodes are packed to 16 bytes, sets of levels that are cuts in disguise become cuts, leaves point to
// themselves, and many rows descend together, so that the processor always has loads in flight.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "tree.hpp"
#include "random.hpp"

namespace mcce {

// The flat struct of all trees, as the package keeps it.
struct Forest {
    const std::int64_t* roots;
    std::size_t n_trees;
    const std::int32_t *feature, *cut, *left, *right, *count;
    const std::int64_t* start;
    std::size_t n_nodes;
    const std::uint64_t* sets;
    const std::int32_t* values;
    const std::int32_t* n_levels;  // per column: levels of a categorical one, 0 for a numeric one
};

// One step down needs this and the row alone: four words, and no branch to choose between them. A
// leaf is a cut that nothing is below, with itself on both sides, so that a row which has arrived may
// go on stepping.
struct PackedNode {
    std::int32_t cut;  // codes <= cut go left; kLeafCut in a leaf; below it: -2 - offset of a set
    std::int32_t feature, left, right;
};

constexpr std::int32_t kLeafCut = -1;

class Sampler {
public:
    static constexpr std::size_t kRows = 128;  // rows that descend together ...
    static constexpr std::size_t kLanes = 8;   // ... so many at a time in registers ...
    static constexpr std::size_t kSteps = 4;   // ... so many steps before looking who has arrived

    // responses: the column that each tree gives.
    Sampler(const Forest& forest, const std::int32_t* responses)
        : forest_(forest), responses_(responses, responses + forest.n_trees), nodes_(forest.n_nodes),
          exact_(forest.n_nodes), slices_(forest.n_nodes) {
        for (std::size_t i = 0; i < forest.n_nodes; ++i) {
            slices_[i] = {forest.start[i], static_cast<std::uint64_t>(forest.count[i])};
            exact_[i] = pack(i);
            nodes_[i] = simplify(exact_[i]);
            has_sets_ |= nodes_[i].cut < kLeafCut;
        }
    }

    // Codes of the responses for every group and draw: out[tree][group][draw].
    //   given   (n_columns, n_groups) descent codes; columns that are no response are filled
    //   keys    (n_groups,)
    void sample(const std::int32_t* given, std::size_t n_columns, std::size_t n_groups,
                const std::uint64_t* keys, const std::int64_t* draws, std::size_t n_draws,
                std::int32_t* out) const {
        std::vector<std::int32_t> rows(kRows * n_columns);
        std::vector<std::uint8_t> drawn(n_columns, 0);
        for (const auto column : responses_) drawn[static_cast<std::size_t>(column)] = 1;
        for (std::size_t group = 0; group < n_groups; ++group) {
            bool unseen = false;
            for (std::size_t column = 0; column < n_columns; ++column) {
                const std::int32_t code = given[column * n_groups + group];
                unseen |= !drawn[column] && forest_.n_levels[column] && code >= forest_.n_levels[column];
                for (std::size_t i = 0; i < kRows; ++i) rows[i * n_columns + column] = code;
            }
            std::int32_t* to = out + group * n_draws;
            const std::size_t stride = n_groups * n_draws;
            if (unseen) {
                sample_group<true>(exact_, rows, n_columns, drawn, keys[group], draws, n_draws, to, stride);
            } else if (has_sets_) {
                sample_group<true>(nodes_, rows, n_columns, drawn, keys[group], draws, n_draws, to, stride);
            } else {
                sample_group<false>(nodes_, rows, n_columns, drawn, keys[group], draws, n_draws, to, stride);
            }
        }
    }

private:
    struct Slice {
        std::int64_t start;
        std::uint64_t count;
    };
    using Nodes = std::vector<PackedNode>;

    PackedNode pack(std::size_t i) const {
        const std::int32_t column = forest_.feature[i], cut = forest_.cut[i];
        const auto self = static_cast<std::int32_t>(i);
        if (column == kLeaf) return {kLeafCut, 0, self, self};
        const bool by_set = forest_.n_levels[column] > 0;
        return {by_set ? kLeafCut - 1 - cut : cut, column, forest_.left[i], forest_.right[i]};
    }

    // A set of levels that is the first few of all, or the last few, is a cut as long as no row has a
    // level that training never saw.
    PackedNode simplify(const PackedNode& node) const {
        if (node.cut >= kLeafCut) return node;
        const std::int32_t n_levels = forest_.n_levels[node.feature];
        const std::int32_t offset = kLeafCut - 1 - node.cut;
        std::int32_t n_changes = 0, last = 0;
        for (std::int32_t level = 1; level < n_levels; ++level) {
            if (holds(offset, level) == holds(offset, level - 1)) continue;
            ++n_changes;
            last = level - 1;
        }
        if (n_changes != 1) return node;
        if (holds(offset, 0)) return {last, node.feature, node.left, node.right};
        return {last, node.feature, node.right, node.left};
    }

    bool holds(std::int32_t offset, std::int32_t code) const {
        return (forest_.sets[offset + code / 64] >> (code % 64)) & 1;
    }

    template <bool kSets>
    std::int32_t step(const PackedNode* nodes, std::int32_t at, const std::int32_t* row) const {
        const PackedNode node = nodes[at];
        const std::int32_t code = row[node.feature];
        bool left = code <= node.cut;
        if constexpr (kSets) {
            const bool by_set = node.cut < kLeafCut;
            const std::int32_t word = by_set ? kLeafCut - 1 - node.cut + code / 64 : 0;
            left = by_set ? (forest_.sets[word] >> (code % 64)) & 1 : left;
        }
        return left ? node.left : node.right;
    }

    template <bool kSets>
    void sample_group(const Nodes& nodes, std::vector<std::int32_t>& rows, std::size_t n_columns,
                      const std::vector<std::uint8_t>& drawn, std::uint64_t key,
                      const std::int64_t* draws, std::size_t n_draws, std::int32_t* out,
                      std::size_t stride) const {
        // Every tree is begun where it first asks for something that is drawn.
        std::vector<std::int32_t> starts;
        for (std::size_t tree = 0; tree < forest_.n_trees; ++tree) {
            auto at = static_cast<std::int32_t>(forest_.roots[tree]);
            while (forest_.feature[at] != kLeaf && !drawn[static_cast<std::size_t>(forest_.feature[at])])
                at = step<kSets>(nodes.data(), at, rows.data());
            starts.push_back(at);
        }
        for (std::size_t first = 0; first < n_draws; first += kRows)
            draw_rows<kSets>(nodes.data(), rows.data(), n_columns, starts, key, draws + first,
                             std::min(kRows, n_draws - first), out + first, stride);
    }

    // Draws up to kRows rows of one group, tree by tree.
    template <bool kSets>
    void draw_rows(const PackedNode* nodes, std::int32_t* rows, std::size_t n_columns,
                   const std::vector<std::int32_t>& starts, std::uint64_t key,
                   const std::int64_t* draws, std::size_t n, std::int32_t* out,
                   std::size_t stride) const {
        std::uint64_t row_keys[kRows];
        std::int32_t at[kRows];
        for (std::size_t i = 0; i < n; ++i)
            row_keys[i] = absorb(key, static_cast<std::uint64_t>(draws[i]));
        for (std::size_t tree = 0; tree < starts.size(); ++tree) {
            std::fill_n(at, n, starts[tree]);
            if (nodes[starts[tree]].cut != kLeafCut) descend<kSets>(nodes, rows, n_columns, at, n);
            const auto column = static_cast<std::size_t>(responses_[tree]);
            for (std::size_t i = 0; i < n; ++i) {
                const Slice leaf = slices_[static_cast<std::size_t>(at[i])];
                const std::int32_t code =
                    forest_.values[leaf.start + pick(row_keys[i], column, leaf.count)];
                rows[i * n_columns + column] = code;
                out[tree * stride + i] = code;
            }
        }
    }

    // Takes every row to its leaf, several in flight; who has arrived is left out of the next round.
    template <bool kSets>
    void descend(const PackedNode* nodes, const std::int32_t* rows, std::size_t n_columns,
                 std::int32_t* at, std::size_t n) const {
        std::uint32_t walking[kRows + kLanes];
        for (std::size_t i = 0; i < n; ++i) walking[i] = static_cast<std::uint32_t>(i);
        while (n) {
            // The last lanes of the last round repeat a row, which does no harm.
            for (std::size_t i = n; i % kLanes; ++i) walking[i] = walking[n - 1];
            std::size_t n_left = 0;
            for (std::size_t i = 0; i < n; i += kLanes) {
                std::int32_t here[kLanes];
                const std::int32_t* row[kLanes];
                for (std::size_t lane = 0; lane < kLanes; ++lane) {
                    here[lane] = at[walking[i + lane]];
                    row[lane] = rows + walking[i + lane] * n_columns;
                }
                for (std::size_t s = 0; s < kSteps; ++s)
                    for (std::size_t lane = 0; lane < kLanes; ++lane)
                        here[lane] = step<kSets>(nodes, here[lane], row[lane]);
                for (std::size_t lane = 0; lane < kLanes; ++lane) {
                    const std::uint32_t who = walking[i + lane];
                    at[who] = here[lane];
                    walking[n_left] = who;
                    n_left += nodes[here[lane]].cut != kLeafCut && i + lane < n;
                }
            }
            n = n_left;
        }
    }

    Forest forest_;
    std::vector<std::int32_t> responses_;
    Nodes nodes_, exact_;
    std::vector<Slice> slices_;  // of the values, by leaf
    bool has_sets_ = false;
};

}  // namespace mcce
