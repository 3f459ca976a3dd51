"""Private trees: exact without noise, blind to what bins hide, and nothing but declared values."""

import math

import numpy as np
import pandas as pd
import pytest

from mcce import Domain, ParameterError, PrivateTrees, SavedFileError, Schema
from mcce.kernels import LEAF
from mcce.model.private import growing
from mcce.model.private.growing import Binned, Node, release_tree
from mcce.model.private.leaves import positive_part, shrink, spread
from mcce.model.private.ledger import Budget, allocate
from mcce.model.private.noise import Words
from mcce.model.private.rows import bin_rows, bins_of_codes
from mcce.testing import check_generator
from mcce.testing._cases import EDUCATION
from private_bank import IMMUTABLE, bank, domains, explainer, private, score

CASE = {
    "age": Domain(low=20, high=50, step=10),
    "salary": Domain(low=0, high=100, step=1, missing=True),
    "years": Domain(low=0, high=11, step=1),
    "education": Domain(levels=EDUCATION),
    "housing": Domain(levels=["boat", "own", "rent"], missing=True),
    "sex": Domain(levels=["f", "m"]),
    "member": Domain(levels=[False, True]),
}


def fit(frame=None, decision=None, **settings):
    generator = private(**settings)
    rows = generator.encode_training(bank() if frame is None else frame, immutable=IMMUTABLE)
    chosen = score(rows.frame) > 0.5 if decision is None else decision
    return generator.fit(rows, chosen), rows, chosen


def leaves(node: Node):
    if node.counts is not None:
        return [node.counts]
    return [counts for _, *both in node.below for one in both for counts in leaves(one)]


def test_private_trees_pass_the_conformance_suite(monkeypatch):
    check_generator(PrivateTrees(domains=CASE, depth=2, epsilon=5.0, seed=3))

    # Without a seed every fit has noise of its own: two fits must differ.
    with pytest.raises(AssertionError, match="same seed"):
        check_generator(PrivateTrees(domains=CASE, depth=2, epsilon=5.0))


@pytest.mark.parametrize("structure", ["random", "expmech"])
@pytest.mark.parametrize("noise", ["geometric", "gaussian"])
def test_without_noise_histograms_are_exact(structure, noise):
    random = np.random.default_rng(0)
    n_bins = np.array([4, 3, 5])
    bins = random.integers(0, n_bins[:, None], (3, 200)).astype(np.int32)
    data = Binned(bins, n_bins, np.array([True, False, True]), [0, 1], 2)
    budget = allocate(Budget(math.inf, noise, "add_remove"), structure, 3)

    root = release_tree(data, budget, Words(1))

    def compare(node, rows):
        if node.counts is not None:
            assert node.counts.tolist() == [np.bincount(bins[2, rows], minlength=5).tolist()]
            return
        ((split, left, right),) = node.below
        goes_left = split.left[bins[split.column, rows]]
        compare(left, rows[goes_left])
        compare(right, rows[~goes_left])

    compare(root, np.arange(200))
    assert len(leaves(root)) == 8


def test_without_noise_drawn_bins_have_the_frequencies_of_the_rows():
    fitted, rows, chosen = fit(epsilon=math.inf, depth=0)

    bins = bin_rows(rows, fitted.domains_)[:, chosen]
    parts = np.split(fitted.trees_.values, np.cumsum(fitted.trees_.count)[:-1])
    for position, values in zip(fitted.visit_order_, parts, strict=True):
        feature = rows.schema.features[position]
        coded = bins_of_codes(feature, fitted.domains_[feature.name])
        expected = np.bincount(bins[position], minlength=int(coded.max()) + 1) / bins.shape[1]
        drawn = np.bincount(coded[values], minlength=expected.size) / values.size
        assert np.allclose(drawn, expected)


def test_rows_with_undeclared_cells_are_left_out_of_a_fit():
    known = {"sex": Domain(levels=["f", "m"]), "job": Domain(levels=["none", "some"])}
    inside = pd.DataFrame({"sex": ["f", "m", "m"], "job": ["none", "some", "some"]})
    undeclared = pd.DataFrame({"sex": ["x", "f"], "job": ["some", "boss"]})
    generator = PrivateTrees(domains=known, epsilon=math.inf, depth=1)
    rows = generator.encode_training(inside, immutable=["sex"])
    both = rows.schema.encode(pd.concat([inside, undeclared], ignore_index=True))

    fitted = generator.fit(both, np.ones(5, dtype=bool))

    assert fitted.n_desired_ == 3
    assert np.isneginf(fitted.log_likelihood(both)[[0, 4]]).tolist() == [False, True]


