// Boosted trees, checked and bound once, and what they predict; see kernels/reference/_boost.py.
//
// The children of a node stand side by side, so a step is one comparison and one addition. A leaf steps
// to itself. Several rows walk a tree together, until none of them moves.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "forest.hpp"
#include "pulse.hpp"

namespace mcce {

struct EnsembleArrays {
    std::vector<std::int32_t> roots, feature, cut, left;
    std::vector<std::int64_t> value;
    std::vector<std::int32_t> inputs;
    std::vector<std::int64_t> first;
    std::vector<std::uint8_t> bins;
};

class Ensemble {
public:
    explicit Ensemble(EnsembleArrays arrays)
        : roots_(std::move(arrays.roots)), value_(std::move(arrays.value)), inputs_(std::move(arrays.inputs)),
          first_(std::move(arrays.first)), bins_(std::move(arrays.bins)) {
        check_inputs();
        const std::size_t n = arrays.feature.size();
        require(arrays.cut.size() == n && arrays.left.size() == n && value_.size() == n,
                "the arrays of nodes differ in size");
        require(n < std::size_t{1} << 30, "the trees have too many nodes");
        for (const std::int32_t root : roots_)
            require(root >= 0 && static_cast<std::size_t>(root) < n, "a tree has a root that there is not");
        for (std::size_t node = 0; node < n; ++node)
            steps_.push_back(step_at(node, n, arrays.feature[node], arrays.cut[node], arrays.left[node]));
    }

    std::size_t n_columns() const { return n_columns_; }

    // codes   (at least n_columns, n_rows)
    void predict(const std::int32_t* codes, std::size_t n_rows, std::int64_t* out, Pulse& pulse) const {
        std::vector<std::uint8_t> block(kBlock * inputs_.size());
        for (std::size_t begin = 0; begin < n_rows; begin += kBlock) {
            const std::size_t n = std::min(kBlock, n_rows - begin);
            read(codes + begin, n_rows, n, block.data(), pulse);
            std::uint64_t sums[kBlock] = {};
            for (const std::int32_t root : roots_) {
                pulse.tick(kPerTree * n);
                std::size_t row = 0;
                for (; row + kTogether <= n; row += kTogether)
                    walk<kTogether>(block.data() + row * inputs_.size(), root, sums + row, pulse);
                for (; row < n; ++row) walk<1>(block.data() + row * inputs_.size(), root, sums + row, pulse);
            }
            for (std::size_t row = 0; row < n; ++row) out[begin + row] = static_cast<std::int64_t>(sums[row]);
        }
    }

private:
    static constexpr std::size_t kBlock = 512, kTogether = 8, kPerTree = 8;

    // Where a row goes from a node: to the child, or to the one after it if its bin is above the cut.
    struct Step {
        std::int32_t child;
        std::uint16_t feature;
        std::uint16_t cut;
    };

    void check_inputs() {
        require(inputs_.size() < 65536, "there are too many inputs");
        require(first_.size() == inputs_.size() + 1 && first_.front() == 0, "the bins do not begin at 0");
        for (std::size_t k = 0; k < inputs_.size(); ++k) {
            require(inputs_[k] >= 0, "an input is no column");
            require(first_[k + 1] >= first_[k], "the bins do not ascend");
            n_columns_ = std::max(n_columns_, static_cast<std::size_t>(inputs_[k]) + 1);
        }
        require(first_.back() == static_cast<std::int64_t>(bins_.size()), "the inputs do not share out the bins");
    }

    // Children come after their parents, so that every walk ends.
    Step step_at(std::size_t node, std::size_t n_nodes, std::int32_t feature, std::int32_t cut,
                 std::int32_t left) const {
        if (feature == -1) return {static_cast<std::int32_t>(node), 0, 255};
        require(feature >= 0 && static_cast<std::size_t>(feature) < inputs_.size(), "a node splits on no input");
        require(cut >= 0 && cut < 255, "a cut is beyond the bins");
        require(left > static_cast<std::int64_t>(node) && static_cast<std::size_t>(left) + 1 < n_nodes,
                "a child does not come after its parent");
        return {left, static_cast<std::uint16_t>(feature), static_cast<std::uint16_t>(cut)};
    }

    // Bins of a block of rows, by row, then input.
    void read(const std::int32_t* codes, std::size_t stride, std::size_t n, std::uint8_t* block,
              Pulse& pulse) const {
        for (std::size_t k = 0; k < inputs_.size(); ++k) {
            const std::int32_t* own = codes + static_cast<std::size_t>(inputs_[k]) * stride;
            const std::uint8_t* bins = bins_.data() + first_[k];
            const auto n_codes = static_cast<std::uint64_t>(first_[k + 1] - first_[k]);
            bool known = true;
            for (std::size_t row = 0; row < n; ++row) {
                const auto code = static_cast<std::uint32_t>(own[row]);
                known &= code < n_codes;
                block[row * inputs_.size() + k] = code < n_codes ? bins[code] : std::uint8_t{0};
            }
            require(known, "a code is none of its column's");
            pulse.tick(n);
        }
    }

    template <std::size_t N>
    void walk(const std::uint8_t* rows, std::int32_t root, std::uint64_t* sums, Pulse& pulse) const {
        std::int32_t at[N];
        std::fill_n(at, N, root);
        // A tree that is but a leaf reads no bin.
        if (steps_[static_cast<std::size_t>(root)].child != root) {
            for (std::int32_t moved = 1; moved;) {
                moved = 0;
                for (std::size_t i = 0; i < N; ++i) {
                    const Step step = steps_[static_cast<std::size_t>(at[i])];
                    const std::int32_t next = step.child + (rows[i * inputs_.size() + step.feature] > step.cut);
                    moved |= next ^ at[i];
                    at[i] = next;
                }
            }
        }
        pulse.tick(1);
        for (std::size_t i = 0; i < N; ++i)
            sums[i] += static_cast<std::uint64_t>(value_[static_cast<std::size_t>(at[i])]);
    }

    std::vector<std::int32_t> roots_;
    std::vector<std::int64_t> value_;
    std::vector<std::int32_t> inputs_;
    std::vector<std::int64_t> first_;
    std::vector<std::uint8_t> bins_;
    std::vector<Step> steps_;
    std::size_t n_columns_ = 0;
};

}  // namespace mcce
