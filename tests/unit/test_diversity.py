"""Several answers that differ: what diversity promises, and that nothing else changes."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pandas as pd
import pytest

from mcce import MCCE, Gower, McceWarning
from mcce import constraints as c
from mcce.protocols import Capabilities, Draws
from searches import explain


def train():
    return pd.DataFrame({"salary": np.arange(80), "savings": np.arange(80) // 2 * 10})


def person():
    return pd.DataFrame({"salary": [10], "savings": [0]}, index=["p"])


def score(frame):
    return frame["salary"] + frame["savings"] / 5.0


def bank(predictor=score, **settings):
    given = {"search": "paper", "n_counterfactuals": 3, "diversity": 0.5, "random_state": 0}
    return MCCE(predictor, (60, 1000), **given | settings).fit(train())


def test_diverse_answers_differ_more_than_the_best_ones_of_which_the_first_is_kept():
    plain = bank(diversity=None).explain(person())
    several = bank(diversity=0.8).explain(person())

    spread = [np.ptp(result.frame["savings"]) for result in (plain, several)]
    assert spread[0] < spread[1]
    assert several.frame.index.get_level_values("rank").tolist() == [1, 2, 3]
    pd.testing.assert_frame_equal(several.frame.head(1), plain.frame.head(1))


@pytest.mark.parametrize(
    "settings", [{"n_counterfactuals": 1}, {"n_samples": 1}], ids=["answer", "draw"]
)
def test_for_one_answer_diversity_scores_nothing_more(settings):
    plain = explain(bank(diversity=None, **settings), person())
    several = explain(bank(**settings), person())

    pd.testing.assert_frame_equal(plain.frame, several.frame)
    assert plain.n_evaluated == several.n_evaluated


def test_a_needless_candidate_is_dropped_even_if_every_draw_is_requested():
    table = pd.DataFrame({"a": [0, 1] * 20, "b": [0, 0, 1, 1] * 10})
    settings = {"n_samples": 50, "n_counterfactuals": 50, "search": "paper", "random_state": 0}
    first = lambda frame: frame["a"]

    plain = MCCE(first, (1, 1), **settings).fit(table).explain(table.head(1))
    several = MCCE(first, (1, 1), diversity=0.5, **settings).fit(table).explain(table.head(1))

    assert plain.frame.to_numpy().tolist() == [[1, 0], [1, 1]]
    assert several.frame.to_numpy().tolist() == [[1, 0]]


def requests(result):
    """What the answers of each person ask for: level or direction, and by how much, by feature."""
    asked = {}
    for (person, _), cells in result.changes().groupby(["factual", "rank"]):
        made = {}
        for _, one in cells[cells["kind"] == "action"].iterrows():
            if isinstance(one["before"], str):
                made[one["feature"], one["after"]] = 0
            else:
                by = one["after"] - one["before"]
                made[one["feature"], by > 0] = abs(by)
        asked.setdefault(person, []).append(made)
    return asked


def asks_for_less(longer, shorter):
    shared = [(longer[key], shorter[key]) for key in shorter]
    return all(a <= b for a, b in shared) and any(0 < a <= b / 2 for a, b in shared)


@pytest.mark.parametrize("diversity", [None, 0.5])
@pytest.mark.parametrize("search", ["balanced", "plausible", "sparse", "near"])
def test_no_answer_asks_for_the_same_as_another_or_needlessly_for_more(search, diversity):
    chance = np.random.default_rng(0)
    table = pd.DataFrame(chance.integers(0, 20, (400, 4)), columns=list("abcd"))
    table["job"] = chance.choice(["none", "part", "full"], 400)
    table["sum"] = table["a"] + table["b"]
    points = lambda f: f["sum"] + f["c"] - f["d"] + 9 * (f["job"] == "full") - (f["a"] - 9).abs()
    explainer = MCCE(points, (22, 99), search=search, random_state=0)
    explainer.set_params(n_counterfactuals=4, diversity=diversity).fit(table)

    result = explain(explainer, table[points(table) < 10].head(25))

    asked = requests(result)
    assert sum(len(plans) > 2 for plans in asked.values()) > 15
    assert (result.changes()["kind"] == "consequence").any()
    for plans in asked.values():
        for one, other in permutations(plans, 2):
            assert not one.keys() >= other.keys() or asks_for_less(one, other)


def test_there_are_fewer_answers_if_all_others_would_ask_for_the_same():
    table = pd.DataFrame(np.random.default_rng(0).integers(0, 40, (200, 2)), columns=["a", "b"])
    explainer = MCCE(lambda f: f["a"], (30, 99), random_state=0, n_counterfactuals=3)

    result = explain(explainer.fit(table), table[table["a"] < 20].head(20))

    assert len(result.frame) == 20
    assert not len(result.missing)


class Forgetful:
    """A black box that refuses some salaries the second time it sees them."""

    def __init__(self):
        self.seen = {}

    def __call__(self, frame):
        scores = []
        for salary, savings in frame.itertuples(index=False):
            self.seen[salary, savings] = self.seen.get((salary, savings), 0) + 1
            refused = self.seen[salary, savings] > 1 and salary % 3
            scores.append(0.0 if refused else salary + savings / 5.0)
        return np.array(scores)


def test_answers_that_fail_when_scored_again_are_replaced():
    predictor = Forgetful()
    explainer = bank(predictor, n_counterfactuals=4)
    predictor.seen.clear()

    with pytest.warns(McceWarning, match="predictor is unstable"):
        result = explainer.explain(person())

    assert result.n_unstable >= 1
    assert not (result.frame["salary"] % 3).any()
    assert result.frame.index.get_level_values("rank").tolist() == [1, 2, 3, 4]
    assert result.n_evaluated == len(predictor.seen) - 1


class Lattice:
    """A generator that invents numbers half-way between those of training."""

    capabilities = Capabilities(value_tables=True)
    tables_ = (pd.Series(np.arange(60, 80, 0.5)), pd.Series(np.arange(0, 20, 0.5)))

    def fit(self, rows, is_desired, *, seed, n_jobs, verbose):
        return self

    def sample(self, request):
        codes = np.tile(request.draws % 40, (2, request.keys.size, 1)).astype(np.int32)
        return Draws(codes, self.tables_)


def test_invented_values_differ_by_what_they_are():
    explainer = MCCE(score, (60, 1000), generator=Lattice(), n_samples=30, random_state=0)
    explainer.set_params(n_counterfactuals=3, diversity=1.0, search="paper").fit(
        train().astype(float)
    )

    result = explainer.explain(person().astype(float))

    assert result.frame["salary"].tolist() == [60.0, 74.5, 67.0]


@pytest.mark.parametrize("diversity", [0.0, 0.5, 1.0])
def test_infinite_distances_can_be_weighed(diversity):
    table = pd.DataFrame({"e": [0.0, 1e-300] * 6, "level": [0, 1, 1] * 4})
    explainer = MCCE(
        lambda f: f["level"],
        (1, 1),
        n_counterfactuals=2,
        diversity=diversity,
        search="paper",
        random_state=0,
    ).fit(table)

    result = explainer.explain(pd.DataFrame({"e": [1e10], "level": [0]}))

    assert np.isinf(result.measures["gower"]).all()
    assert len(result.frame) == 2


class Salary:
    """A distance that sees the salary alone."""

    name = "salary_gap"

    def fit(self, schema, rows, is_desired):
        return self

    def __call__(self, candidates):
        block = candidates.comparison
        return np.abs(block.numbers[0][block.codes[0][block.group]] - block.own_numbers[0][:, None])


@pytest.mark.parametrize("generator", ["trees", Lattice()], ids=["trees", "invented"])
def test_a_custom_distance_separates_answers_and_is_measured(generator):
    explainer = MCCE(score, (60, 1000), generator=generator, distance=Salary(), random_state=0)
    explainer.set_params(n_counterfactuals=2, diversity=1.0, search="near").fit(
        train().astype(float)
    )

    result = explainer.explain(person().astype(float))

    gap = (result.frame["salary"] - 10).abs()
    assert result.measures["salary_gap"].tolist() == gap.tolist()
    assert gap.is_unique


def test_a_distance_that_equals_gower_chooses_the_same_answers():
    class Same(Gower):
        name = "same"

    gower, same = (bank(distance=distance).explain(person()) for distance in ("gower", Same()))

    pd.testing.assert_frame_equal(same.frame, gower.frame)
    assert same.measures["same"].tolist() == gower.measures["gower"].tolist()


def test_weights_do_not_count_in_diversity_beyond_the_paper_s_search():
    table = pd.DataFrame(np.random.default_rng(0).integers(0, 9, (300, 2)), columns=list("ab"))
    settings = {"search": "near", "n_counterfactuals": 2, "diversity": 0.5, "random_state": 0}
    explainer = MCCE(lambda f: f.max(axis=1), (7, 99), **settings).fit(table)
    people = table[table.max(axis=1) < 5].head(20)

    result = explain(explainer, people, constraints=[c.weight("a", 50)])

    # The first answer changes b, which weighs less, and the other one differs most from it.
    changed = result.changes().groupby("rank")["feature"].unique()
    assert changed[1].tolist() == ["b"]
    assert changed[2].tolist() == ["a"]


@pytest.mark.parametrize(("search", "seed"), [("plausible", 7), ("balanced", 6)])
def test_the_first_answer_stays_the_same_however_many_are_wanted(search, seed):
    table = pd.DataFrame(np.random.default_rng(seed).integers(0, 6, (400, 4)), columns=list("abcd"))
    noise = np.random.default_rng(99).random(100_003)
    # Scores that no surrogate can imitate, so that further answers come as a surprise.
    unpredictable = lambda f: noise[(f.to_numpy() @ 6 ** np.arange(4) * 7919) % noise.size]
    explainer = MCCE(unpredictable, (0.8, 1), search=search, random_state=seed).fit(table)
    people = table[unpredictable(table) < 0.8].head(100)

    one = explain(explainer, people)
    several = explain(explainer.set_params(n_counterfactuals=4), people)

    first = several.frame[several.frame.index.get_level_values("rank") == 1]
    assert len(several.frame) > len(first)
    pd.testing.assert_frame_equal(first, one.frame, check_exact=True)
