// Boosted trees: grown, and bound once to predict.
#include <nanobind/stl/shared_ptr.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "arrays.hpp"
#include "mcce/boost.hpp"
#include "mcce/ensemble.hpp"
#include "watch.hpp"

namespace {

using Codes = In<std::int32_t, 1>;

void check_bins(const std::vector<std::uint8_t>& bins, const std::vector<std::int32_t>& n_bins,
                std::size_t n_rows) {
    for (std::size_t k = 0; k < n_bins.size(); ++k) {
        mcce::require(n_bins[k] > 0 && n_bins[k] <= 256, "an input has no bins, or more than 256");
        bool within = true;
        for (std::size_t row = 0; row < n_rows; ++row) within &= bins[k * n_rows + row] < n_bins[k];
        mcce::require(within, "an input has a bin beyond its last");
    }
}

// Sums of the units stay within 55 bits.
void check_units(const std::vector<std::int64_t>& units) {
    const std::int64_t most = (std::int64_t{1} << 55) / static_cast<std::int64_t>(units.size() + 1);
    bool fits = true;
    for (const std::int64_t unit : units) fits &= unit <= most && unit >= -most;
    mcce::require(fits, "a response is too large to be summed");
}

nb::tuple boost(const In<std::uint8_t, 2>& bins, const Codes& n_bins, const In<std::int64_t, 1>& units,
                std::int64_t n_trees, std::int64_t max_leaves, std::int64_t min_samples_leaf,
                std::int64_t shrinkage, const Watch& watch) {
    mcce::require(bins.shape(0) == n_bins.size(), "n_bins needs one entry per input");
    mcce::require(bins.shape(1) == units.size(), "the bins are of other rows than the response");
    mcce::require(units.size() <= mcce::kMostRows, "there are too many rows");
    mcce::require(min_samples_leaf > 0, "min_samples_leaf must be at least 1");
    mcce::require(max_leaves <= static_cast<std::int64_t>(mcce::kMostLeaves), "max_leaves must be at most 32");
    mcce::require(shrinkage > 0 && shrinkage <= 1 << 20, "shrinkage must be from 1 to 2^20");
    mcce::BoostedNodes nodes;
    {
        nb::gil_scoped_release release;
        mcce::Pulse pulse = watch.pulse();
        auto own_bins = copy(bins);
        const auto own_n_bins = copy(n_bins);
        auto own_units = copy(units);
        check_bins(own_bins, own_n_bins, own_units.size());
        check_units(own_units);
        nodes = mcce::Booster(std::move(own_bins), own_n_bins, std::move(own_units),
                              {n_trees, max_leaves, min_samples_leaf, shrinkage}, pulse)
                    .run();
    }
    return nb::make_tuple(give(std::move(nodes.roots)), give(std::move(nodes.feature)),
                          give(std::move(nodes.cut)), give(std::move(nodes.left)),
                          give(std::move(nodes.value)), give(std::move(nodes.gain)));
}

std::shared_ptr<mcce::Ensemble> make_ensemble(const Codes& roots, const Codes& feature, const Codes& cut,
                                              const Codes& left, const In<std::int64_t, 1>& value,
                                              const Codes& inputs, const In<std::int64_t, 1>& first,
                                              const In<std::uint8_t, 1>& bins) {
    return std::make_shared<mcce::Ensemble>(mcce::EnsembleArrays{
        copy(roots), copy(feature), copy(cut), copy(left), copy(value), copy(inputs), copy(first), copy(bins)});
}

Out<std::int64_t> predict(const mcce::Ensemble& ensemble, const In<std::int32_t, 2>& codes,
                          const In<std::int64_t, 1>& rows, const Watch& watch) {
    const std::size_t n_rows = rows.size(), n_all = codes.shape(1);
    mcce::require(codes.shape(0) >= ensemble.n_columns(), "codes need one row per column");
    // A copy, because another thread could change the array after the check.
    const auto own_rows = copy(rows);
    std::vector<std::int64_t> out;
    {
        nb::gil_scoped_release release;
        mcce::Pulse pulse = watch.pulse();
        pulse.tick(1);
        mcce::check_rows(own_rows, n_all);
        out.resize(n_rows);
        ensemble.predict(codes.data(), n_all, own_rows.data(), n_rows, out.data(), pulse);
    }
    return give(std::move(out));
}

}  // namespace

void bind_boost(nb::module_& module) {
    module.def("boost", &boost);
    nb::class_<mcce::Ensemble>(module, "Ensemble")
        .def(nb::new_(&make_ensemble))
        .def("predict", &predict, nb::arg("codes"), nb::arg("rows"), nb::arg("watch"));
}
