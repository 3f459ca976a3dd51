// A forest, bound once, and what is done with it: draws, enumeration, nonconformity.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "arrays.hpp"
#include "mcce/exact.hpp"
#include "mcce/forest.hpp"
#include "mcce/limits.hpp"
#include "mcce/nonconformity.hpp"
#include "mcce/sample.hpp"
#include "watch.hpp"

namespace {

using Codes = In<std::int32_t, 1>;
using CodeTable = In<std::int32_t, 2>;

std::shared_ptr<mcce::Forest> make_forest(const In<std::int64_t, 1>& roots, const Codes& feature,
                                          const Codes& cut, const Codes& left, const Codes& right,
                                          const In<std::int64_t, 1>& start, const Codes& count,
                                          const In<std::uint64_t, 1>& sets, const Codes& values,
                                          const Codes& responses, const Codes& n_levels) {
    return std::make_shared<mcce::Forest>(
        mcce::ForestArrays{copy(roots), copy(feature), copy(cut), copy(left), copy(right), copy(start),
                           copy(count), copy(sets), copy(values), copy(responses), copy(n_levels)});
}

std::shared_ptr<mcce::Limits> make_limits(const CodeTable& own, const In<std::int64_t, 2>& first,
                                          const In<std::int64_t, 2>& last, const CodeTable& runs,
                                          const In<std::int32_t, 3>& near_codes) {
    const std::size_t n_columns = own.shape(0), n_groups = own.shape(1);
    mcce::require(first.shape(0) == n_columns && last.shape(0) == n_columns &&
                      near_codes.shape(0) == n_columns && runs.shape(1) == 2 && near_codes.shape(2) == 2,
                  "the arrays of the limits differ in shape");
    return std::make_shared<mcce::Limits>(n_columns, n_groups, copy(own), copy(first), copy(last), copy(runs),
                                          copy(near_codes));
}

mcce::LimitsView view_of(const mcce::Limits* limits, std::size_t n_columns, std::size_t n_groups) {
    if (!limits) return {};
    limits->check_shape(n_columns, n_groups);
    return limits->view();
}

// Whether the codes that are given and drawn fit in 16 bits.
bool is_narrow(const mcce::Forest& forest, const std::vector<std::int32_t>& codes) {
    constexpr std::int32_t kBound = std::int32_t{1} << 16;
    return forest.gives_below(kBound) &&
           std::all_of(codes.begin(), codes.end(), [](std::int32_t code) { return code >= 0 && code < kBound; });
}

Out<std::int32_t> sample(const mcce::Forest& forest, const CodeTable& given, const In<std::uint64_t, 1>& keys,
                         const In<std::int64_t, 1>& draws, const mcce::Limits* limits,
                         const std::optional<In<std::int64_t, 1>>& least, bool pooled, const Watch& watch) {
    const std::size_t n_columns = forest.n_columns(), n_groups = given.shape(1), n_draws = draws.size();
    const std::size_t n_responses = forest.n_responses();
    forest.check_chain();
    mcce::require(given.shape(0) == n_columns, "given needs one row per column");
    mcce::require(keys.size() == n_groups, "keys need one entry per group");
    mcce::require(!least || least->size() == n_draws, "least needs one entry per draw");
    const auto limits_view = view_of(limits, n_columns, n_groups);
    std::vector<std::int32_t> out;
    {
        nb::gil_scoped_release release;
        mcce::Pulse pulse = watch.pulse();
        const auto codes = forest.read_codes(given.data(), n_groups);
        out.resize(n_entries({n_responses, n_groups, n_draws}));
        const auto sample_in = [&](auto sampler) {
            sampler.sample(codes.data(), n_groups, keys.data(), draws.data(), n_draws,
                           least ? least->data() : nullptr, out.data());
        };
        if (is_narrow(forest, codes)) {
            sample_in(mcce::Sampler<std::uint16_t>(forest.view(), limits_view, pooled, pulse));
        } else {
            sample_in(mcce::Sampler<std::int32_t>(forest.view(), limits_view, pooled, pulse));
        }
    }
    return give(std::move(out), {n_responses, n_groups, n_draws});
}

// Own codes, costs and offsets are read for the responses only.
void check_person(const mcce::Forest& forest, const Codes& own, const Codes& stays, const In<double, 1>& costs,
                  const std::vector<std::int64_t>& offsets) {
    for (std::size_t tree = 0; tree < forest.n_trees(); ++tree) {
        const auto response = static_cast<std::size_t>(forest.response(tree));
        mcce::require(response < own.size() && response < stays.size() && response < offsets.size(),
                      "own, stays and offsets need one entry per column");
        const auto n_costs = static_cast<std::int64_t>(costs.size());
        mcce::require(offsets[response] >= 0 && offsets[response] <= n_costs - forest.n_codes(tree),
                      "costs need one entry per code");
    }
}

nb::tuple enumerate_rows(const mcce::Forest& forest, const Codes& given, const Codes& own,
                         const Codes& stays, const mcce::Limits* limits, const In<double, 1>& costs,
                         const In<std::int64_t, 1>& offsets, std::size_t n_changes, std::size_t n_best,
                         std::int64_t max_nodes, double after_total, const Codes& after,
                         const Watch& watch) {
    forest.check_chain();
    forest.check_single();
    mcce::require(given.size() == forest.n_columns(), "given needs one code per column");
    mcce::require(after.size() == forest.n_trees(), "after needs one code per tree");
    mcce::require(n_best > 0, "n_best must be at least 1");
    mcce::require(max_nodes >= 0, "max_nodes must not be negative");
    const auto limits_view = view_of(limits, forest.n_columns(), 1);
    const std::vector<std::int64_t> places = copy(offsets);
    check_person(forest, own, stays, costs, places);
    std::vector<std::int32_t> codes;
    std::vector<double> totals;
    std::int64_t n_nodes = 0;
    bool complete = false;
    {
        nb::gil_scoped_release release;
        mcce::Pulse pulse = watch.pulse();
        const auto descent = forest.read_codes(given.data(), 1);
        mcce::Enumerator rows(
            forest.view(), {descent.data(), own.data(), stays.data(), limits_view, costs.data(), places.data()},
            pulse);
        rows.list({n_changes, n_best, after_total, after.data(), max_nodes});
        codes.resize(forest.n_trees() * rows.size());
        totals.resize(rows.size());
        rows.write(codes.data(), totals.data());
        n_nodes = rows.n_nodes();
        complete = rows.complete();
    }
    const std::size_t n_rows = totals.size();
    return nb::make_tuple(give(std::move(codes), {forest.n_trees(), n_rows}), give(std::move(totals)), n_nodes,
                          complete);
}

nb::tuple gather_holdings(const mcce::Forest& forest, bool contradictions, std::int64_t most_levels,
                          const Watch& watch) {
    mcce::NodeLevels built;
    {
        nb::gil_scoped_release release;
        mcce::Pulse pulse = watch.pulse();
        built = mcce::NodeLevelsBuilder(forest.view(), contradictions, most_levels, pulse).build();
    }
    return nb::make_tuple(give(std::move(built.size)), give(std::move(built.offset)),
                          give(std::move(built.sets)));
}

std::shared_ptr<mcce::Holdings> make_holdings(std::shared_ptr<mcce::Forest> forest, bool contradictions,
                                              const Codes& size, const In<std::int64_t, 1>& offset,
                                              const In<std::uint64_t, 1>& sets) {
    return std::make_shared<mcce::Holdings>(std::move(forest), contradictions,
                                            mcce::NodeLevels{copy(size), copy(offset), copy(sets)});
}

Out<std::int32_t> nonconformity(const mcce::Holdings& held, const CodeTable& codes, const Watch& watch) {
    const mcce::Forest& forest = held.forest();
    const std::size_t n_rows = codes.shape(1);
    mcce::require(codes.shape(0) == forest.n_columns(), "codes need one row per column");
    std::vector<std::int32_t> out;
    {
        nb::gil_scoped_release release;
        mcce::Pulse pulse = watch.pulse();
        const auto descent = forest.read_codes(codes.data(), n_rows);
        out.resize(n_entries({forest.n_trees(), n_rows}));
        held.nonconformity(descent.data(), n_rows, out.data(), pulse);
    }
    return give(std::move(out), {forest.n_trees(), n_rows});
}

}  // namespace

void bind_forest(nb::module_& module) {
    nb::class_<mcce::Limits>(module, "Limits").def(nb::new_(&make_limits));
    nb::class_<mcce::Forest>(module, "Forest")
        .def(nb::new_(&make_forest))
        .def("sample", &sample, nb::arg("given"), nb::arg("keys"), nb::arg("draws"), nb::arg("limits").none(),
             nb::arg("least").none(), nb::arg("pooled"), nb::arg("watch"))
        .def("enumerate_rows", &enumerate_rows, nb::arg("given"), nb::arg("own"), nb::arg("stays"),
             nb::arg("limits").none(), nb::arg("costs"), nb::arg("offsets"), nb::arg("n_changes"), nb::arg("n_best"),
             nb::arg("max_nodes"), nb::arg("after_total"), nb::arg("after"), nb::arg("watch"))
        .def("gather_holdings", &gather_holdings, nb::arg("contradictions"), nb::arg("most_levels"),
             nb::arg("watch"));
    nb::class_<mcce::Holdings>(module, "Holdings")
        .def(nb::new_(&make_holdings))
        .def("nonconformity", &nonconformity, nb::arg("codes"), nb::arg("watch"));
}
