// The one file that knows Python: arrays in, arrays out, the GIL released while a kernel works.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

#include "mcce/compare.hpp"
#include "mcce/exact.hpp"
#include "mcce/grow.hpp"
#include "mcce/nearest.hpp"
#include "mcce/sample.hpp"
#include "mcce/support.hpp"

namespace nb = nanobind;

namespace {

template <class T, int N>
using In = nb::ndarray<const T, nb::ndim<N>, nb::c_contig, nb::device::cpu>;
template <class T>
using Out = nb::ndarray<nb::numpy, T>;

// Hands a vector over to Python without copying it.
template <class T>
Out<T> give(std::vector<T>&& values, std::initializer_list<std::size_t> shape) {
    auto owned = std::make_unique<std::vector<T>>(std::move(values));
    T* data = owned->data();
    nb::capsule owner(owned.release(), [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
    return Out<T>(data, shape, owner);
}

template <class T>
Out<T> give(std::vector<T>&& values) {
    const std::size_t size = values.size();
    return give(std::move(values), {size});
}

using AnyColumn = nb::ndarray<nb::ro, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

std::vector<mcce::Column> read_columns(const nb::list& codes, const In<std::int32_t, 1>& n_codes,
                                       const In<std::uint8_t, 1>& by_set,
                                       const In<std::uint8_t, 1>& ordered, const nb::list& orders) {
    std::vector<mcce::Column> columns;
    for (std::size_t j = 0; j < codes.size(); ++j) {
        const auto column = nb::cast<AnyColumn>(codes[j]);
        const std::uint32_t* order =
            orders[j].is_none() ? nullptr : nb::cast<In<std::uint32_t, 1>>(orders[j]).data();
        columns.push_back({column.data(), static_cast<int>(column.itemsize()), n_codes.data()[j],
                           by_set.data()[j] != 0, ordered.data()[j] != 0, order});
    }
    return columns;
}

nb::tuple grow_tree(const nb::list& codes, const In<std::int32_t, 1>& n_codes,
                    const In<std::uint8_t, 1>& by_set, const In<std::uint8_t, 1>& ordered,
                    const nb::list& orders, const In<std::int32_t, 1>& inputs, const In<std::int64_t, 1>& units,
                    const In<std::int32_t, 1>& classes, std::size_t n_classes,
                    const In<std::int32_t, 1>& answers, std::int64_t min_samples_leaf,
                    std::int64_t min_samples_split, std::int64_t max_depth,
                    std::int32_t decision_column, bool grow_undesired) {
    const auto columns = read_columns(codes, n_codes, by_set, ordered, orders);
    const std::vector<std::int32_t> given(inputs.data(), inputs.data() + inputs.size());
    const mcce::Growth growth{min_samples_leaf, min_samples_split, max_depth, decision_column,
                              grow_undesired};
    mcce::Tree tree;
    {
        nb::gil_scoped_release release;
        const auto grow = [&](auto response) {
            return mcce::Grower(columns, given, std::move(response), answers.data(), answers.size(),
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

// The trees of a chain in the order of kernels.Trees, and the levels of each column.
mcce::Forest read_forest(const In<std::int64_t, 1>& roots, const In<std::int32_t, 1>& feature,
                         const In<std::int32_t, 1>& cut, const In<std::int32_t, 1>& left,
                         const In<std::int32_t, 1>& right, const In<std::int64_t, 1>& start,
                         const In<std::int32_t, 1>& count, const In<std::uint64_t, 1>& sets,
                         const In<std::int32_t, 1>& values, const In<std::int32_t, 1>& n_levels) {
    return {roots.data(), roots.size(), feature.data(), cut.data(),    left.data(),    right.data(),
            count.data(), start.data(), sets.data(),    values.data(), n_levels.data()};
}

Out<std::int32_t> sample(const In<std::int64_t, 1>& roots, const In<std::int32_t, 1>& feature,
                         const In<std::int32_t, 1>& cut, const In<std::int32_t, 1>& left,
                         const In<std::int32_t, 1>& right, const In<std::int64_t, 1>& start,
                         const In<std::int32_t, 1>& count, const In<std::uint64_t, 1>& sets,
                         const In<std::int32_t, 1>& values, const In<std::int32_t, 1>& n_levels,
                         const In<std::int32_t, 1>& responses, const In<std::int32_t, 2>& given,
                         const In<std::uint64_t, 1>& keys, const In<std::int64_t, 1>& draws,
                         const In<std::int32_t, 2>& own, const In<std::int64_t, 2>& first,
                         const In<std::int64_t, 2>& last, const In<std::int32_t, 2>& runs,
                         const In<std::int32_t, 3>& near, const In<std::int32_t, 2>& wanted,
                         std::uint32_t often) {
    const std::size_t n_trees = roots.size(), n_groups = given.shape(1), n_draws = draws.size();
    std::vector<std::int32_t> out(n_trees * n_groups * n_draws);
    {
        nb::gil_scoped_release release;
        const auto forest = read_forest(roots, feature, cut, left, right, start, count, sets, values, n_levels);
        const mcce::Limits limits{own.size() ? own.data() : nullptr, first.data(), last.data(),
                                  runs.data(), near.data()};
        const mcce::Guide guide{wanted.size() ? wanted.data() : nullptr, often};
        mcce::Sampler(forest, responses.data(), limits, guide)
            .sample(given.data(), given.shape(0), n_groups, keys.data(), draws.data(), n_draws,
                    out.data());
    }
    return give(std::move(out), {n_trees, n_groups, n_draws});
}

nb::tuple enumerate_rows(const In<std::int64_t, 1>& roots, const In<std::int32_t, 1>& feature,
                         const In<std::int32_t, 1>& cut, const In<std::int32_t, 1>& left,
                         const In<std::int32_t, 1>& right, const In<std::int64_t, 1>& start,
                         const In<std::int32_t, 1>& count, const In<std::uint64_t, 1>& sets,
                         const In<std::int32_t, 1>& values, const In<std::int32_t, 1>& n_levels,
                         const In<std::int32_t, 1>& responses, const In<std::int32_t, 1>& given,
                         const In<std::int32_t, 1>& exact, const In<std::int32_t, 2>& own,
                         const In<std::int64_t, 2>& first, const In<std::int64_t, 2>& last,
                         const In<std::int32_t, 2>& runs, const In<std::int32_t, 3>& near,
                         const In<double, 1>& costs, const In<std::int64_t, 1>& offsets,
                         std::size_t n_changes, std::size_t n_best, std::int64_t max_nodes,
                         double after_total, const In<std::int32_t, 1>& after) {
    std::vector<std::int32_t> codes;
    std::vector<double> totals;
    std::int64_t n_nodes;
    bool complete;
    {
        nb::gil_scoped_release release;
        const auto forest = read_forest(roots, feature, cut, left, right, start, count, sets, values, n_levels);
        const mcce::Limits limits{own.size() ? own.data() : nullptr, first.data(), last.data(),
                                  runs.data(), near.data()};
        mcce::Enumerator rows(forest, responses.data(), given.size(),
                              {given.data(), exact.data(), limits, costs.data(), offsets.data()});
        rows.list({n_changes, n_best, after_total, after.data(), max_nodes});
        codes.resize(roots.size() * rows.size());
        totals.resize(rows.size());
        rows.write(codes.data(), totals.data());
        n_nodes = rows.n_nodes();
        complete = rows.complete();
    }
    const std::size_t n_rows = totals.size();
    return nb::make_tuple(give(std::move(codes), {roots.size(), n_rows}), give(std::move(totals)), n_nodes,
                          complete);
}

nb::tuple gather_holdings(const In<std::int64_t, 1>& roots, const In<std::int32_t, 1>& feature,
                          const In<std::int32_t, 1>& cut, const In<std::int32_t, 1>& left,
                          const In<std::int32_t, 1>& right, const In<std::int64_t, 1>& start,
                          const In<std::int32_t, 1>& count, const In<std::uint64_t, 1>& sets,
                          const In<std::int32_t, 1>& values, const In<std::int32_t, 1>& n_levels,
                          const In<std::int32_t, 1>& responses, const In<std::int32_t, 1>& missing,
                          bool contradictions) {
    const auto forest = read_forest(roots, feature, cut, left, right, start, count, sets, values, n_levels);
    auto held = mcce::HoldingsGatherer(forest, feature.size(), responses.data(), missing.data(), contradictions)
                    .gather();
    return nb::make_tuple(give(std::move(held.size)), give(std::move(held.low)), give(std::move(held.high)),
                          give(std::move(held.misses)), give(std::move(held.offset)),
                          give(std::move(held.sets)));
}

Out<std::int32_t> strain(const In<std::int64_t, 1>& roots, const In<std::int32_t, 1>& feature,
                         const In<std::int32_t, 1>& cut, const In<std::int32_t, 1>& left,
                         const In<std::int32_t, 1>& right, const In<std::int64_t, 1>& start,
                         const In<std::int32_t, 1>& count, const In<std::uint64_t, 1>& sets,
                         const In<std::int32_t, 1>& values, const In<std::int32_t, 1>& n_levels,
                         const In<std::int32_t, 1>& responses, const In<std::int32_t, 1>& missing,
                         const In<std::int32_t, 1>& size, const In<std::int32_t, 1>& low,
                         const In<std::int32_t, 1>& high, const In<std::uint8_t, 1>& misses,
                         const In<std::int64_t, 1>& offset, const In<std::uint64_t, 1>& held_sets,
                         const In<std::int32_t, 1>& n_codes, const In<std::int32_t, 2>& codes,
                         const In<std::int32_t, 1>& least) {
    const std::size_t n_rows = codes.shape(1);
    std::vector<std::int32_t> out(roots.size() * n_rows);
    {
        nb::gil_scoped_release release;
        const auto forest = read_forest(roots, feature, cut, left, right, start, count, sets, values, n_levels);
        const mcce::Held held{size.data(),   low.data(),    high.data(),
                              misses.data(), offset.data(), held_sets.data()};
        mcce::strain(forest, held, responses.data(), missing.data(), n_codes.data(), codes.data(), n_rows,
                     least.data(), out.data());
    }
    return give(std::move(out), {roots.size(), n_rows});
}

nb::tuple build_neighbours(const In<double, 2>& points, const In<std::uint8_t, 1>& is_level) {
    mcce::Neighbours built;
    {
        nb::gil_scoped_release release;
        built = mcce::NeighbourBuilder(points.data(), points.shape(0), points.shape(1), is_level.data()).build();
    }
    return nb::make_tuple(give(std::move(built.points), {points.shape(0), points.shape(1)}),
                          give(std::move(built.first)), give(std::move(built.last)),
                          give(std::move(built.left)), give(std::move(built.right)),
                          give(std::move(built.column)), give(std::move(built.left_edge)),
                          give(std::move(built.right_edge)));
}

Out<double> nearest(const In<double, 2>& points, const In<std::int64_t, 1>& first,
                    const In<std::int64_t, 1>& last, const In<std::int64_t, 1>& left,
                    const In<std::int64_t, 1>& right, const In<std::int32_t, 1>& column,
                    const In<double, 1>& left_edge, const In<double, 1>& right_edge,
                    const In<std::uint8_t, 1>& is_level, const In<double, 2>& rows, std::size_t k) {
    const std::size_t n_rows = rows.shape(0), n_columns = rows.shape(1);
    std::vector<double> out(n_rows * k);
    {
        nb::gil_scoped_release release;
        mcce::Seeker seeker({points.data(), n_columns, is_level.data(), first.data(), last.data(), left.data(),
                             right.data(), column.data(), left_edge.data(), right_edge.data()}, k);
        for (std::size_t row = 0; row < n_rows; ++row) seeker.seek(rows.data() + row * n_columns, &out[row * k]);
    }
    return give(std::move(out), {n_rows, k});
}

Out<std::int64_t> first_equal(const In<std::int32_t, 2>& rows) {
    std::vector<std::int64_t> first(rows.shape(0));
    {
        nb::gil_scoped_release release;
        mcce::first_equal(rows.data(), rows.shape(0), rows.shape(1), first.data());
    }
    return give(std::move(first));
}

Out<std::uint8_t> first_of_each(const In<std::int32_t, 3>& codes) {
    const std::size_t n_columns = codes.shape(0), n_groups = codes.shape(1), n_draws = codes.shape(2);
    std::vector<std::uint8_t> first(n_groups * n_draws);
    {
        nb::gil_scoped_release release;
        for (std::size_t group = 0; group < n_groups; ++group)
            mcce::first_of_each(codes.data() + group * n_draws, n_columns, n_groups * n_draws, n_draws,
                                first.data() + group * n_draws);
    }
    return give(std::move(first), {n_groups, n_draws});
}

// The best few candidates of each person of a block. `distance` may be empty: Gower's is meant.
nb::tuple rank(const In<std::int32_t, 3>& codes, const nb::list& numbers,
               const In<std::int32_t, 2>& own_codes, const In<double, 2>& own_numbers,
               const In<double, 1>& spreads, const In<std::int64_t, 1>& group,
               const In<std::uint8_t, 2>& allowed, const In<double, 2>& distance,
               std::size_t n_features, std::size_t n_best, int first_key, int second_key,
               double tolerance, std::int64_t max_sparsity, double max_distance) {
    const std::size_t n_people = group.size(), n_draws = codes.shape(2);
    std::vector<mcce::Cells> cells;
    for (std::size_t j = 0; j < codes.shape(0); ++j) {
        const double* table =
            numbers[j].is_none() ? nullptr : nb::cast<In<double, 1>>(numbers[j]).data();
        cells.push_back({codes.data() + j * codes.shape(1) * n_draws, table,
                         own_codes.data() + j * n_people, own_numbers.data() + j * n_people,
                         spreads.data()[j]});
    }
    std::vector<std::int32_t> draw(n_people * n_best, 0), sparsity(n_people * n_best, 0);
    std::vector<double> ranked_by(n_people * n_best, 0.0), gower(n_people * n_best, 0.0);
    std::vector<std::int64_t> n_allowed(n_people);
    {
        nb::gil_scoped_release release;
        mcce::Ranker ranker(std::move(cells), n_features, n_draws,
                            {first_key, second_key, tolerance, max_sparsity, max_distance});
        std::vector<mcce::Best> best;
        for (std::size_t person = 0; person < n_people; ++person) {
            const double* own_distance = distance.size() ? distance.data() + person * n_draws : nullptr;
            n_allowed[person] = static_cast<std::int64_t>(
                ranker.rank(person, static_cast<std::size_t>(group.data()[person]),
                            allowed.data() + person * n_draws, own_distance, n_best, best));
            for (std::size_t i = 0; i < best.size(); ++i) {
                const std::size_t at = person * n_best + i;
                draw[at] = best[i].draw;
                sparsity[at] = best[i].sparsity;
                ranked_by[at] = best[i].distance;
                gower[at] = best[i].gower;
            }
        }
    }
    return nb::make_tuple(give(std::move(draw), {n_people, n_best}),
                          give(std::move(sparsity), {n_people, n_best}),
                          give(std::move(ranked_by), {n_people, n_best}),
                          give(std::move(gower), {n_people, n_best}), give(std::move(n_allowed)));
}

}  // namespace

NB_MODULE(_native, module) {
    module.doc() = "Compiled inner loops; see mcce.kernels.";
    module.def("grow_tree", &grow_tree);
    module.def("sample", &sample);
    module.def("enumerate_rows", &enumerate_rows);
    module.def("first_of_each", &first_of_each);
    module.def("rank", &rank);
    module.def("gather_holdings", &gather_holdings);
    module.def("strain", &strain);
    module.def("build_neighbours", &build_neighbours);
    module.def("nearest", &nearest);
    module.def("first_equal", &first_equal);
}
