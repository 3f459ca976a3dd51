// Training rows, bound once, and the distances to the nearest of them.
#include <nanobind/stl/shared_ptr.h>

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "arrays.hpp"
#include "mcce/nearest.hpp"
#include "watch.hpp"

namespace {

// The points are kept as they came: whatever they are, no search can leave them.
struct Neighbours {
    In<double, 2> points;
    std::vector<std::uint8_t> is_level;
    mcce::Neighbours tree;
    mcce::ShortColumns short_columns;
};

nb::tuple build_neighbours(const In<double, 2>& points, const In<std::uint8_t, 1>& is_level,
                           const Watch& watch) {
    mcce::require(is_level.size() == points.shape(1), "is_level needs one entry per column");
    mcce::Neighbours built;
    {
        nb::gil_scoped_release release;
        mcce::Pulse pulse = watch.pulse();
        mcce::NeighbourBuilder builder(points.data(), points.shape(0), points.shape(1), is_level.data(),
                                       pulse);
        built = builder.build();
    }
    return nb::make_tuple(give(std::move(built.points), {points.shape(0), points.shape(1)}),
                          give(std::move(built.first)), give(std::move(built.last)),
                          give(std::move(built.left)), give(std::move(built.right)),
                          give(std::move(built.column)), give(std::move(built.left_edge)),
                          give(std::move(built.right_edge)));
}

std::shared_ptr<Neighbours> make_neighbours(const In<double, 2>& points, const In<std::int64_t, 1>& first,
                                            const In<std::int64_t, 1>& last, const In<std::int64_t, 1>& left,
                                            const In<std::int64_t, 1>& right, const In<std::int32_t, 1>& column,
                                            const In<double, 1>& left_edge, const In<double, 1>& right_edge,
                                            const In<std::uint8_t, 1>& is_level) {
    mcce::require(is_level.size() == points.shape(1), "is_level needs one entry per column");
    mcce::Neighbours tree{{}, copy(first), copy(last), copy(left), copy(right), copy(column), copy(left_edge),
                          copy(right_edge)};
    mcce::check_neighbours(tree, points.shape(0), points.shape(1));
    return std::make_shared<Neighbours>(Neighbours{points, copy(is_level), std::move(tree),
                                                   {points.data(), points.shape(0), points.shape(1)}});
}

Out<double> nearest(const Neighbours& all, const In<double, 2>& rows, std::size_t k, const Watch& watch) {
    const std::size_t n_rows = rows.shape(0), n_columns = rows.shape(1);
    mcce::require(n_columns == all.is_level.size(), "rows have other columns than the neighbours");
    mcce::require(k > 0, "k must be at least 1");
    std::vector<double> out(n_entries({n_rows, k}));
    {
        nb::gil_scoped_release release;
        mcce::Pulse pulse = watch.pulse();
        mcce::Seeker seeker({all.points.data(), n_columns, all.is_level.data(), all.tree, all.short_columns}, k);
        for (std::size_t row = 0; row < n_rows; ++row) {
            pulse.tick(k + all.points.shape(0));  // a search sees some of the points, or all
            seeker.seek(rows.data() + row * n_columns, &out[row * k]);
        }
    }
    return give(std::move(out), {n_rows, k});
}

}  // namespace

void bind_neighbours(nb::module_& module) {
    module.def("build_neighbours", &build_neighbours);
    nb::class_<Neighbours>(module, "Neighbours")
        .def(nb::new_(&make_neighbours))
        .def("nearest", &nearest, nb::arg("rows"), nb::arg("k"), nb::arg("watch"));
}
