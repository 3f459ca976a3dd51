// The trees of a chain, checked and owned, and the walk down a tree.
//
// Kernels walk trees without bounds checks. So a Forest copies the arrays it is given, which nobody
// can change from then on, and refuses those in which a walk could leave them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <utility>
#include <vector>

#include "compiler.hpp"
#include "tree.hpp"

namespace mcce {

MCCE_COLD inline void refuse(const char* message) { throw std::invalid_argument(message); }

inline void require(bool holds, const char* message) {
    if (!holds) refuse(message);
}

// Numbers of rows must be those of some of so many.
inline void check_rows(const std::vector<std::int64_t>& rows, std::size_t n_all) {
    for (const std::int64_t row : rows)
        require(row >= 0 && static_cast<std::size_t>(row) < n_all, "there is no such row");
}

// So many training rows keep every product of two counts, times a hundred, within 64 bits.
constexpr std::size_t kMostRows = std::size_t{1} << 28;
constexpr std::int32_t kNoNode = -1;

inline bool has_bit(const std::uint64_t* set, std::int32_t code) {
    return (set[static_cast<std::uint32_t>(code) / 64] >> (static_cast<std::uint32_t>(code) % 64)) & 1;
}

// A node as draws read it: all in one place, as most nodes of a large forest are not in the cache. A left
// child comes next.
struct Step {
    enum Kind : std::uint32_t { kCut, kSet, kLongSet, kEnd };

    std::uint64_t word;     // a cut, a set of less than 64 levels, the place of a larger one, or that of values
    std::int32_t right;     // of a leaf, the number of its values
    std::uint32_t column_;  // times four, plus the kind

    Step() = default;
    Step(std::uint64_t first, std::int32_t second, std::int32_t column, Kind kind)
        : word(first), right(second), column_(static_cast<std::uint32_t>(column) * 4 + kind) {}

    std::uint32_t column() const { return column_ / 4; }
    std::uint32_t kind() const { return column_ % 4; }
    bool is_leaf() const { return kind() == kEnd; }
    std::int32_t cut() const { return static_cast<std::int32_t>(word); }
};

// A forest as kernels read it; kernels/structs.py documents the arrays.
struct ForestView {
    const std::int64_t* roots;
    std::size_t n_trees, n_nodes, n_columns;
    const std::int32_t *feature, *cut, *left, *right, *count;
    const std::int64_t* start;
    const std::uint64_t* sets;
    const std::int32_t* values;
    const std::int32_t* responses;  // (n_trees,) the column that each tree predicts, the same ones adjacent
    const std::int32_t* n_levels;   // (n_columns,) levels of a categorical column, 0 for a numeric one
    const std::int32_t* above;      // (n_nodes,) parent of a node, kNoNode for a root
    const std::int64_t *first, *end;  // (n_nodes,) the values that a node holds, leaf after leaf
    const Step* steps;                // (n_nodes,)

    // Whether a row with this code in the node's column goes left.
    bool goes_left(std::int32_t node, std::int32_t code) const {
        return n_levels[feature[node]] ? has_bit(sets + cut[node], code) : code <= cut[node];
    }
    std::size_t end_of(std::size_t tree) const {
        return tree + 1 < n_trees ? static_cast<std::size_t>(roots[tree + 1]) : n_nodes;
    }
};

// The arrays of kernels.Forest.
struct ForestArrays {
    std::vector<std::int64_t> roots;
    std::vector<std::int32_t> feature, cut, left, right;
    std::vector<std::int64_t> start;
    std::vector<std::int32_t> count;
    std::vector<std::uint64_t> sets;
    std::vector<std::int32_t> values, responses, n_levels;
};

class Forest {
public:
    explicit Forest(ForestArrays arrays) : arrays_(std::move(arrays)), n_codes_(arrays_.roots.size(), 1) {
        check_shapes();
        check_responses();
        std::size_t n_values = 0;
        for (std::size_t tree = 0; tree < n_trees(); ++tree) check_tree(tree, n_values);
        require(n_values == arrays_.values.size(), "the leaves do not use all values");
        find_ranges();
        pad_empty_leaves();
        pack_steps();
    }

    std::size_t n_trees() const { return arrays_.roots.size(); }
    std::size_t n_nodes() const { return arrays_.feature.size(); }
    std::size_t n_columns() const { return arrays_.n_levels.size(); }
    std::size_t n_responses() const { return n_responses_; }
    std::int32_t response(std::size_t tree) const { return arrays_.responses[tree]; }
    std::int32_t n_levels(std::size_t column) const { return arrays_.n_levels[column]; }

