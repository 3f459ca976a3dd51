// Growing a tree.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "arrays.hpp"
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

nb::tuple grow_tree(const nb::list& codes, const In<std::int32_t, 1>& n_codes,
                    const In<std::uint8_t, 1>& by_set, const In<std::uint8_t, 1>& ordered,
                    const In<std::int32_t, 1>& inputs, const In<std::int64_t, 1>& units,
                    const In<std::int32_t, 1>& classes, std::size_t n_classes,
                    const In<std::int32_t, 1>& answers, std::int64_t min_samples_leaf,
                    std::int64_t min_samples_split, std::int64_t max_depth,
                    std::int32_t decision_column, bool grow_undesired, std::int64_t levels_per_row,
                    std::int64_t many_levels, std::int64_t smallest_part, const Watch& watch) {
    const std::size_t n_rows = answers.size();
    mcce::require(n_rows <= mcce::kMostRows, "there are too many rows");
    mcce::require(min_samples_leaf > 0, "min_samples_leaf must be at least 1");
    // Two classes have a response of their own, which knows no rule for many of them.
    mcce::require(many_levels > 1, "many_levels must be at least 2");
    mcce::require(smallest_part > 0, "smallest_part must be at least 1");
    const Columns columns(codes, n_codes, by_set, ordered, n_rows);
    const std::vector<std::int32_t> given = copy(inputs);
    // No node has more rows than there are.
    const mcce::Growth growth{std::min(min_samples_leaf, static_cast<std::int64_t>(n_rows) + 1),
                              min_samples_split, max_depth, decision_column, grow_undesired, levels_per_row,
                              many_levels, smallest_part};
    mcce::Tree tree;
    {
        nb::gil_scoped_release release;
        mcce::Pulse pulse = watch.pulse();
        columns.check_inputs(given);
        check_response(units, classes, n_classes, n_rows);
        const auto grow = [&](auto response) {
            return mcce::Grower(columns.all(), given, std::move(response), answers.data(), n_rows, growth, pulse)
                .grow();
        };
        if (n_classes == 0) {
            tree = grow(mcce::NumberResponse(units.data(), units.size()));
        } else if (n_classes == 2) {
            tree = grow(mcce::BinaryResponse(classes.data(), classes.size()));
        } else {
            tree = grow(mcce::ClassResponse(classes.data(), classes.size(), n_classes));
        }
    }
    return nb::make_tuple(give(std::move(tree.feature)), give(std::move(tree.cut)),
                          give(std::move(tree.left)), give(std::move(tree.right)),
                          give(std::move(tree.start)), give(std::move(tree.count)),
                          give(std::move(tree.sets)), give(std::move(tree.values)));
}

}  // namespace

void bind_grow(nb::module_& module) { module.def("grow_tree", &grow_tree); }