def test_noise_is_added_to_every_cell_of_every_leaf(monkeypatch):
    n_cells, honest = [], growing.geometric
    monkeypatch.setattr(
        growing, "geometric", lambda w, rate, n: n_cells.append(n) or honest(w, rate, n)
    )

    fitted, _, _ = fit(depth=3, decision=np.zeros(600, dtype=bool))

    n_leaves = [
        int((fitted.trees_.feature[a:b] == LEAF).sum())
        for a, b in zip(fitted.trees_.roots, [*fitted.trees_.roots[1:], None], strict=True)
    ]
    widths = [fitted.domains_[fitted.schema_.names[at]].n_bins for at in fitted.visit_order_]
    assert sum(n_cells) == sum(n * width for n, width in zip(n_leaves, widths, strict=True))
    assert (fitted.trees_.count[fitted.trees_.feature == LEAF] > 0).all()


@pytest.mark.parametrize("structure", ["random", "expmech"])
def test_nothing_depends_on_values_inside_a_bin(structure):
    frame, known = bank(), domains()
    random = np.random.default_rng(1)
    moved = frame.copy()
    # Anywhere between the edges of its own bin.
    for name in ("salary", "debt"):
        numbers = frame[name].to_numpy()
        breaks = known[name].breaks
        at = np.clip(np.searchsorted(breaks, numbers, side="right") - 1, 0, breaks.size - 2)
        inside = random.uniform(breaks[at], breaks[at + 1])
        fixed = np.isin(numbers, known[name].points) | np.isnan(numbers)
        moved[name] = np.where(fixed, numbers, inside)
    decision = score(frame) > 0.5

    first, _, _ = fit(frame, decision, structure=structure, depth=2)
    second, _, _ = fit(moved, decision, structure=structure, depth=2)

    assert not np.allclose(frame["debt"], moved["debt"])
    for name in ("feature", "cut", "sets", "count", "values"):
        assert np.array_equal(getattr(first.trees_, name), getattr(second.trees_, name))


def test_draws_are_declared_values_and_not_those_of_the_rows():
    frame = bank()
    fitted, rows, _ = fit(frame, depth=1)
    given = rows.descent[:, :50]
    drawn = fitted.sample(given, np.arange(50, dtype=np.uint64), np.arange(100))

    for row, position in enumerate(rows.schema.mutable):
        feature = rows.schema.features[position]
        values = set(feature.table.iloc[np.unique(drawn.codes[row])].dropna())
        domain = fitted.domains_[feature.name]
        assert values <= set(domain.values if domain.levels is None else domain.levels)
        if domain.levels is None:
            assert values & set(frame[feature.name]) <= {0.0, domain.high}


def test_the_seed_of_the_explainer_is_not_that_of_the_noise():
    generator = private(seed=None, depth=1)
    rows = generator.encode_training(bank(), immutable=IMMUTABLE)
    decision = score(rows.frame) > 0.5

    first = generator.fit(rows, decision, seed=7).trees_.values
    second = generator.fit(rows, decision, seed=7).trees_.values

    assert not np.array_equal(first, second)


def test_both_decisions_can_be_drawn_for_the_same_budget():
    frame = bank(3000)
    decision = frame["debt"].to_numpy() == 0
    fitted, rows, _ = fit(frame, decision, decisions=(False, True), depth=0, epsilon=20.0)
    one, _, _ = fit(frame, decision, depth=0, epsilon=20.0)
    given, keys, draws = rows.descent[:, :1], np.zeros(1, np.uint64), np.arange(500)
    row = list(rows.schema.mutable).index(rows.schema.names.index("debt"))

    yes = fitted.sample(given, keys, draws).codes[row]
    no = fitted.sample(given, keys, draws, decision=np.zeros(1, dtype=bool)).codes[row]

    assert fitted.ledger_.epsilon == one.ledger_.epsilon == pytest.approx(20.0)
    assert (yes == 0).mean() > 0.9
    assert (no == 0).mean() < 0.1
    with pytest.raises(ParameterError, match="decisions="):
        one.sample(given, keys, draws, decision=np.zeros(1, dtype=bool))


