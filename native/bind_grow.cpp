// Growing a tree.
#include <nanobind/stl/optional.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "arrays.hpp"
#include "mcce/fill.hpp"
#include "mcce/forest.hpp"
#include "mcce/grow.hpp"
#include "watch.hpp"

namespace {

using AnyColumn = nb::ndarray<nb::ro, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// The columns, and the arrays they point into.
class Columns {
public:
    Columns(const nb::list& codes, const In<std::int32_t, 1>& n_codes, const In<std::uint8_t, 1>& by_set,
            const In<std::uint8_t, 1>& ordered, std::size_t n_rows)
        : n_rows_(n_rows), codes_(codes.size()) {
        const std::size_t n = codes.size();
        mcce::require(n_codes.size() == n && by_set.size() == n && ordered.size() == n,
                      "the arrays of columns differ in size");
        for (std::size_t j = 0; j < n; ++j) {
            mcce::require(nb::try_cast(codes[j], codes_[j]) && codes_[j].size() == n_rows,
                          "a column is of other rows than the response");
            columns_.push_back({codes_[j].data(), static_cast<int>(codes_[j].itemsize()), n_codes.data()[j],
                                by_set.data()[j] != 0, ordered.data()[j] != 0});
        }
    }

    const std::vector<mcce::Column>& all() const { return columns_; }

    // Refuses columns that cannot be split on.
    void check_inputs(const std::vector<std::int32_t>& inputs) const {
        std::vector<bool> met(columns_.size());
        for (const std::int32_t number : inputs) {
            const auto at = static_cast<std::size_t>(number);
            mcce::require(at < columns_.size() && !met[at], "the inputs are not distinct columns");
            met[at] = true;
            check_input(codes_[at], columns_[at]);
        }
    }

private:
    void check_input(const AnyColumn& codes, const mcce::Column& column) const {
        const auto type = codes.dtype();
        mcce::require(type == nb::dtype<std::uint8_t>() || type == nb::dtype<std::uint16_t>() ||
                          type == nb::dtype<std::uint32_t>(),
                      "codes must be unsigned integers of 8, 16 or 32 bits");
        column.with_codes([&](const auto* own) {
            const auto n_codes = static_cast<std::uint32_t>(std::max(column.n_codes, 0));
            std::uint32_t highest = 0;
            for (std::size_t row = 0; row < n_rows_; ++row) highest = std::max<std::uint32_t>(highest, own[row]);
            mcce::require(!n_rows_ || highest < n_codes, "a column has a code beyond its last");
        });
    }

    std::size_t n_rows_;
    std::vector<mcce::Column> columns_;
    std::vector<AnyColumn> codes_;
};

// Sums of the units stay within 62 bits, and classes are counted by number.
void check_response(const In<std::int64_t, 1>& units, const In<std::int32_t, 1>& classes, std::size_t n_classes,
                    std::size_t n_rows) {
    mcce::require((n_classes ? classes.size() : units.size()) == n_rows,
                  "the response has more or fewer rows than its codes");
    mcce::require(n_classes <= static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max()),
                  "there are too many classes");
    bool fits = true;
    if (n_classes) {
        for (std::size_t i = 0; i < n_rows; ++i)
            fits &= static_cast<std::uint32_t>(classes.data()[i]) < n_classes;
    } else {
        const std::int64_t most = (std::int64_t{1} << 62) / static_cast<std::int64_t>(n_rows + 1);
        for (std::size_t i = 0; i < n_rows; ++i)
            fits &= units.data()[i] <= most && units.data()[i] >= -most;
    }
    mcce::require(fits, "a response is no class, or too large to be summed");
}

// The rows that decide on the splits: their columns, responses and answers, side by side.
class Drawn {
public:
    Drawn(const std::vector<std::int64_t>& rows, const std::vector<mcce::Column>& columns,
          const std::vector<std::int32_t>& inputs)
        : rows_(rows.begin(), rows.end()), columns_(columns), codes_(columns.size()) {
        for (const std::int32_t number : inputs) {
            const auto at = static_cast<std::size_t>(number);
            columns[at].gather(rows_.data(), rows_.size(), codes_[at]);
            columns_[at].codes = codes_[at].data();
        }
    }

    const std::vector<mcce::Column>& columns() const { return columns_; }
    std::size_t size() const { return rows_.size(); }

    template <class Value>
    std::vector<Value> take(const Value* values) const {
        std::vector<Value> taken(rows_.size());
        for (std::size_t i = 0; i < rows_.size(); ++i) taken[i] = values[rows_[i]];
        return taken;
    }

private:
    std::vector<std::uint32_t> rows_;
    std::vector<mcce::Column> columns_;
    std::vector<std::vector<unsigned char>> codes_;  // of each column
};

