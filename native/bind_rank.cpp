// Step 3: duplicates among candidates, the best of them, numbers for visited rows, and what is known of these.
#include <cstdint>
#include <limits>
#include <mutex>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "arrays.hpp"
#include "mcce/errors.hpp"
#include "mcce/measure.hpp"
#include "mcce/rank.hpp"
#include "mcce/forest.hpp"
#include "mcce/row_table.hpp"
#include "watch.hpp"

namespace {

// A table that one thread fills at a time.
struct LockedRowTable {
    explicit LockedRowTable(std::size_t width) : table(width) {}

    Out<std::int64_t> place(const In<std::int32_t, 2>& rows, const Watch& watch) {
        mcce::require(rows.shape(1) == table.width(), "the rows have another width than the table");
        std::vector<std::int64_t> numbers(rows.shape(0));
        {
            nb::gil_scoped_release release;
            mcce::Pulse pulse = watch.quiet_pulse();
            const std::lock_guard<std::mutex> lock(mutex);
            table.place(rows.data(), rows.shape(0), numbers.data(), pulse);
        }
        return give(std::move(numbers));
    }

    mcce::RowTable table;
    std::mutex mutex;
};

Out<std::uint8_t> first_of_each(const In<std::int32_t, 3>& codes, const Watch& watch) {
    const std::size_t n_columns = codes.shape(0), n_groups = codes.shape(1), n_draws = codes.shape(2);
    std::vector<std::uint8_t> first(n_entries({n_groups, n_draws}));
    {
        nb::gil_scoped_release release;
        mcce::Pulse pulse = watch.pulse();
        for (std::size_t group = 0; group < n_groups; ++group)
            mcce::first_of_each(codes.data() + group * n_draws, n_columns, n_groups * n_draws, n_draws,
                                first.data() + group * n_draws, pulse);
    }
    return give(std::move(first), {n_groups, n_draws});
}

using Table = In<double, 1>;

// The features of a comparison; `tables` keeps the tables of numbers alive.
std::vector<mcce::Cells> read_cells(const In<std::int32_t, 3>& codes, const nb::list& numbers,
                                    const In<std::int32_t, 2>& own_codes, const In<double, 2>& own_numbers,
                                    const In<double, 1>& spreads, std::size_t n_people,
                                    std::vector<Table>& tables) {
    const std::size_t n = codes.shape(0), n_candidates = codes.shape(1) * codes.shape(2);
    mcce::require(numbers.size() == n && own_codes.shape(0) == n && own_numbers.shape(0) == n &&
                      spreads.size() == n && own_codes.shape(1) == n_people && own_numbers.shape(1) == n_people,
                  "the arrays of the comparison differ in shape");
    std::vector<mcce::Cells> cells;
    for (std::size_t j = 0; j < n; ++j) {
        const double* table = nullptr;
        std::size_t n_codes = 0;
        if (!numbers[j].is_none()) {
            Table given;
            mcce::require(nb::try_cast(numbers[j], given), "numbers must be arrays of float64, or None");
            tables.push_back(given);
            table = given.data();
            n_codes = given.size();
        }
        cells.push_back({codes.data() + j * n_candidates, table, n_codes, own_codes.data() + j * n_people,
                         own_numbers.data() + j * n_people, spreads.data()[j]});
    }
    return cells;
}

// Where cells are on the axes of a distance; it keeps the arrays alive.
struct Measure {
    std::vector<In<double, 2>> tables;
    std::vector<mcce::Axis> axes;
    In<double, 1> n_present;
    mcce::Summation how;

    Measure(const nb::list& places, const nb::list& own_places, const In<double, 1>& spreads,
            const In<double, 1>& weights, const In<double, 1>& present, bool squared, bool city_block, bool mean,
            bool ignores_missing)
        : n_present(present), how{squared, city_block, mean, ignores_missing} {
        const std::size_t n = places.size();
        mcce::require(own_places.size() == n && spreads.size() == n && weights.size() == n,
                      "the arrays of the distance differ in size");
        for (std::size_t j = 0; j < n; ++j) {
            mcce::require(places[j].is_none() == own_places[j].is_none(), "only one side has places");
            mcce::Axis axis{nullptr, 0, 1, nullptr, spreads.data()[j], weights.data()[j]};
            if (!places[j].is_none()) {
                In<double, 2> table, own;
                mcce::require(nb::try_cast(places[j], table) && nb::try_cast(own_places[j], own),
                              "places must be tables of float64, or None");
                mcce::require(own.shape(0) == present.size() && own.shape(1) == table.shape(1) &&
                                  (own.shape(1) == 1 || own.shape(1) == 2),
                              "places have one or two coordinates, for everybody");
                tables.push_back(table);
                tables.push_back(own);
                axis = {table.data(), table.shape(0), table.shape(1), own.data(), axis.spread, axis.weight};
            }
            axes.push_back(axis);
        }
    }

