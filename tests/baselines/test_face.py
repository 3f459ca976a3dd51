"""FACE: paths by hand, against plain Dijkstra, and what holds of every path."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from brute_force import same
from mcce import McceWarning
from mcce.baselines import FACE
from mcce.baselines.face import cheapest_paths
from row_methods import cheapest, dijkstra, explain, l1, shares
from tables import cases

LINE = pd.DataFrame({"x": [0.0, 1.0, 2.0, 3.0, 4.0]})
CUT_OFF = "no path over training rows with the same immutable values leads to an accepted one"


def place(rows):
    return np.asarray(rows["x"])


def face(low=3.0, **settings):
    return FACE(place, (low, 99.0), **settings)


def random_graph(chance, n_nodes):
    """Costs of steps in both directions, some of them 0."""
    steps = {node: {} for node in range(n_nodes)}
    for _ in range(2 * n_nodes):
        one, other = chance.integers(0, n_nodes, 2).tolist()
        if one != other:
            cost = float(np.round(chance.random(), 1))
            steps[one][other] = steps[other][one] = cost
    return steps


def as_sparse(steps):
    triples = [(one, two, cost) for one, near in steps.items() for two, cost in near.items()]
    one, two, cost = (np.array(column) for column in zip(*triples, strict=True))
    return csr_array((cost, (one, two)), shape=(len(steps), len(steps)))


@pytest.mark.parametrize("seed", range(50))
def test_one_search_from_all_targets_gives_what_one_search_per_node_does(seed):
    chance = np.random.default_rng(seed)
    steps = random_graph(chance, 14)
    targets = np.unique(chance.integers(0, 14, 3))

    cost, following, target = cheapest_paths(as_sparse(steps), targets)

    for node in steps:
        costs = dijkstra(steps, node)
        assert cost[node] == pytest.approx(cheapest(costs, targets.tolist()))
        if np.isfinite(cost[node]):
            assert target[node] in targets
            assert costs[int(target[node])] == pytest.approx(cost[node])
        along, at = 0.0, node
        while following[at] >= 0:
            along, at = along + steps[at][int(following[at])], int(following[at])
        assert at == (target[node] if np.isfinite(cost[node]) else node)
        assert not np.isfinite(cost[node]) or along == pytest.approx(cost[node])


def test_the_path_on_a_line_goes_through_every_point():
    method = face(radius=0.25, cost="unit").fit(LINE)

    result, paths = method.explain(LINE.head(1)), method.paths(LINE.head(1))

    assert result.frame["x"].tolist() == [3.0]
    assert paths["x"].tolist() == [0.0, 1.0, 2.0, 3.0]
    assert paths.index.tolist() == [(0, step, float(step)) for step in range(4)]


def test_clusters_farther_apart_than_the_radius_are_not_joined():
    train = pd.DataFrame({"x": [0.0, 1.0, 2.0, 8.0, 9.0, 10.0]})

    result = explain(face(8.0, radius=0.3).fit(train), train.head(3))

    assert result.missing["reason"].tolist() == [CUT_OFF] * 3
    joined = face(8.0, radius=0.65).fit(train).explain(train.head(3))
    assert joined.frame["x"].tolist() == [8.0] * 3


def test_people_who_are_near_no_training_row_are_told_apart_from_those_who_are_cut_off():
    result = explain(face(radius=0.25).fit(LINE), pd.DataFrame({"x": [-9.0]}))

    alone = "no training row to go to has the same immutable values"
    assert result.missing["reason"].tolist() == [alone]


def test_a_detour_of_dense_steps_is_cheaper_than_one_long_step():
    chance = np.random.default_rng(0)
    # A crowd from the person along y and on to a target; another target straight ahead.
    crowd = np.column_stack([np.zeros(60), np.linspace(0, 0.55, 60)])
    crowd = np.vstack([crowd + chance.normal(size=(60, 2)) / 200, [[0.0, 0.6], [0.5, 0.0], [1, 1]]])
    train = pd.DataFrame(crowd, columns=["x", "y"])
    accepts = lambda rows: (rows["x"] >= 0.5) | (rows["y"] >= 0.6)
    person = pd.DataFrame({"x": [0.0], "y": [0.0]})

    def found(cost):
        method = FACE(accepts, (1, 1), n_neighbors=62, cost=cost).fit(train)
        return method.explain(person).frame.iloc[0].round(3).tolist()

    assert found("distance") == [0.5, 0.0]
    assert found("density") == [0.0, 0.6]


def test_steps_cost_their_distance():
    train = pd.DataFrame({"x": [0.0, 1.0, 3.0, 10.0]})

    paths = face(10.0, n_neighbors=1).fit(train).paths(train.head(1))

    assert paths["x"].tolist() == [0.0, 1.0, 3.0, 10.0]
    assert paths.index.get_level_values("cost").tolist() == pytest.approx([0.0, 0.1, 0.3, 1.0])


def test_an_immutable_value_that_no_accepted_row_has_is_a_reason():
    train = LINE.assign(sex=["f", "f", "f", "m", "m"])

    result = explain(face(immutable=["sex"]).fit(train), train.head(3))

    assert result.missing["reason"].tolist() == [CUT_OFF] * 3


@given(case=cases())
@settings(max_examples=25)
def test_every_step_is_a_training_row_with_the_persons_immutable_values(case):
    method = FACE(case.score, (0.5, 1.0), immutable=case.immutable, n_neighbors=3).fit(case.train)

    result, paths = explain(method, case.people), None
    if len(result.frame):
        paths = _paths(method, case.people)

    for owner, (_, row) in zip(result.owner, result.frame.iterrows(), strict=True):
        person, label = case.people.iloc[owner], case.people.index[owner]
        path = paths[paths.index.get_level_values("factual") == label]
        steps = path.index.get_level_values("step").tolist()
        costs = path.index.get_level_values("cost").to_numpy()
        assert steps == list(range(len(path)))
        assert costs[0] == 0.0
        assert (np.diff(costs) >= -1e-12).all()
        assert _equal(path.iloc[0], person)
        assert _equal(path.iloc[-1], row)
        for _, step in path.iloc[1:].iterrows():
            assert shares(step, person, case.immutable)
            assert any(_equal(step, known) for _, known in case.train.iterrows())
        # By distance, a path is as long as the sum of its steps.
        length = sum(
            l1(path.iloc[at + 1], path.iloc[at], case.train) for at in range(len(path) - 1)
        )
        assert costs[-1] == pytest.approx(length)


def _paths(method, people):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", McceWarning)
        return method.paths(people)


def _equal(one, other):
    return all(same(one[name], other[name]) for name in other.index)


@pytest.mark.parametrize("cost", ["distance", "unit"])
@given(case=cases(max_rows=20), k=st.integers(1, 4))
@settings(max_examples=15)
def test_costs_are_those_of_plain_dijkstra_on_the_graph_by_hand(cost, case, k):
    method = FACE(case.score, (0.5, 1.0), immutable=case.immutable, n_neighbors=k, cost=cost)
    method.fit(case.train)

    steps = graph_by_hand(case, k, cost)
    targets = np.flatnonzero(case.score(case.train) >= 0.5).tolist()
    for row in range(len(case.train)):
        expected = cheapest(dijkstra(steps, row), targets)
        assert method.cost_[row] == pytest.approx(expected)


def graph_by_hand(case, k, cost):
    """Rows with equal immutable values, joined if one is among the other's k nearest."""
    rows = [row for _, row in case.train.iterrows()]
    steps = {at: {} for at in range(len(rows))}

    def join(one, other, distance):
        step = distance if cost == "distance" else float(distance > 0)
        steps[one][other] = steps[other][one] = step

    first = [min(j for j in range(len(rows)) if _equal(rows[j], row)) for row in rows]
    distinct = sorted(set(first))
    for at in range(len(rows)):
        if first[at] != at:
            join(at, first[at], 0.0)
    for one in distinct:
        others = [o for o in distinct if o != one and shares(rows[o], rows[one], case.immutable)]
        # Rounded, so that ties are ties.
        near = sorted((round(l1(rows[o], rows[one], case.train), 12), o) for o in others)
        for distance, other in near[:k]:
            join(one, other, distance)
    return steps


