"""Near rows, outliers and contradictory pairs: by hand, by brute force, in any blocks."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mcce.metrics.neighbours as nearest_module
from brute_force import same
from mcce import ParameterError, SchemaError, metrics
from mcce.metrics import Evaluator
from mcce.metrics.evaluator import read_rows
from mcce.metrics.neighbours import nearest
from mcce.metrics.plausibility import matrix
from tables import cases

LINE = pd.DataFrame({"x": [0.0, 1.0, 2.0, 10.0], "l": ["a", "a", "b", "b"]})  # range 10


def test_knn_distance_by_hand():
    row = pd.DataFrame({"x": [3.0], "l": ["a"]})

    # to the rows in order: .3, .2, .1 + 1, .7 + 1
    assert metrics.knn_distance(row, LINE, k=1).tolist() == pytest.approx([0.2])
    assert metrics.knn_distance(row, LINE, k=2).tolist() == pytest.approx([(0.2 + 0.3) / 2])
    assert metrics.knn_distance(row, LINE, k=4).tolist() == pytest.approx(
        [(0.2 + 0.3 + 1.1 + 1.7) / 4]
    )


def test_knn_distance_on_ranks_by_hand():
    row = pd.DataFrame({"x": [9.0], "l": ["b"]})

    # Ranks of 0, 1, 2, 10 as shares: 1/8, 3/8, 5/8, 7/8, equal ones counted half; three of four
    # values are below 9: 6/8. So the rows with b are 1/8 away, though 9 is far nearer to 10.
    assert metrics.knn_distance(row, LINE, k=1, scale="ranks").tolist() == [1 / 8]
    assert metrics.knn_distance(row, LINE, k=2, scale="ranks").tolist() == [1 / 8]
    assert metrics.knn_distance(row, LINE, k=2).tolist() == pytest.approx([(0.1 + 0.7) / 2])


def test_knn_distance_among_rows_with_the_desired_decision():
    evaluator = Evaluator.fit(LINE, predictor=lambda frame: frame["x"], desired=(5, 99))
    row = pd.DataFrame({"x": [3.0], "l": ["a"]})

    assert metrics.knn_distance(row, evaluator, k=1, among="desired").tolist() == pytest.approx(
        [0.7 + 1]
    )


def test_ynn_by_hand():
    evaluator = Evaluator.fit(LINE, predictor=lambda frame: frame["x"], desired=(1, 5))
    rows = pd.DataFrame({"x": [0.0, 9.0], "l": ["a", "b"]})

    # nearest to (0, a): 0 and 1, of which 1 is desired; to (9, b): 10 and 2, of which 2 is
    assert metrics.ynn(rows, evaluator, k=2).tolist() == [0.5, 0.5]
    assert metrics.ynn(rows, evaluator, k=4).tolist() == [0.5, 0.5]
    assert metrics.ynn(rows, evaluator, k=3).tolist() == [2 / 3, 2 / 3]


def test_ynn_takes_euclidean_neighbours():
    # from (0, 0) the point (.6, .6) is 1.2 away by l1 and .849 by Euclid, (1, 0) is 1 away by both
    training = pd.DataFrame({"x": [0.6, 1.0, 0.0], "y": [0.6, 0.0, 1.0]})
    evaluator = Evaluator.fit(training, predictor=lambda frame: frame["y"], desired=(0.5, 0.7))
    row = pd.DataFrame({"x": [0.0], "y": [0.0]})

    assert metrics.ynn(row, evaluator, k=1).tolist() == [1.0]


def test_ynn_is_one_if_all_training_rows_are_desired():
    evaluator = Evaluator.fit(LINE, predictor=lambda frame: frame["x"], desired=(-1, 99))

    assert metrics.ynn(LINE, evaluator, k=3).tolist() == [1.0] * 4


def apart(evaluator, one, other, *, squared=False):
    """The distance of two rows, cell by cell."""
    total = 0.0
    for feature in evaluator.schema.features:
        a, b = one[feature.name], other[feature.name]
        if same(a, b):
            continue
        plain = pd.isna(a) or pd.isna(b) or feature.kind == "categorical" or not feature.spread
        gap = 1.0 if plain else abs(float(a) - float(b)) / feature.spread
        total += gap * gap if squared else gap
    return total


@given(cases(max_rows=12), st.integers(1, 40), st.booleans())
def test_nearest_rows_equal_those_of_brute_force_in_any_blocks(case, cells, squared):
    evaluator = Evaluator.fit(case.train)
    rows, others = (
        evaluator.schema.encode(frame) for frame in (case.people, case.people.iloc[::-1])
    )
    was = nearest_module.CELLS_PER_BLOCK
    try:
        nearest_module.CELLS_PER_BLOCK = cells
        for right, frame in ((evaluator.rows, case.train), (others, case.people.iloc[::-1])):
            k = min(3, len(right))
            far, near = nearest(evaluator, rows, right, k, squared=squared)
            for person, (_, one) in enumerate(case.people.astype(object).iterrows()):
                every = [
                    apart(evaluator, one, other, squared=squared)
                    for _, other in frame.astype(object).iterrows()
                ]
                assert far[person].tolist() == pytest.approx(sorted(every)[:k])
                assert [every[at] for at in near[person]] == pytest.approx(sorted(every)[:k])
    finally:
        nearest_module.CELLS_PER_BLOCK = was


def test_memory_does_not_grow_with_the_number_of_rows():
    chance = np.random.default_rng(0)
    evaluator = Evaluator.fit(pd.DataFrame(chance.random((5000, 3))))
    rows = evaluator.schema.encode(pd.DataFrame(chance.random((2000, 3))))

    tracemalloc.start()
    nearest(evaluator, rows, evaluator.rows, 5)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    # all distances at once would take 5000 * 2000 * 8 = 80 million bytes
    assert peak < 30_000_000


def test_of_equally_near_rows_the_first_are_taken():
    training = pd.DataFrame({"x": [1, 0, 1, 1, 2, 1]})
    evaluator = Evaluator.fit(training)
    rows = evaluator.schema.encode(pd.DataFrame({"x": [1]}))

    assert nearest(evaluator, rows, evaluator.rows, 2)[1].tolist() == [[0, 2]]
    assert nearest(evaluator, rows, evaluator.rows, 5)[1].tolist() == [[0, 2, 3, 5, 1]]
    among = np.array([4, 1, 5])
    assert nearest(evaluator, rows, evaluator.rows, 2, among=among)[1].tolist() == [[5, 4]]
    many = Evaluator.fit(pd.DataFrame({"x": [0] * 500}))
    found = nearest(many, many.schema.encode(pd.DataFrame({"x": [0]})), many.rows, 100)[1]
    assert found.tolist() == [list(range(100))]


def test_two_values_that_training_does_not_have_are_near_only_if_equal():
    evaluator = Evaluator.fit(pd.DataFrame({"l": ["a", "b"], "c": [1, 1]}))
    one = evaluator.schema.encode(pd.DataFrame({"l": ["x", "y", None], "c": [2, 2, 1]}))
    other = evaluator.schema.encode(pd.DataFrame({"l": ["y", np.nan], "c": [2, 3]}))

    far, _ = nearest(evaluator, one, other, 2)

    # x: both differ from y in l only, and from (missing, 3) in both
    assert far.tolist() == [[1, 2], [0, 2], [1, 2]]


def test_missing_numbers_are_one_away_from_any_number_and_none_from_each_other():
    training = pd.DataFrame({"x": [0.0, 5.0, 10.0, np.nan]})
    rows = pd.DataFrame({"x": [np.nan, 10.0, 4.0], "y": [1, 1, 1]})

    for scale in ("range", "ranks"):
        far = metrics.knn_distance(rows, training.assign(y=1), k=1, scale=scale)
        assert far.iloc[0] == 0
        assert far.iloc[1] == 0
    assert metrics.knn_distance(rows, training.assign(y=1), k=4).iloc[0] == (0 + 1 + 1 + 1) / 4


def test_unequal_levels_are_at_distance_one_in_the_matrix_of_numbers():
    training = pd.DataFrame({"x": [0.0, 4.0, np.nan], "l": ["a", "b", "c"]})
    evaluator = Evaluator.fit(training)
    rows = read_rows(
        pd.DataFrame({"x": [1.0, 1.0, 1.0, 3.0], "l": ["a", "b", "q", "a"]}), evaluator
    )[1]

    numbers = matrix(evaluator, rows)

    assert numbers.shape == (4, 2 + 4)
    for other, far in ((1, 1.0), (2, 1.0), (3, 0.5)):
        assert np.linalg.norm(numbers[0] - numbers[other]) == pytest.approx(far)
    # the median of 0 and 4 and a mark
    assert matrix(evaluator, evaluator.rows)[2, :2].tolist() == [0.5, 1.0]


def test_outliers_stand_out():
    chance = np.random.default_rng(0)
    training = pd.DataFrame(
        {"x": chance.normal(size=400), "y": chance.normal(size=400), "l": ["a", "b"] * 200}
    )
    rows = pd.DataFrame({"x": [0.0, 5.0], "y": [0.0, -5.0], "l": ["a", "a"]})

    for measure in (metrics.outlier_factor, metrics.isolation, metrics.knn_distance):
        usual, strange = measure(rows, training)
        assert strange > 1.3 * usual
    assert metrics.outlier_factor(rows, training).iloc[0] == pytest.approx(1, abs=0.2)
    first, again = (metrics.isolation(rows, training, random_state=3) for _ in range(2))
    assert first.tolist() == again.tolist()
    assert first.tolist() != metrics.isolation(rows, training, random_state=4).tolist()


def test_the_outlier_factor_by_hand():
    training = pd.DataFrame({"x": [0.0, 1.0, 2.0, 4.0]})

    # Scaled by 4 everything is the same. With k = 1 the reach of a row is its distance to the
    # nearest: 1, 1, 1, 2, and the density of a row is one over the larger of that reach of its
    # nearest row and their distance. Of 7 the nearest is 4, whose density is 1/2; 7 itself: 1/3.
    assert metrics.outlier_factor(pd.DataFrame({"x": [7.0]}), training, k=1).tolist() == (
        pytest.approx([(1 / 2) / (1 / 3)], rel=1e-6)
    )


def test_many_equal_training_rows_do_not_make_the_outlier_factor_explode():
    training = pd.DataFrame({"x": [0] * 50 + list(range(1, 40))})

    result = metrics.outlier_factor(pd.DataFrame({"x": [0, -1, 20]}), training, k=5)

    assert (result < 3).all()


def test_contradictory_pairs_by_hand():
    # 100 rows; called 50/50, sold 50/50: independence expects 25 of each pair, never and yes 0
    training = pd.DataFrame(
        {
            "called": ["never"] * 50 + ["once"] * 50,
            "sold": ["no"] * 50 + ["yes"] * 50,
            "x": range(100),
            "rare": ["r"] * 2 + ["s"] * 98,
        }
    )
    rows = pd.DataFrame(
        {
            "called": ["never", "once", "never", "twice", "once"],
            "sold": ["yes", "yes", "no", "yes", "no"],
            "x": [1, 1, 1, 1, 1],
            # r with once is expected 50 * 2 / 100 = 1 times: too few to tell
            "rare": ["s", "r", "s", "s", "s"],
        }
    )

    assert metrics.contradictory_pairs(rows, training).tolist() == [1, 0, 0, 0, 1]
    assert metrics.contradictory_pairs(rows, training, least_expected=25).tolist()[0] == 1
    assert metrics.contradictory_pairs(rows, training, least_expected=25.1).tolist()[0] == 0
    assert metrics.contradictory_pairs(rows, training, least_expected=1).tolist()[1] == 2


def test_twenty_rows_must_be_expected_unless_told_otherwise():
    row = pd.DataFrame({"a": ["p"], "b": ["v"]})
    counts = []
    for n_each in (19, 20):
        # n_each * 2 n_each / 2 n_each rows are expected of p with v, and there is none
        training = pd.DataFrame({"a": ["p", "q"] * n_each, "b": ["u", "v"] * n_each})
        training = pd.concat([training, training])
        counts.append(metrics.contradictory_pairs(row, training).tolist())

    assert counts == [[0], [1]]


def test_rare_levels_are_not_contradictory_together():
    # 50 levels of one row each; together they never go with v, each by itself says nothing
    training = pd.DataFrame(
        {"a": ["p"] * 300 + [f"rare {i}" for i in range(50)], "b": ["u", "v"] * 150 + ["u"] * 50}
    )
    row = pd.DataFrame({"a": ["rare 3", "unheard of"], "b": ["v", "v"]})

    assert metrics.contradictory_pairs(row, training).tolist() == [0, 0]


def test_a_pair_may_be_seen_in_up_to_its_share_of_what_is_expected():
    # 200 of 400 and 200 of 400: 100 expected; seen once is 1 %, which is not under 1 %
    once = pd.DataFrame({"a": ["p"] * 200 + ["q"] * 200, "b": ["u"] * 199 + ["v"] * 200 + ["u"]})
    row = pd.DataFrame({"a": ["q"], "b": ["u"]})

    assert metrics.contradictory_pairs(row, once).tolist() == [0]
    assert metrics.contradictory_pairs(row, once, share=0.011).tolist() == [1]


@given(cases(max_rows=40), st.sampled_from([0.5, 1.0, 3.0]), st.sampled_from([0.01, 0.3, 1.0]))
def test_contradictory_pairs_equal_those_counted_pair_by_pair(case, least, share):
    evaluator = Evaluator.fit(case.train)
    names = [f.name for f in evaluator.schema.features if f.kind == "categorical"]
    people = case.people[~case.people.isna().all(axis=1)]
    if len(names) < 2 or people.empty:
        return
    table = [dict(row) for _, row in case.train.astype(object).iterrows()]
    counts = []
    for _, row in people.astype(object).iterrows():
        n_bad = 0
        for i, first in enumerate(names):
            for second in names[:i]:
                has = [
                    (same(other[first], row[first]), same(other[second], row[second]))
                    for other in table
                ]
                n_a, n_b = sum(a for a, _ in has), sum(b for _, b in has)
                expected = n_a * n_b / len(table)
                seen = sum(a and b for a, b in has)
                n_bad += expected >= least and seen < share * expected
        counts.append(n_bad)

    result = metrics.contradictory_pairs(people, evaluator, share=share, least_expected=least)
    assert result.tolist() == counts


def test_real_rows_hardly_ever_have_a_contradictory_pair(data_folder):
    german = pd.read_csv(data_folder / "german.csv.gz").drop(columns="Risk")
    adult = pd.read_csv(data_folder / "adult.csv.gz", keep_default_na=False)
    adult = adult.drop(columns=["income", "split"])

    for frame in (german, adult):
        order = np.random.default_rng(0).permutation(len(frame))
        seen, fresh = frame.iloc[order[::2]], frame.iloc[order[1::2]]
        assert (metrics.contradictory_pairs(fresh, seen) > 0).mean() <= 0.002
        mixed = fresh.assign(**{c: np.roll(fresh[c], i) for i, c in enumerate(fresh.columns)})
        assert (metrics.contradictory_pairs(mixed, seen) > 0).mean() > 0.2


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (lambda: metrics.knn_distance(LINE, LINE, k=5), ParameterError, "at most .* 4, got 5"),
        (
            lambda: metrics.knn_distance(LINE, LINE, k=1.5),
            ParameterError,
            "k must be a whole number",
        ),
        (lambda: metrics.knn_distance(LINE, LINE, k=1, scale="z"), ParameterError, "scale must be"),
        (
            lambda: metrics.knn_distance(LINE, LINE, k=1, among="no"),
            ParameterError,
            "among must be",
        ),
        (
            lambda: metrics.knn_distance(LINE, LINE, k=1, among="desired"),
            ParameterError,
            "predictor",
        ),
        (lambda: metrics.outlier_factor(LINE, LINE, k=4), ParameterError, "less than .* 4, got 4"),
        (lambda: metrics.isolation(LINE, LINE, random_state=-1), ParameterError, "random_state"),
        (lambda: metrics.contradictory_pairs(LINE, LINE), SchemaError, "two categorical features"),
        (lambda: metrics.contradictory_pairs(LINE, LINE, share=2), ParameterError, "share must be"),
        (lambda: metrics.knn_distance(LINE[["x"]], LINE), SchemaError, "missing"),
    ],
)
def test_what_cannot_be_measured_is_an_error_that_says_why(call, error, says):
    with pytest.raises(error, match=says):
        call()
