// The responses that trees predict, with their sums as integers; see tests/oracles/numpy_kernels/growing.py.
//
// A `Tally` sums up the rows of one code, a `Prefix` those that would go left. An `Entry` is what a node's
// table holds per code, such that a child's table is its parent's minus its sibling's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "compiler.hpp"

namespace mcce {

// Sums of int64 units, or of int32 ones and noughts.
template <class Int>
struct Cell {
    Int sum, count;

    static Cell of(std::int64_t sum, std::size_t count) {
        return {static_cast<Int>(sum), static_cast<Int>(count)};
    }
    Cell& operator+=(const Cell& other) {
        sum += other.sum;
        count += other.count;
        return *this;
    }
    Cell& operator-=(const Cell& other) {
        sum -= other.sum;
        count -= other.count;
        return *this;
    }
    Cell operator-(const Cell& other) const { return {sum - other.sum, count - other.count}; }
};

// The gain of a split with sum s among n_left rows on the left is, up to rounding, squares * t^2 /
// (n_left n_right n) with t = s n - all n_left. A split that the floor does not admit is certainly worse
// than the best so far.
struct Floor {
    double n, all, bound;

    Floor(std::int64_t count, std::int64_t sum, double squares, double best)
        : n(static_cast<double>(count)), all(static_cast<double>(sum)),
          bound((best * (1.0 - 1e-9) - 1e-6) * n / squares) {}

    bool admits(std::int64_t sum, std::int64_t count) const {
        const auto n_left = static_cast<double>(count);
        const double t = static_cast<double>(sum) * n - all * n_left;
        return t * t > bound * (n_left * (n - n_left));
    }
};

class NumberResponse {
public:
    using Value = std::int64_t;
    using Tally = Cell<std::int64_t>;
    using Entry = Tally;
    using Prefix = Tally;
    static constexpr bool kByRow = false;

    NumberResponse(const std::int64_t* units, std::size_t n_rows) : values_(units, units + n_rows) {}

    std::size_t n_entries() const { return 1; }

    // Takes rows to be tallied.
    void load(std::size_t begin, std::size_t n) {
        node_ = &values_[begin];
        std::int64_t sum = 0;
        for (std::size_t i = 0; i < n; ++i) sum += node_[i];
        loaded_ = {sum, static_cast<std::int64_t>(n)};
    }
    // Takes a node's rows; true if it is pure.
    bool enter(std::size_t begin, std::size_t n) {
        load(begin, n);
        bool pure = true;
        for (std::size_t i = 1; i < n; ++i) pure &= node_[i] == node_[0];
        const std::int64_t size = loaded_.count;
        mean_ = loaded_.sum / size - (loaded_.sum % size < 0);
        all_ = centred(loaded_);
        return pure;
    }
    std::vector<std::int64_t>& values() { return values_; }
    const Tally& loaded() const { return loaded_; }
    void add(Tally& tally, std::size_t i) const {
        tally.sum += node_[i];
        ++tally.count;
    }
    void enrol(Entry* entry, std::size_t i) const { add(*entry, i); }
    // The rows with code 1 in a column of two codes.
    Tally ones(const std::uint32_t* codes, std::size_t n) const {
        std::int64_t sum = 0, count = 0;
        for (std::size_t i = 0; i < n; ++i) {
            const auto one = static_cast<std::int64_t>(codes[i]);
            sum += node_[i] & -one;
            count += one;
        }
        return {sum, count};
    }
    static std::int64_t count(const Entry* entry) { return entry->count; }
    double level_mean(const Entry* entry) const {
        return static_cast<double>(centred(*entry).sum) / static_cast<double>(entry->count);
    }

    Prefix start() const { return {0, 0}; }
    void advance(Prefix& prefix, const Entry* entry) const { prefix += centred(*entry); }
    void advance_row(Prefix& prefix, std::uint32_t place) const {
        prefix.sum += values_[place] - mean_;
        ++prefix.count;
    }
    Floor floor(double best) const { return {all_.count, all_.sum, 1.0, best}; }
    double gain(const Prefix& prefix) const {
        const auto n = static_cast<double>(all_.count);
        const auto n_left = static_cast<double>(prefix.count);
        const double n_right = n - n_left;
        const double gap = static_cast<double>(prefix.sum) / n_left -
                           static_cast<double>(all_.sum - prefix.sum) / n_right;
        return (gap * gap) * (n_left * n_right / n);
    }

private:
    Tally centred(const Tally& tally) const { return {tally.sum - mean_ * tally.count, tally.count}; }

    std::vector<std::int64_t> values_;  // units of all rows, by node
    const std::int64_t* node_ = nullptr;
    Tally loaded_{0, 0}, all_{0, 0};
    std::int64_t mean_ = 0;  // of the node, rounded down
};

class BinaryResponse {
public:
    using Value = std::uint8_t;
    using Tally = Cell<std::int32_t>;
    using Entry = Tally;
    using Prefix = Tally;
    static constexpr bool kByRow = false;

    BinaryResponse(const std::int32_t* classes, std::size_t n_rows) : values_(classes, classes + n_rows) {}

    std::size_t n_entries() const { return 1; }