def test_many_equal_rows_do_not_cut_a_table_into_pieces():
    chance = np.random.default_rng(0)
    train = pd.DataFrame({name: chance.choice(["a", "b"], 500) for name in "xyz"})
    method = FACE(lambda rows: (rows[["x", "y"]] == "b").all(axis=1), (1, 1)).fit(train)

    result = method.explain(train)

    assert method.distinct_.size == 8
    assert (result.people["status"] != "no answer").all()
    assert result.measures["l1"].max() == 2.0
    assert np.isfinite(method.cost_).all()


def test_density_counts_every_copy_of_a_row():
    train = pd.DataFrame({"x": [0.0] * 4 + [1.0, 3.0]})
    method = face(n_neighbors=2).fit(train)

    # Of the two nearest rows of 0, both are copies; of 1, two rows at 0; of 3, those at 1 and 0.
    h = method.bandwidth_
    one, two = np.exp(-1 / 3 / h), np.exp(-2 / 3 / h)
    three = np.exp(-3 / 3 / h)
    expected = [1.0] * 4 + [(1 + 2 * one) / 3, (1 + two + three) / 3]
    np.testing.assert_allclose(method.density_, expected)
    assert h == np.median([1 / 3, 1 / 3, 2 / 3, 1.0])


def test_an_isolated_declined_row_changes_nothing():
    chance = np.random.default_rng(0)
    train = pd.DataFrame({"x": [0.0, 10.0, *chance.random(30) * 8], "y": [*"ab", *"ab" * 15]})
    far = pd.concat([train, pd.DataFrame({"x": [5.0], "y": ["z"]})], ignore_index=True)

    # The radius keeps a row with another level apart from all others.
    plain, more = (face(6.0, radius=0.9).fit(rows) for rows in (train, far))

    pd.testing.assert_frame_equal(
        explain(plain, train.head(20)).frame, explain(more, train.head(20)).frame
    )