@pytest.mark.parametrize("structure", ["random", "expmech"])
def test_trees_learn_what_depends_on_what(structure):
    random = np.random.default_rng(0)
    group = random.integers(0, 2, 4000)
    frame = pd.DataFrame({"group": group, "x": 80 * group + random.uniform(0, 20, 4000)})
    known = {"group": Domain(levels=[0, 1]), "x": Domain(low=0, high=100, bins=10)}
    generator = PrivateTrees(domains=known, epsilon=2.0, structure=structure, depth=1, seed=0)
    rows = generator.encode_training(frame, immutable=["group"])
    generator.fit(rows, np.ones(4000, dtype=bool))

    drawn = generator.sample(rows.descent[:, :20], np.arange(20, dtype=np.uint64), np.arange(50))

    values = rows.schema.features[1].numbers[drawn.codes[0]]
    assert (values > 50)[group[:20] == 1].mean() > 0.95
    assert (values < 50)[group[:20] == 0].mean() > 0.95


def test_likelihoods_are_those_of_bins_shared_out_evenly():
    frame = pd.DataFrame({"x": np.repeat([5.0, 15.0], [75, 25])})
    generator = PrivateTrees(
        domains={"x": Domain(low=0, high=20, bins=2, step=1)}, epsilon=math.inf, depth=0
    )
    rows = generator.encode_training(frame)
    generator.fit(rows, np.ones(100, dtype=bool))

    found = generator.log_likelihood(rows.schema.encode(pd.DataFrame({"x": [3, 3.3, 20, 12]})))

    assert np.allclose(found, np.log([0.75 / 10, 0.75 / 10, 0.25 / 11, 0.25 / 11]))


def test_post_processing_by_hand():
    assert positive_part(np.array([6, 3, -1])).tolist() == [5.5, 2.5, 0.0]
    assert positive_part(np.array([-3, -1])).sum() == 0
    assert positive_part(np.array([4, 0, 2])).tolist() == [4, 0, 2]
    assert shrink(np.array([-3, -1]), np.array([0.2, 0.8]), 5.0).tolist() == [0.2, 0.8]
    assert shrink(np.array([6, 2]), np.array([0.5, 0.5]), 0.0).tolist() == [0.75, 0.25]
    assert spread(np.array([0.5, 0.5]), 6, np.array([0, 1, 1, 1])).tolist() == [0, 0, 0, 1, 2, 3]
    assert spread(np.array([1.0, 0.0]), 2, np.array([0, 0, 0, 0, 1])).tolist() == [1, 3]


REFUSED = {
    "no domains": ({"domains": None}, "needs the public domain of every column"),
    "no budget": ({"epsilon": 0}, "epsilon must be"),
    "a strange relation": ({"neighbours": "both"}, "neighbours must be one of"),
    "a strange structure": ({"structure": "greedy"}, "structure must be one of"),
    "a strange noise": ({"noise": "laplace"}, "noise must be one of"),
    "no delta": ({"noise": "gaussian"}, "needs delta"),
    "a needless delta": ({"delta": 1e-6}, "Leave it out"),
    "deep trees": ({"depth": 50}, "depth must be"),
    "a private order": ({"visit_order": "correlation"}, "read from the rows"),
    "part of an order": ({"visit_order": ["debt"]}, "names every mutable column"),
    "strange decisions": ({"decisions": (False,)}, "decisions must be"),
    "half a seed": ({"seed": 0.5}, "seed must be"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_settings_that_cannot_be_are_refused(name):
    settings, words = REFUSED[name]

    with pytest.raises(ParameterError, match=words):
        fit(**settings)


def test_rows_with_a_schema_of_their_own_are_refused():
    frame = bank()
    rows = Schema.learn_rows(frame, immutable=IMMUTABLE)

    with pytest.raises(ParameterError, match="encoded by training values"):
        private().fit(rows, score(frame) > 0.5)


@pytest.mark.parametrize("settings", [{"seed": 1}, {"seed": None, "epsilon": math.inf}])
def test_what_is_not_private_is_not_saved(settings, tmp_path):
    fitted = explainer(private(**settings, depth=1)).fit(bank())

    with pytest.raises(SavedFileError, match="Fit with seed=None and a finite epsilon"):
        fitted.save(tmp_path / "bank.mcce")
    assert not list(tmp_path.iterdir())


def test_a_column_order_of_ones_own():
    fitted, rows, _ = fit(visit_order=["housing", "debt", "salary"], depth=1)

    assert [rows.schema.names[at] for at in fitted.visit_order_] == ["housing", "debt", "salary"]