    mcce::Measurer measurer(std::size_t n_mutable, std::size_t n_people) const {
        mcce::require(axes.size() == n_mutable && n_present.size() == n_people, "the distance is of other rows");
        return {axes, n_present.data(), how};
    }
};

std::vector<std::int64_t> read_groups(const In<std::int64_t, 1>& group, std::size_t n_groups) {
    auto groups = copy(group);
    for (const std::int64_t number : groups)
        mcce::require(number >= 0 && number < static_cast<std::int64_t>(n_groups), "a group has no candidates");
    return groups;
}

// Distance of every candidate to its person.
Out<double> measure(const In<std::int32_t, 3>& codes, const In<std::int32_t, 2>& own_codes,
                    const In<std::int64_t, 1>& group, const Measure& axes, const Watch& watch) {
    const std::size_t n = codes.shape(0), n_groups = codes.shape(1), n_draws = codes.shape(2);
    const std::size_t n_people = group.size();
    mcce::require(own_codes.shape(0) == n && own_codes.shape(1) == n_people, "own codes are of other people");
    mcce::require(n_draws <= std::numeric_limits<std::int32_t>::max(), "there are too many candidates");
    const auto groups = read_groups(group, n_groups);
    auto measurer = axes.measurer(n, n_people);
    std::vector<double> distance(n_entries({n_people, n_draws}));
    {
        nb::gil_scoped_release release;
        mcce::Pulse pulse = watch.pulse();
        std::vector<std::int32_t> all(n_draws);
        std::iota(all.begin(), all.end(), 0);
        for (std::size_t person = 0; person < n_people; ++person) {
            pulse.tick(n_draws * (1 + n));
            measurer.begin(n_draws);
            const std::size_t first = static_cast<std::size_t>(groups[person]) * n_draws;
            for (std::size_t j = 0; j < n; ++j)
                measurer.add(j, person, codes.data() + j * n_groups * n_draws + first,
                             own_codes.data()[j * n_people + person], all);
            for (std::size_t k = 0; k < n_draws; ++k)
                distance[person * n_draws + k] = measurer.distance(k, person);
        }
        mcce::require(!measurer.beyond(), "a code has no place");
    }
    return give(std::move(distance), {n_people, n_draws});
}

// What is listed of each person, padded with zeros to n_best.
struct Listing {
    std::vector<std::int32_t> draw, sparsity;
    std::vector<double> distance, gower;
    std::vector<std::int64_t> n_allowed;

    Listing(std::size_t n_people, std::size_t n_best)
        : draw(n_entries({n_people, n_best})), sparsity(draw.size()), distance(draw.size()), gower(draw.size()),
          n_allowed(n_people) {}