    void load(std::size_t begin, std::size_t n) {
        node_ = &values_[begin];
        std::int32_t hits = 0;
        for (std::size_t i = 0; i < n; ++i) hits += node_[i];
        loaded_ = {hits, static_cast<std::int32_t>(n)};
    }
    bool enter(std::size_t begin, std::size_t n) {
        load(begin, n);
        all_ = loaded_;
        purity_ = static_cast<double>(squares(all_)) / static_cast<double>(n);
        return all_.sum == 0 || all_.sum == all_.count;
    }
    std::vector<std::uint8_t>& values() { return values_; }
    const Tally& loaded() const { return loaded_; }
    void add(Tally& tally, std::size_t i) const {
        tally.sum += node_[i];
        ++tally.count;
    }
    void enrol(Entry* entry, std::size_t i) const { add(*entry, i); }
    Tally ones(const std::uint32_t* codes, std::size_t n) const {
        std::int32_t hits = 0, count = 0;
        for (std::size_t i = 0; i < n; ++i) {
            hits += static_cast<std::int32_t>(codes[i]) & node_[i];
            count += static_cast<std::int32_t>(codes[i]);
        }
        return {hits, count};
    }
    static std::int64_t count(const Entry* entry) { return entry->count; }
    static double level_mean(const Entry* entry) {
        return static_cast<double>(entry->sum) / static_cast<double>(entry->count);
    }

    Prefix start() const { return {0, 0}; }
    static void advance(Prefix& prefix, const Entry* entry) { prefix += *entry; }
    void advance_row(Prefix& prefix, std::uint32_t place) const {
        prefix.sum += values_[place];
        ++prefix.count;
    }
    Floor floor(double best) const { return {all_.count, all_.sum, 2.0, best}; }
    double gain(const Prefix& prefix) const {
        const Tally rest = all_ - prefix;
        return static_cast<double>(squares(prefix)) / static_cast<double>(prefix.count) +
               static_cast<double>(squares(rest)) / static_cast<double>(rest.count) - purity_;
    }

private:
    static std::int64_t squares(const Tally& tally) {
        const std::int64_t hits = tally.sum, rest = tally.count - tally.sum;
        return hits * hits + rest * rest;
    }
    std::vector<std::uint8_t> values_;
    const std::uint8_t* node_ = nullptr;
    Tally loaded_{0, 0}, all_{0, 0};
    double purity_ = 0.0;
};

// Many classes. A table holds a count per code and class. Where the node is too small for one, rows
// go left one by one: a row of a class with `seen` rows on the left adds 2 seen + 1 to the sum of
// squares, so the work does not depend on the number of classes.
class ClassResponse {
public:
    using Value = std::int32_t;
    using Tally = Cell<std::int32_t>;  // rows of the node's most frequent class, and all
    using Entry = std::int32_t;
    struct Prefix {
        std::int64_t squares, cross, count;
    };
    static constexpr bool kByRow = true;

    ClassResponse(const std::int32_t* classes, std::size_t n_rows, std::size_t n_classes)
        : values_(classes, classes + n_rows), totals_(n_classes), left_(n_classes) {}

    std::size_t n_entries() const { return totals_.size(); }
    // Distinct classes of the node.
    std::size_t n_present() const { return present_.size(); }

    void load(std::size_t begin, std::size_t) { node_ = &values_[begin]; }
    bool enter(std::size_t begin, std::size_t n) {
        load(begin, n);
        for (const auto k : present_) totals_[static_cast<std::size_t>(k)] = 0;
        present_.clear();
        for (std::size_t i = 0; i < n; ++i)
            if (totals_[static_cast<std::size_t>(node_[i])]++ == 0) present_.push_back(node_[i]);
        size_ = static_cast<std::int64_t>(n);
        all_squares_ = 0;
        target_ = present_[0];
        for (const auto k : present_) {
            const std::int64_t count = total(k), most = total(target_);
            all_squares_ += count * count;
            if (count > most || (count == most && k < target_)) target_ = k;
        }
        purity_ = static_cast<double>(all_squares_) / static_cast<double>(n);
        return present_.size() == 1;
    }
    std::vector<std::int32_t>& values() { return values_; }
    void add(Tally& tally, std::size_t i) const {
        tally.sum += node_[i] == target_;
        ++tally.count;
    }
    void enrol(Entry* entry, std::size_t i) const { ++entry[node_[i]]; }
    std::int64_t count(const Entry* entry) const {
        std::int64_t count = 0;
        for (const auto k : present_) count += entry[k];
        return count;
    }
    double level_mean(const Entry* entry) const {
        return static_cast<double>(entry[target_]) / static_cast<double>(count(entry));
    }
    static double level_mean(const Tally* tally) {
        return static_cast<double>(tally->sum) / static_cast<double>(tally->count);
    }

    Prefix start() {
        for (const auto k : present_) left_[static_cast<std::size_t>(k)] = 0;
        return {0, 0, 0};
    }
    void advance(Prefix& prefix, const Entry* entry) {
        for (const auto k : present_) {
            const std::int64_t count = entry[k], seen = left_[static_cast<std::size_t>(k)];
            left_[static_cast<std::size_t>(k)] = seen + count;
            prefix.squares += count * (2 * seen + count);
            prefix.cross += count * total(k);
            prefix.count += count;
        }
    }
    void advance_row(Prefix& prefix, std::uint32_t place) {
        const auto k = static_cast<std::size_t>(values_[place]);
        prefix.squares += 2 * left_[k]++ + 1;
        prefix.cross += totals_[k];
        ++prefix.count;
    }
    double gain(const Prefix& prefix) const {
        const std::int64_t right = all_squares_ - 2 * prefix.cross + prefix.squares;
        return static_cast<double>(prefix.squares) / static_cast<double>(prefix.count) +
               static_cast<double>(right) / static_cast<double>(size_ - prefix.count) - purity_;
    }

private:
    std::int64_t total(std::int32_t k) const { return totals_[static_cast<std::size_t>(k)]; }

    std::vector<std::int32_t> values_, present_;
    const std::int32_t* node_ = nullptr;
    std::vector<std::int64_t> totals_, left_;
    std::int64_t size_ = 0, all_squares_ = 0;
    std::int32_t target_ = 0;
    double purity_ = 0.0;
};

}  // namespace mcce