def test_an_answer_can_be_asked_to_have_a_score_and_a_density():
    crowded = pd.DataFrame({"x": [0.0, 3.0, 3.1, 3.2, 9.0, 9.1, 9.2, 9.3, 9.4]})

    sure = face(min_score=9.0).fit(crowded).explain(crowded.head(1))
    method = face(n_neighbors=4).fit(crowded)
    dense = face(n_neighbors=4, min_density=float(method.density_.max())).fit(crowded)

    assert sure.frame["x"].tolist() == [9.0]
    found = dense.explain(crowded.head(1)).frame["x"].iloc[0]
    assert crowded["x"].iloc[method.density_.argmax()] == found
    assert method.density_.min() > 0
    assert method.density_.max() <= 1


def test_people_are_joined_to_training_rows_and_not_to_each_other():
    between = pd.DataFrame({"x": [0.0, 1.0, 2.0, 2.9]})
    train = pd.DataFrame({"x": [3.0, 7.0]})

    method = face(radius=0.25).fit(train)
    result = explain(method, between)

    assert result.owner.tolist() == [2, 3]


def test_paths_leave_out_people_without_an_answer_and_keep_labels_and_column_order():
    train = LINE.assign(k=list("aaaab"))
    people = pd.DataFrame({"k": ["a", "a"], "x": [0.0, 4.0]}, index=["p", "q"])

    paths = face(n_neighbors=2, immutable=["k"]).fit(train).paths(people)

    assert list(paths.columns) == ["k", "x"]
    assert set(paths.index.get_level_values("factual")) == {"p"}
    assert paths.index.names == ["factual", "step", "cost"]
    assert face().fit(LINE).paths(LINE.tail(1)).empty