    void write(std::size_t at, const std::vector<mcce::Best>& best) {
        for (const mcce::Best& one : best) {
            draw[at] = one.draw;
            sparsity[at] = one.sparsity;
            distance[at] = one.distance;
            gower[at++] = one.gower;
        }
    }
};

// The best candidates of each person of a block. Without `distance` and `axes`, Gower's decides.
nb::tuple rank(const In<std::int32_t, 3>& codes, const nb::list& numbers,
               const In<std::int32_t, 2>& own_codes, const In<double, 2>& own_numbers,
               const In<double, 1>& spreads, const In<std::int64_t, 1>& group,
               const In<std::uint8_t, 2>& allowed, const In<double, 2>& distance,
               std::size_t n_features, std::size_t n_best, int first_key, int second_key,
               double tolerance, std::int64_t max_sparsity, double max_distance, const Measure* axes,
               const Watch& watch) {
    const std::size_t n_people = group.size(), n_draws = codes.shape(2);
    const auto groups = read_groups(group, codes.shape(1));
    mcce::require(allowed.shape(0) == n_people && allowed.shape(1) == n_draws,
                  "allowed is of other candidates");
    mcce::require(!distance.size() || (distance.shape(0) == n_people && distance.shape(1) == n_draws),
                  "distance is of other candidates");
    mcce::require(n_draws <= std::numeric_limits<std::int32_t>::max(), "there are too many candidates");
    mcce::require((first_key == mcce::kSparsity || first_key == mcce::kDistance) &&
                      second_key >= mcce::kNone && second_key <= mcce::kDistance,
                  "a key is none of the ranking");
    std::vector<Table> tables;
    auto cells = read_cells(codes, numbers, own_codes, own_numbers, spreads, n_people, tables);
    std::optional<mcce::Measurer> measurer;
    if (axes) measurer.emplace(axes->measurer(codes.shape(0), n_people));
    Listing listing(n_people, n_best);
    {
        nb::gil_scoped_release release;
        mcce::Pulse pulse = watch.pulse();
        mcce::Ranker ranker(std::move(cells), n_features, n_draws,
                            {first_key, second_key, tolerance, max_sparsity, max_distance}, pulse);
        std::vector<mcce::Best> best;
        for (std::size_t person = 0; person < n_people; ++person) {
            const double* own_distance = distance.size() ? distance.data() + person * n_draws : nullptr;
            listing.n_allowed[person] = static_cast<std::int64_t>(
                ranker.rank(person, static_cast<std::size_t>(groups[person]), allowed.data() + person * n_draws,
                            own_distance, measurer ? &*measurer : nullptr, n_best, best));
            listing.write(person * n_best, best);
        }
    }
    return nb::make_tuple(give(std::move(listing.draw), {n_people, n_best}),
                          give(std::move(listing.sparsity), {n_people, n_best}),
                          give(std::move(listing.distance), {n_people, n_best}),
                          give(std::move(listing.gower), {n_people, n_best}),
                          give(std::move(listing.n_allowed)));
}

// What errors at known rows say of rows; `total` and `weight` are the sums so far.
nb::tuple weigh_errors(const In<std::int32_t, 2>& cells, const In<std::int64_t, 1>& rows,
                       const In<std::int64_t, 1>& first, const In<std::int64_t, 1>& last,
                       const In<std::int64_t, 1>& known, const In<double, 1>& error,
                       const In<double, 1>& total, const In<double, 1>& weight, const Watch& watch) {
    const std::size_t n_rows = rows.size(), n_errors = known.size();
    mcce::require(first.size() == n_rows && last.size() == n_rows && total.size() == n_rows &&
                      weight.size() == n_rows && error.size() == n_errors,
                  "the arrays of errors differ in size");
    auto new_total = copy(total), new_weight = copy(weight);
    const auto own_rows = copy(rows), own_first = copy(first), own_last = copy(last), own_known = copy(known);
    {
        nb::gil_scoped_release release;
        mcce::Pulse pulse = watch.pulse();
        mcce::check_rows(own_rows, cells.shape(0));
        mcce::check_rows(own_known, cells.shape(0));
        for (std::size_t i = 0; i < n_rows; ++i)
            mcce::require(own_first[i] >= 0 && own_last[i] <= static_cast<std::int64_t>(n_errors),
                          "there is no such error");
        mcce::weigh_errors(cells.data(), cells.shape(1), own_rows.data(), own_first.data(), own_last.data(), n_rows,
                           {own_known.data(), error.data()}, new_total.data(), new_weight.data(), pulse);
    }
    return nb::make_tuple(give(std::move(new_total)), give(std::move(new_weight)));
}

}  // namespace

void bind_rank(nb::module_& module) {
    nb::class_<LockedRowTable>(module, "RowTable").def(nb::init<std::size_t>()).def("place", &LockedRowTable::place);
    module.def("first_of_each", &first_of_each);
    nb::class_<Measure>(module, "Measure")
        .def(nb::init<const nb::list&, const nb::list&, const In<double, 1>&, const In<double, 1>&,
                      const In<double, 1>&, bool, bool, bool, bool>());
    module.def("measure", &measure);
    module.def("rank", &rank, nb::arg("codes"), nb::arg("numbers"), nb::arg("own_codes"), nb::arg("own_numbers"),
               nb::arg("spreads"), nb::arg("group"), nb::arg("allowed"), nb::arg("distance"), nb::arg("n_features"),
               nb::arg("n_best"), nb::arg("first_key"), nb::arg("second_key"), nb::arg("tolerance"),
               nb::arg("max_sparsity"), nb::arg("max_distance"), nb::arg("axes").none(), nb::arg("watch"));
    module.def("weigh_errors", &weigh_errors);
}
