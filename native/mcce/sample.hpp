// Step 2's inner loop: equals kernels/reference/_sample.py bit for bit.
//
// Nodes are packed to 16 bytes with the set of a small category inside, leaves point to themselves,
// and several rows descend at a time, so that the processor always has a load in flight.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "grow.hpp"
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
    const std::uint8_t* by_set;  // per column
};

enum Kind : std::uint16_t { kCut, kSet, kEnd };

struct PackedNode {
    std::uint64_t payload;  // the cut, or the first word of the set
    std::int32_t right;     // the left child is the next node; a leaf points to itself
    std::uint16_t feature;
    std::uint16_t kind;
};

class Sampler {
public:
    static constexpr std::size_t kLanes = 8;

    // responses: the column that each tree gives.
    Sampler(const Forest& forest, const std::int32_t* responses)
        : forest_(forest), responses_(responses, responses + forest.n_trees), nodes_(forest.n_nodes) {
        for (std::size_t i = 0; i < forest.n_nodes; ++i) nodes_[i] = pack(i);
    }

    // Codes of the responses for every group and draw: out[tree][group][draw].
    //   given   (n_columns, n_groups) descent codes; columns that are no response are filled
    //   keys    (n_groups,)
    void sample(const std::int32_t* given, std::size_t n_columns, std::size_t n_groups,
                const std::uint64_t* keys, const std::int64_t* draws, std::size_t n_draws,
                std::int32_t* out) const {
        std::vector<std::uint8_t> drawn(n_columns, 0);
        for (const auto column : responses_) drawn[static_cast<std::size_t>(column)] = 1;
        std::vector<std::int32_t> starts(forest_.n_trees), rows(kLanes * n_columns);
        for (std::size_t group = 0; group < n_groups; ++group) {
            for (std::size_t lane = 0; lane < kLanes; ++lane)
                for (std::size_t column = 0; column < n_columns; ++column)
                    rows[lane * n_columns + column] = given[column * n_groups + group];
            for (std::size_t tree = 0; tree < forest_.n_trees; ++tree)
                starts[tree] = advance(tree, rows.data(), drawn);
            for (std::size_t first = 0; first < n_draws; first += kLanes) {
                const std::size_t n = n_draws - first < kLanes ? n_draws - first : kLanes;
                draw_lanes(rows.data(), n_columns, starts, keys[group], draws + first, n,
                           out + group * n_draws + first, n_groups * n_draws);
            }
        }
    }

private:
    PackedNode pack(std::size_t i) const {
        const std::int32_t column = forest_.feature[i];
        const auto self = static_cast<std::int32_t>(i);
        if (column == kLeaf) return {0, self, 0, kEnd};
        const auto feature = static_cast<std::uint16_t>(column);
        const std::int32_t cut = forest_.cut[i];
        if (forest_.by_set[column]) return {forest_.sets[cut], forest_.right[i], feature, kSet};
        return {static_cast<std::uint64_t>(cut), forest_.right[i], feature, kCut};
    }

    // One step down; a leaf stays where it is.
    std::int32_t step(std::int32_t at, const std::int32_t* row) const {
        const PackedNode& node = nodes_[static_cast<std::size_t>(at)];
        const auto code = static_cast<std::uint32_t>(row[node.feature]);
        std::uint64_t word = node.payload;
        if (code >= 64 && node.kind == kSet)
            word = forest_.sets[static_cast<std::uint32_t>(forest_.cut[at]) + code / 64];
        const bool by_cut = code <= static_cast<std::uint32_t>(node.payload);
        const bool by_set = (word >> (code % 64)) & 1;
        const bool left = (node.kind == kCut && by_cut) || (node.kind == kSet && by_set);
        return left ? at + 1 : node.right;
    }

    // The node at which a tree first asks for something that is drawn.
    std::int32_t advance(std::size_t tree, const std::int32_t* row,
                         const std::vector<std::uint8_t>& drawn) const {
        auto at = static_cast<std::int32_t>(forest_.roots[tree]);
        while (nodes_[static_cast<std::size_t>(at)].kind != kEnd &&
               !drawn[nodes_[static_cast<std::size_t>(at)].feature])
            at = step(at, row);
        return at;
    }

    void draw_lanes(std::int32_t* rows, std::size_t n_columns, const std::vector<std::int32_t>& starts,
                    std::uint64_t key, const std::int64_t* draws, std::size_t n, std::int32_t* out, std::size_t stride) const {
        std::uint64_t row_keys[kLanes];
        for (std::size_t lane = 0; lane < kLanes; ++lane)
            row_keys[lane] = absorb(key, static_cast<std::uint64_t>(draws[lane < n ? lane : 0]));
        for (std::size_t tree = 0; tree < starts.size(); ++tree) {
            std::int32_t at[kLanes];
            for (std::size_t lane = 0; lane < kLanes; ++lane) at[lane] = starts[tree];
            for (bool moving = true; moving;) {
                moving = false;
                for (std::size_t lane = 0; lane < kLanes; ++lane) {
                    at[lane] = step(at[lane], rows + lane * n_columns);
                    moving |= nodes_[static_cast<std::size_t>(at[lane])].kind != kEnd;
                }
            }
            const auto column = static_cast<std::size_t>(responses_[tree]);
            for (std::size_t lane = 0; lane < kLanes; ++lane) {
                const auto leaf = static_cast<std::size_t>(at[lane]);
                const std::uint32_t chosen = pick(row_keys[lane], column,
                                                  static_cast<std::uint64_t>(forest_.count[leaf]));
                rows[lane * n_columns + column] = forest_.values[forest_.start[leaf] + chosen];
            }
            for (std::size_t lane = 0; lane < n; ++lane)
                out[tree * stride + lane] = rows[lane * n_columns + column];
        }
    }

    Forest forest_;
    std::vector<std::int32_t> responses_;
    std::vector<PackedNode> nodes_;
};

}  // namespace mcce