    // Refuses trees that split on what they, or later ones, predict: rows cannot be drawn from them.
    void check_chain() const { require(is_chain_, "a node splits on what is predicted later"); }

    // Refuses several trees of a column: what they give together is not listed.
    void check_single() const { require(n_responses_ == n_trees(), "a column has several trees"); }

    // One more than the greatest code that a tree can give.
    std::int64_t n_codes(std::size_t tree) const { return n_codes_[tree]; }

    // Whether all codes that trees can give are below a bound.
    bool gives_below(std::int64_t bound) const {
        return std::all_of(n_codes_.begin(), n_codes_.end(), [=](auto n) { return n <= bound; });
    }

    ForestView view() const {
        const ForestArrays& a = arrays_;
        return {a.roots.data(),  n_trees(),         n_nodes(),       n_columns(),     a.feature.data(),
                a.cut.data(),    a.left.data(),     a.right.data(),  a.count.data(),  a.start.data(),
                a.sets.data(),   a.values.data(),   a.responses.data(), a.n_levels.data(),
                above_.data(),   first_.data(),     end_.data(),     steps_.data()};
    }

    // Copies tree codes, (n_columns, n_rows), and refuses levels that no set has a bit for.
    std::vector<std::int32_t> read_codes(const std::int32_t* codes, std::size_t n_rows) const {
        std::vector<std::int32_t> copied(codes, codes + n_columns() * n_rows);
        for (std::size_t column = 0; column < n_columns(); ++column) {
            const auto n_levels = static_cast<std::uint32_t>(arrays_.n_levels[column]);
            if (!n_levels) continue;
            const std::int32_t* cells = copied.data() + column * n_rows;
            bool known = true;
            for (std::size_t row = 0; row < n_rows; ++row)
                known &= static_cast<std::uint32_t>(cells[row]) <= n_levels;
            require(known, "a code is none of the levels of its column");
        }
        return copied;
    }

private:
    std::size_t first_of(std::size_t tree) const {
        return tree < n_trees() ? static_cast<std::size_t>(arrays_.roots[tree]) : n_nodes();
    }

    void check_shapes() const {
        const ForestArrays& a = arrays_;
        for (const auto* array : {&a.cut, &a.left, &a.right, &a.count})
            require(array->size() == n_nodes(), "the arrays of nodes differ in size");
        require(a.start.size() == n_nodes(), "the arrays of nodes differ in size");
        require(a.responses.size() == n_trees(), "each tree needs one response");
        std::int64_t next = 0;  // the first root is 0, and every tree has a node
        for (const std::int64_t root : a.roots) {
            require(next ? root >= next : root == 0, "the roots do not ascend from 0");
            next = root + 1;
        }
        require(static_cast<std::size_t>(next) <= n_nodes(), "a root is no node");
        require(n_trees() || !n_nodes(), "nodes belong to no tree");
        for (const std::int32_t n_levels : a.n_levels)
            require(n_levels >= 0, "a column has less than no levels");
    }

    // The last tree that predicts each column, for the check of splits.
    void check_responses() {
        tree_of_.assign(n_columns(), kNoTree);
        std::size_t n_each = 0;
        for (std::size_t tree = 0; tree < n_trees(); ++tree) {
            const std::int32_t response = arrays_.responses[tree];
            const bool is_new = !tree || response != arrays_.responses[tree - 1];
            require(is_column(response) && (!is_new || tree_of_[static_cast<std::size_t>(response)] == kNoTree),
                    "the responses are not distinct columns");
            n_responses_ += is_new;
            n_each = is_new ? 1 : n_each + 1;
            require(n_each <= kMostTrees, "a column has too many trees");
            tree_of_[static_cast<std::size_t>(response)] = static_cast<std::int64_t>(tree);
        }
    }

    bool is_column(std::int32_t column) const {
        return column >= 0 && static_cast<std::size_t>(column) < n_columns();
    }

    // Nodes are in preorder: a left child follows its parent, a right one its sibling's subtree. So every
    // walk ends at a leaf, no node has two parents, and the values of a node's rows are adjacent.
    void check_tree(std::size_t tree, std::size_t& n_values) {
        const std::size_t end = first_of(tree + 1), n_before = n_values;
        std::vector<std::int64_t> waiting;  // the right children to come, the next one last
        for (std::size_t node = first_of(tree); node < end; ++node) {
            const auto next = static_cast<std::int64_t>(node) + 1;
            if (arrays_.feature[node] != kLeaf) {
                check_split(tree, node);
                require(arrays_.left[node] == next, "the nodes of a tree are not in preorder");
                waiting.push_back(arrays_.right[node]);
                continue;
            }
            check_leaf(tree, node, n_values);
            if (waiting.empty()) {
                require(node + 1 == end, "a node is nobody's child");
            } else {
                require(waiting.back() == next, "the nodes of a tree are not in preorder");
                waiting.pop_back();
            }
        }
        require(waiting.empty(), "the nodes of a tree are not in preorder");
        require(n_values - n_before <= kMostRows, "a tree has too many rows");
    }

