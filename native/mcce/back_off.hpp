// Where a tree holds values that a group may draw, for draws that back off to larger nodes.
//
// The values of a node are adjacent, leaf after leaf. So a list of all allowed places of a tree, in
// order, holds those of any node as one range.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "forest.hpp"

namespace mcce {

class AllowedPlaces {
public:
    // Some of the allowed values of a tree, by number among them.
    struct Range {
        std::int64_t first;
        std::int64_t n;
    };

    // Lists the places of a tree's values that are within runs, if limited.
    void find(const ForestView& forest, std::size_t tree, bool limited, const std::int32_t* runs,
              const std::int32_t* runs_end) {
        forest_ = &forest;
        limited_ = limited;
        places_.clear();
        for (auto at = static_cast<std::size_t>(forest.roots[tree]); at < forest.end_of(tree); ++at) {
            if (forest.feature[at] != kLeaf) continue;
            const std::int32_t* from = forest.values + forest.first[at];
            const std::int32_t* end = forest.values + forest.end[at];
            for (const std::int32_t* run = runs; run != runs_end; run += 2) {
                from = std::lower_bound(from, end, run[0]);
                for (; from != end && *from <= run[1]; ++from) places_.push_back(from - forest.values);
            }
        }
    }

    // The first node from here upwards that holds at least so many allowed values, or the root.
    std::int32_t climb(std::int32_t at, std::int64_t least) const {
        while (forest_->above[at] != kNoNode && range(at).n < least) at = forest_->above[at];
        return at;
    }

    // The allowed values of a node.
    Range range(std::int32_t at) const {
        const std::int64_t first = forest_->first[at], end = forest_->end[at];
        if (!limited_) return {first, end - first};
        const auto from = std::lower_bound(places_.begin(), places_.end(), first);
        return {from - places_.begin(), std::lower_bound(from, places_.end(), end) - from};
    }

    std::int32_t value(std::int64_t number) const {
        return forest_->values[limited_ ? places_[static_cast<std::size_t>(number)] : number];
    }

private:
    const ForestView* forest_ = nullptr;
    bool limited_ = false;
    std::vector<std::int64_t> places_;
};

}  // namespace mcce