// The response of some rows, and what to grow from it.
struct Problem {
    const std::vector<mcce::Column>& columns;
    const std::vector<std::int32_t>& inputs;
    const std::int64_t* units;
    const std::int32_t* classes;
    std::size_t n_classes;
    const std::int32_t* answers;
    std::size_t n_rows;
};

mcce::Tree grow(const Problem& of, const mcce::Growth& growth, mcce::Pulse& pulse) {
    const auto grow_on = [&](auto response) {
        return mcce::Grower(of.columns, of.inputs, std::move(response), of.answers, of.n_rows, growth, pulse).grow();
    };
    if (of.n_classes == 0) return grow_on(mcce::NumberResponse(of.units, of.n_rows));
    if (of.n_classes == 2) return grow_on(mcce::BinaryResponse(of.classes, of.n_rows));
    return grow_on(mcce::ClassResponse(of.classes, of.n_rows, of.n_classes));
}

// The same on drawn rows; the leaves keep all.
mcce::Tree grow_drawn(const Problem& all, const std::vector<std::int64_t>& rows, const mcce::Growth& growth,
                      mcce::Pulse& pulse) {
    const Drawn drawn(rows, all.columns, all.inputs);
    const auto units = all.n_classes ? std::vector<std::int64_t>{} : drawn.take(all.units);
    const auto classes = all.n_classes ? drawn.take(all.classes) : std::vector<std::int32_t>{};
    const auto answers = drawn.take(all.answers);
    const Problem some{drawn.columns(), all.inputs,     units.data(), classes.data(),
                       all.n_classes,   answers.data(), drawn.size()};
    return mcce::Filler(all.columns, all.answers, all.n_rows, pulse).fill(grow(some, growth, pulse));
}

nb::tuple grow_tree(const nb::list& codes, const In<std::int32_t, 1>& n_codes,
                    const In<std::uint8_t, 1>& by_set, const In<std::uint8_t, 1>& ordered,
                    const In<std::int32_t, 1>& inputs, const In<std::int64_t, 1>& units,
                    const In<std::int32_t, 1>& classes, std::size_t n_classes,
                    const In<std::int32_t, 1>& answers, std::int64_t min_samples_leaf,
                    std::int64_t min_samples_split, std::int64_t max_depth,
                    std::int32_t decision_column, bool grow_undesired, std::int64_t levels_per_row,
                    std::int64_t many_levels, std::int64_t smallest_part, std::int64_t max_features,
                    std::uint64_t key, const std::optional<In<std::int64_t, 1>>& drawn, const Watch& watch) {
    const std::size_t n_rows = answers.size();
    mcce::require(n_rows <= mcce::kMostRows, "there are too many rows");
    mcce::require(min_samples_leaf > 0, "min_samples_leaf must be at least 1");
    // Two classes have a response of their own, which knows no rule for many of them.
    mcce::require(many_levels > 1, "many_levels must be at least 2");
    mcce::require(smallest_part > 0, "smallest_part must be at least 1");
    mcce::require(max_features, "max_features must be at least 1");
    mcce::require(!drawn || drawn->size() <= n_rows, "more rows are drawn than there are");
    const Columns columns(codes, n_codes, by_set, ordered, n_rows);
    const std::vector<std::int32_t> given = copy(inputs);
    const std::vector<std::int64_t> rows = drawn ? copy(*drawn) : std::vector<std::int64_t>{};
    mcce::check_rows(rows, n_rows);
    // No node has more rows than there are.
    const mcce::Growth growth{std::min(min_samples_leaf, static_cast<std::int64_t>(n_rows) + 1),
                              min_samples_split, max_depth, decision_column, grow_undesired, levels_per_row,
                              many_levels, smallest_part, max_features, key};
    mcce::Tree tree;
    {
        nb::gil_scoped_release release;
        mcce::Pulse pulse = watch.pulse();
        columns.check_inputs(given);
        check_response(units, classes, n_classes, n_rows);
        const Problem all{columns.all(), given,          units.data(), classes.data(),
                          n_classes,     answers.data(), n_rows};
        tree = drawn ? grow_drawn(all, rows, growth, pulse) : grow(all, growth, pulse);
    }
    return nb::make_tuple(give(std::move(tree.feature)), give(std::move(tree.cut)),
                          give(std::move(tree.left)), give(std::move(tree.right)),
                          give(std::move(tree.start)), give(std::move(tree.count)),
                          give(std::move(tree.sets)), give(std::move(tree.values)));
}

}  // namespace

void bind_grow(nb::module_& module) { module.def("grow_tree", &grow_tree); }
