// Growing a tree.
#include <cstdint>
#include <utility>
#include <vector>

#include "arrays.hpp"
#include "mcce/forest.hpp"
#include "mcce/grow.hpp"

namespace {

using AnyColumn = nb::ndarray<nb::ro, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Order = In<std::uint32_t, 1>;

// The columns, and the arrays they point into.
struct Columns {
    std::vector<mcce::Column> columns;
    std::vector<AnyColumn> codes;
    std::vector<Order> orders;

    Columns(const nb::list& all_codes, const In<std::int32_t, 1>& n_codes, const In<std::uint8_t, 1>& by_set,
            const In<std::uint8_t, 1>& ordered, const nb::list& all_orders, std::size_t n_rows) {
        const std::size_t n = all_codes.size();
        mcce::require(n_codes.size() == n && by_set.size() == n && ordered.size() == n &&
                          all_orders.size() == n,
                      "the arrays of columns differ in size");
        for (std::size_t j = 0; j < n; ++j) {
            codes.push_back(nb::cast<AnyColumn>(all_codes[j]));
            const std::uint32_t* order = nullptr;
            if (!all_orders[j].is_none()) {
                orders.push_back(nb::cast<Order>(all_orders[j]));
                mcce::require(orders.back().size() == n_rows, "an order is of other rows than the response");
                order = orders.back().data();
            }
            mcce::require(codes.back().size() == n_rows, "a column is of other rows than the response");
            columns.push_back({codes.back().data(), static_cast<int>(codes.back().itemsize()),
                               n_codes.data()[j], by_set.data()[j] != 0, ordered.data()[j] != 0, order});
        }
    }
};

nb::tuple grow_tree(const nb::list& codes, const In<std::int32_t, 1>& n_codes,
                    const In<std::uint8_t, 1>& by_set, const In<std::uint8_t, 1>& ordered,
                    const nb::list& orders, const In<std::int32_t, 1>& inputs, const In<std::int64_t, 1>& units,
                    const In<std::int32_t, 1>& classes, std::size_t n_classes,
                    const In<std::int32_t, 1>& answers, std::int64_t min_samples_leaf,
                    std::int64_t min_samples_split, std::int64_t max_depth,
                    std::int32_t decision_column, bool grow_undesired) {
    const Columns all(codes, n_codes, by_set, ordered, orders, answers.size());
    mcce::require((n_classes ? classes.size() : units.size()) == answers.size(),
                  "the response has more or fewer rows than its codes");
    for (std::size_t i = 0; i < inputs.size(); ++i)
        mcce::require(inputs.data()[i] >= 0 && static_cast<std::size_t>(inputs.data()[i]) < all.columns.size(),
                      "an input is no column");
    const std::vector<std::int32_t> given = copy(inputs);
    const mcce::Growth growth{min_samples_leaf, min_samples_split, max_depth, decision_column,
                              grow_undesired};
    mcce::Tree tree;
    {
        nb::gil_scoped_release release;
        const auto grow = [&](auto response) {
            return mcce::Grower(all.columns, given, std::move(response), answers.data(), answers.size(),
                                growth).grow();
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