    // Leaves share out the values in node order, ascending within a leaf.
    void check_leaf(std::size_t tree, std::size_t node, std::size_t& n_values) {
        require(arrays_.start[node] == static_cast<std::int64_t>(n_values) && arrays_.count[node] >= 0,
                "the leaves do not share out the values in order");
        const auto count = static_cast<std::size_t>(arrays_.count[node]);
        require(count <= arrays_.values.size() - n_values, "a leaf has values beyond the last");
        const std::int32_t* values = arrays_.values.data() + n_values;
        n_values += count;
        if (!count) return;
        require(values[0] >= 0 && std::is_sorted(values, values + count), "the values of a leaf do not ascend");
        const std::int32_t n_levels = arrays_.n_levels[static_cast<std::size_t>(arrays_.responses[tree])];
        require(!n_levels || values[count - 1] < n_levels, "a leaf has a value that is no level");
        n_codes_[tree] = std::max(n_codes_[tree], std::int64_t{values[count - 1]} + 1);
    }

    // Any cut of a number is fine.
    void check_split(std::size_t tree, std::size_t node) {
        require(is_column(arrays_.feature[node]), "a node splits on no column");
        const auto column = static_cast<std::size_t>(arrays_.feature[node]);
        is_chain_ &= tree_of_[column] < static_cast<std::int64_t>(tree);
        const std::int32_t n_levels = arrays_.n_levels[column];
        if (!n_levels) return;
        // The bit after the last level stands for unseen ones.
        const std::int64_t n_words = n_levels / 64 + 1, n_all = static_cast<std::int64_t>(arrays_.sets.size());
        require(arrays_.cut[node] >= 0 && arrays_.cut[node] <= n_all - n_words, "a set of levels is cut off");
    }

    // The parent and the values of every node; children come after their parents.
    void find_ranges() {
        above_.assign(n_nodes(), kNoNode);
        first_ = end_ = arrays_.start;
        for (std::size_t node = n_nodes(); node-- > 0;) {
            if (arrays_.feature[node] == kLeaf) {
                end_[node] += arrays_.count[node];
                continue;
            }
            const auto left = static_cast<std::size_t>(arrays_.left[node]);
            const auto right = static_cast<std::size_t>(arrays_.right[node]);
            above_[left] = above_[right] = static_cast<std::int32_t>(node);
            first_[node] = first_[left];
            end_[node] = end_[right];
        }
    }

    // A leaf that was never grown gives code 0, should a row come to it, and reads nothing else.
    void pad_empty_leaves() {
        const auto padding = static_cast<std::int64_t>(arrays_.values.size()) + 1;
        arrays_.values.insert(arrays_.values.end(), 2, 0);
        for (std::size_t node = 0; node < n_nodes(); ++node)
            if (arrays_.feature[node] == kLeaf && !arrays_.count[node]) arrays_.start[node] = padding;
    }

    void pack_steps() {
        const ForestArrays& a = arrays_;
        require(n_columns() < std::size_t{1} << 29, "there are too many columns");
        steps_.resize(n_nodes());
        for (std::size_t node = 0; node < n_nodes(); ++node) {
            const std::int32_t column = a.feature[node];
            if (column == kLeaf) {
                steps_[node] = {static_cast<std::uint64_t>(a.start[node]), a.count[node], 0, Step::kEnd};
                continue;
            }
            const std::int32_t n_levels = a.n_levels[static_cast<std::size_t>(column)];
            const auto cut = static_cast<std::uint64_t>(static_cast<std::uint32_t>(a.cut[node]));
            // With the bit of unseen levels, one word.
            const auto kind = n_levels == 0 ? Step::kCut : n_levels < 64 ? Step::kSet : Step::kLongSet;
            const std::uint64_t word = kind == Step::kSet ? a.sets[cut] : cut;
            steps_[node] = {word, a.right[node], column, kind};
        }
    }

    static constexpr std::int64_t kNoTree = -1;
    static constexpr std::size_t kMostTrees = 65'535;  // of one column

    ForestArrays arrays_;
    std::vector<std::int64_t> n_codes_, tree_of_;
    std::vector<std::int32_t> above_;
    std::vector<std::int64_t> first_, end_;
    std::vector<Step> steps_;
    bool is_chain_ = true;
    std::size_t n_responses_ = 0;
};

}  // namespace mcce
