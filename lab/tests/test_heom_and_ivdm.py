"""The distances HEOM and IVDM: closed forms, an oracle by cells, and explainers with them."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

from bank import bank, score
from distance_oracle import Oracle, between, expected_of, fitted
from mcce import L1, MCCE, ParameterError, load
from mcce.cli import main
from mcce.testing import check_distance
from mcce_lab.distances import HEOM, IVDM
from searches import assert_same, bounded, explain, slow


class BinOracle(Oracle):
    """IVDM once more: shares of decisions are interpolated between the middles of bins."""

    def __init__(self, *given, n_bins=5, **more):
        super().__init__(*given, **more)
        self.n_bins = n_bins

    def number_gap(self, column, a, b, spread):
        return math.dist(self.at(column, a), self.at(column, b))

    def at(self, column, value):
        """Interpolated shares of the decisions at a number; bins without rows are left out."""
        for (left, p), (right, q) in pairwise(self.middles(column)):
            if left <= value <= right:
                part = (value - left) / (right - left)
                return [x + part * (y - x) for x, y in zip(p, q, strict=True)]
        return [0.0, 0.0]

    def middles(self, column):
        """The middles of bins with rows, and of one on either side, each with its shares."""
        low, width = column.min(), (column.max() - column.min()) / self.n_bins
        yield low - width / 2, [0.0, 0.0]
        place = np.minimum(np.floor((column - low) / width), self.n_bins - 1)
        for bin_ in range(self.n_bins):
            rows = column[place == bin_].index
            if len(rows):
                yield low + width * (bin_ + 0.5), self.shares(rows)
        yield column.max() + width / 2, [0.0, 0.0]


EVERY = {"heom": (HEOM, Oracle), "ivdm": (IVDM, BinOracle)}


def test_shares_at_a_number_are_interpolated_between_the_middles_of_bins():
    """Two values in each of five bins, whose shares are 0, 0, 1/2, 1 and 1."""
    train = pd.DataFrame({"number": [0.0, 1, 2, 3, 4, 5, 6, 7, 8, 10]})
    distance, schema = fitted(IVDM(alpha=0), train, [False] * 5 + [True] * 5)
    numbers = lambda *values: pd.DataFrame({"number": values})

    found = between(distance, schema, numbers(4.0, 0.5, 11.5, 0.5), numbers(6.0, -1.5, -1.5, 4.0))

    assert found == pytest.approx([math.sqrt(0.5), 0.75, 0.0, 0.25])


def test_a_bin_without_rows_lies_on_the_line_between_its_neighbours():
    train = pd.DataFrame({"number": [0.0, 1.0, 9.0, 10.0]})
    distance, schema = fitted(IVDM(alpha=0), train, [False, False, True, True])

    found = between(
        distance, schema, pd.DataFrame({"number": [3.0]}), pd.DataFrame({"number": [7.0]})
    )

    assert found == pytest.approx(math.hypot(0.5, 0.5))


def test_a_missing_value_is_a_level_or_ignored_and_a_constant_differs_by_one():
    train = pd.DataFrame({"a": [1.0, 3.0, 5.0], "b": ["A", "B", "A"], "c": [1.0, 5.0, 2.0]})
    one = pd.DataFrame({"a": [1.0], "b": ["A"], "c": [np.nan]})
    other = pd.DataFrame({"a": [3.0], "b": ["B"], "c": [5.0]})
    for missing, expected in (("level", 1.5), ("ignore", math.sqrt(1.25))):
        distance, schema = fitted(HEOM(missing=missing), train, [True, False, True])

        assert between(distance, schema, one, other) == pytest.approx(expected)
    constant = pd.DataFrame({"constant": [3.0, 3.0, 3.0, np.nan], "b": list("xyxy")})
    for kind, _ in EVERY.values():
        distance, schema = fitted(kind(), constant, [True, False, True, False])

        found = between(distance, schema, constant.head(1).assign(constant=4.0), constant.head(1))

        assert found == 1.0


@pytest.mark.parametrize("missing", ["level", "ignore"])
@pytest.mark.parametrize("name", EVERY)
def test_it_is_what_going_cell_by_cell_gives_and_a_metric(name, missing):
    kind, oracle_of = EVERY[name]
    train = bank(120, seed=1).astype({"education": object})
    decision = score(bank(120, seed=1)) > 0.6
    people, others, third = (bank(20, seed=n).astype({"education": object}) for n in (2, 3, 4))
    people.loc[3, ["housing", "salary"]] = ["tent", 300.0]

    for more in ({}, {"n_bins": 7, "alpha": 0.0} if name == "ivdm" else {}):
        distance, schema = fitted(kind(missing=missing, **more), train, decision)
        found = between(distance, schema, people, others)

        oracle = oracle_of(name, train, decision, missing=missing, **more)
        assert np.allclose(found, expected_of(oracle, people, others), rtol=1e-12)
        assert np.array_equal(found, between(distance, schema, others, people))
        if missing == "level":
            around = between(distance, schema, people, third) + between(
                distance, schema, third, others
            )
            assert (found <= around * (1 + 1e-12)).all()
    if name == "heom":
        l1, schema = fitted(L1(missing=missing), train, decision)
        assert (found <= between(l1, schema, people, others) * (1 + 1e-12)).all()


@pytest.mark.parametrize("name", EVERY)
def test_it_keeps_the_promises_of_the_protocol(name):
    check_distance(name)
    check_distance(EVERY[name][0](missing="ignore"))


@pytest.mark.parametrize("search", ["paper", *slow("near")])
@pytest.mark.parametrize("name", EVERY)
def test_answers_are_measured_bounded_and_nobodys_depends_on_others(name, search):
    train, people = bank(300, seed=1), bank(40, seed=2)
    people = people[score(people) < 0.8].head(8).reset_index(drop=True)
    settings = {"distance": name, "immutable": ["age"], "n_samples": 200, "random_state": 0}
    explainer = MCCE(score, (0.8, 3.0), search=search, **settings).fit(train)

    result = explain(explainer, people)

    owners = people.loc[result.frame.index.get_level_values("factual")]
    oracle = EVERY[name][1](name, train, score(train) >= 0.8)
    assert np.allclose(result.measures[name], expected_of(oracle, result.frame, owners))
    alone = pd.concat([explain(explainer, people.iloc[[at]]).frame for at in range(3)])
    pd.testing.assert_frame_equal(alone, result.frame.loc[alone.index])
    most = float(result.measures[name].median())
    explainer.set_params(search=bounded(search, max_distance=most))
    assert (explain(explainer.fit(train), people).measures[name] <= most + 1e-12).all()


def test_bins_are_counted_and_a_file_holds_the_name_of_the_distance(tmp_path):
    train = bank(300, seed=1)
    with pytest.raises(ParameterError, match="n_bins must be a whole number from 1"):
        MCCE(score, (0.8, 3.0), distance=IVDM(n_bins=0)).fit(train)
    for distance in ("heom", IVDM(n_bins=3)):
        explainer = MCCE(score, (0.8, 3.0), distance=distance, random_state=0).fit(train)

        explainer.save(tmp_path / "explainer.mcce")
        loaded = load(tmp_path / "explainer.mcce", score)

        assert_same(explain(loaded, train.head(5)), explain(explainer, train.head(5)))
        assert main(["inspect", str(tmp_path / "explainer.mcce")]) == 0
