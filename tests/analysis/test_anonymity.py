"""Anonymous answers: crowds and pureness against brute force, kinds of columns, errors, batches."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mcce
from bills import bills, value
from mcce import MCCE, Interval, McceWarning, ParameterError, SchemaError
from mcce import constraints as c
from mcce.counterfactuals import number_people, take_people

CHANCE = np.random.default_rng(3)
N_TRAIN = 300
TRAIN = pd.DataFrame(
    {
        "sex": CHANCE.choice(["f", "m"], N_TRAIN),
        "age": CHANCE.integers(18, 75, N_TRAIN),
        "amount": np.round(CHANCE.gamma(2, 1500, N_TRAIN)).astype(int) + 200,
        "rate": CHANCE.choice([0.05, 0.1, 0.15, 0.2, np.nan], N_TRAIN),
        "home": CHANCE.choice(["own", "rent", "free"], N_TRAIN, p=[0.6, 0.3, 0.1]),
        "class": pd.Categorical(
            CHANCE.choice(["low", "middle", "high", "top"], N_TRAIN),
            ["low", "middle", "high", "top"],
            ordered=True,
        ),
        "since": pd.Timestamp("2001-01-01")
        + pd.to_timedelta(CHANCE.integers(0, 7000, N_TRAIN), "D"),
        "open": pd.to_timedelta(CHANCE.integers(1, 90, N_TRAIN), "D"),
    }
)
ALL = ["age", "amount", "rate", "home", "class", "since", "open"]


def points(frame):
    return (
        frame["age"] * 20
        - frame["amount"] / 4
        + 300 * (frame["home"] == "own")
        + 200 * (frame["class"] > "middle").astype(int)
        + 500 * frame["rate"].isna()
    )


AT_LEAST_500 = Interval(500, np.inf)


def fitted(predictor=points, desired=AT_LEAST_500, train=TRAIN, **settings):
    settings = {"immutable": ["sex"], "n_samples": 50, "random_state": 0} | settings
    with warnings.catch_warnings():
        # Small tables have columns that look like row numbers.
        warnings.simplefilter("ignore", McceWarning)
        return MCCE(predictor, desired, **settings).fit(train)


def explain(explainer, people, k, names, train=TRAIN, **more):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", McceWarning)
        wanted = {"anonymity": k, "quasi_identifiers": names, "training": train}
        return explainer.explain(people, **wanted, **more)


@pytest.fixture(scope="module")
def explainer():
    return fitted()


@pytest.fixture(scope="module")
def people():
    return TRAIN[points(TRAIN) < 500].head(8)


def fits(cell, column):
    """Which raw cells of a column are in a cell of the table, by its values alone."""
    missing = column.isna().to_numpy()
    if cell["kind"] == "any":
        return np.ones(len(column), dtype=bool)
    if cell["levels"] is not None and column.dtype != "datetime64[ns]":
        return np.where(missing, cell["missing"], column.isin(cell["levels"]))
    if cell["missing"]:
        return missing
    inside = ~missing
    if cell["low"] is not None:
        inside = inside & (column >= cell["low"]).to_numpy()
    if cell["high"] is not None:
        inside = inside & (column <= cell["high"]).to_numpy()
    return inside


def answers_of(result):
    """For each answer its row, its cells by column and its measures."""
    anonymous = result.anonymous
    n_columns = len(anonymous.quasi_identifiers)
    for at in range(len(result.frame)):
        some = anonymous.cells.iloc[at * n_columns : (at + 1) * n_columns]
        cells = dict(zip(some["feature"], some.to_dict("records"), strict=True))
        yield result.frame.iloc[[at]], cells, anonymous.measures.iloc[at]


def count(cells, train=TRAIN):
    inside = [fits(cell, train[name]) for name, cell in cells.items()]
    return int(np.all(inside, axis=0).sum())


@pytest.mark.parametrize("k", [2, 30, 299])
@pytest.mark.parametrize(
    "names",
    [["amount"], ["age", "home"], ["rate"], ["class", "since"], ALL, ["open", "sex", "age"]],
)
def test_every_crowd_is_large_enough_in_the_raw_training_rows(explainer, people, k, names):
    result = explain(explainer, people.head(4), k, names, min_pureness=0.5)

    assert len(result.anonymous.frame) == len(result.frame) > 0
    for row, cells, measures in answers_of(result):
        assert list(cells) == [name for name in TRAIN if name in names and name != "sex"]
        assert measures["crowd"] == count(cells) >= k
        assert all(fits(cell, row[name])[0] for name, cell in cells.items())
        assert 0 <= measures["loss"] <= 1


@given(
    k=st.integers(2, 40),
    seed=st.integers(0, 1000),
    n_levels=st.integers(1, 6),
    spread=st.sampled_from([0.01, 3.0, 100.0, 12345.0]),
    missing=st.booleans(),
)
def test_crowds_and_losses_of_any_small_table(k, seed, n_levels, spread, missing):
    chance = np.random.default_rng(seed)
    train = pd.DataFrame(
        {
            "x": chance.normal(0, spread, 40).round(chance.integers(0, 4)),
            "y": chance.integers(0, 3, 40),
            "level": chance.integers(0, n_levels, 40).astype(str),
        }
    )
    if missing:
        train.loc[chance.random(40) < 0.2, "x"] = np.nan
        train.loc[chance.random(40) < 0.2, "level"] = None
    if train["x"].notna().sum() == 0:
        return
    explainer = fitted(lambda frame: frame["y"], (1, 2), train, immutable=[])

    result = explain(explainer, train[train["y"] == 0].head(3), k, ["x", "y", "level"], train)

    for row, cells, measures in answers_of(result):
        assert measures["crowd"] == count(cells, train) >= k
        assert all(fits(cell, row[name])[0] for name, cell in cells.items())
        varied = [name for name in cells if len(train[name].drop_duplicates()) > 1]
        losses = [cells[name]["loss"] for name in varied]
        assert measures["loss"] == pytest.approx(np.mean(losses or [0]))


def test_everything_is_widened_if_all_training_people_must_fit(explainer, people):
    result = explain(explainer, people.head(2), N_TRAIN, ALL)

    assert (result.anonymous.measures["crowd"] == N_TRAIN).all()
    assert (result.anonymous.measures["loss"] == 1).all()
    assert (result.anonymous.frame[ALL] == "any").all(axis=None)
    assert (result.anonymous.frame["sex"] == result.frame["sex"]).all()


def test_values_that_enough_people_have_stay_as_they_are(explainer, people):
    result = explain(explainer, people, 20, ["home"])

    assert result.anonymous.frame["home"].isin(["own", "rent", "free"]).all()
    assert (result.anonymous.measures["loss"] == 0).all()
    assert (result.anonymous.measures["pureness"] == 1).all()
    assert (result.anonymous.cells["kind"] == "value").all()


def test_everything_is_pure_for_a_predictor_that_accepts_everything_but_the_person():
    train = pd.DataFrame({"a": np.arange(100), "b": np.arange(100)[::-1]})
    explainer = fitted(lambda frame: frame["a"] != 7, (1, 1), train, immutable=[])

    result = explain(explainer, train.iloc[[7]], 10, ["b"], train)

    assert result.anonymous.measures["pureness"].tolist() == [1.0]
    assert result.anonymous.measures["enumerated"].tolist() == [True]
    assert result.anonymous.measures["pureness_error"].tolist() == [0.0]


def brute_force_pureness(row, cells, train, predictor, desired):
    """The share of all combinations of training values in the cells that are accepted."""
    values = []
    for name, cell in cells.items():
        known = pd.concat([train[name], row[name]]).drop_duplicates()
        values.append(known[fits(cell, known)].tolist())
    combinations = pd.DataFrame(list(itertools.product(*values)), columns=list(cells))
    rows = row.iloc[np.zeros(len(combinations), dtype=int)].reset_index(drop=True)
    for name in cells:
        rows[name] = combinations[name].astype(train[name].dtype)
    score = predictor(rows)
    return float(((score >= desired.low) & (score <= desired.high)).mean()), len(rows)


def test_pureness_is_the_share_of_all_combinations_that_are_accepted(explainer, people):
    result = explain(explainer, people, 12, ["age", "home", "class"], min_pureness=0.0)

    assert result.anonymous.measures["enumerated"].all()
    seen = set()
    for row, cells, measures in answers_of(result):
        expected, n_rows = brute_force_pureness(row, cells, TRAIN, points, AT_LEAST_500)
        assert measures["pureness"] == pytest.approx(expected)
        assert measures["n_scored"] == measures["n_combinations"] == n_rows
        seen.add(measures["pureness"])
    assert len(seen) > 1


def test_pureness_of_many_combinations_is_estimated_within_its_error(explainer, people):
    result = explain(explainer, people.head(4), 100, ["age", "amount"], min_pureness=0.0)

    sampled = 0
    for row, cells, measures in answers_of(result):
        expected, n_rows = brute_force_pureness(row, cells, TRAIN, points, AT_LEAST_500)
        assert measures["n_combinations"] == n_rows
        if not measures["enumerated"]:
            sampled += 1
            assert measures["n_scored"] == 1000
            # Of a share near 0 or 1, the sample may have none.
            error = max(measures["pureness_error"], 1 / 1000)
            assert abs(measures["pureness"] - expected) <= 4 * error
    assert sampled


def test_cells_stay_pure_where_they_can(explainer, people):
    names = ["age", "amount", "home"]
    careless = explain(explainer, people, 10, names, min_pureness=0.0).anonymous.measures
    careful = explain(explainer, people, 10, names, min_pureness=0.95).anonymous.measures

    assert careful["pureness"].mean() > careless["pureness"].mean()
    assert careful["pure"].equals(careful["pureness"] >= 0.95)
    assert careful["pure"].mean() > 0.5


def test_an_answer_that_cannot_stay_pure_says_so():
    train = pd.DataFrame({"a": np.arange(100)})
    explainer = fitted(lambda frame: frame["a"], (50, 50), train, immutable=[], n_samples=2000)

    measures = explain(explainer, train.head(1), 4, ["a"], train).anonymous.measures

    assert measures["crowd"].tolist() == [6]
    assert measures["pureness"].tolist() == [pytest.approx(1 / 6)]
    assert measures["pure"].tolist() == [False]


def test_a_range_stays_on_the_side_of_the_answer():
    train = pd.DataFrame({"a": np.arange(100), "b": 0})
    explainer = fitted(lambda frame: frame["a"], (50, 99), train, immutable=[])

    anonymous = explain(explainer, train.iloc[[47]], 10, ["a"], train).anonymous

    assert anonymous.frame["a"].tolist() == ["50 to 60"]
    assert anonymous.measures[["pureness", "n_blurred"]].to_numpy().tolist() == [[1.0, 0.0]]


def test_answers_are_the_same_alone_and_among_others(explainer, people):
    names = ["age", "amount", "rate", "home"]
    together = explain(explainer, people.iloc[::-1], 8, names).anonymous
    for at in range(0, len(people), 4):
        alone = explain(explainer, people.iloc[[at]], 8, names).anonymous

        label = people.index[at]
        pd.testing.assert_frame_equal(alone.frame, together.frame.loc[[label]])
        pd.testing.assert_frame_equal(alone.measures, together.measures.loc[[label]])


def test_the_order_of_training_rows_does_not_matter(explainer, people):
    one = explain(explainer, people, 8, ["age", "amount"]).anonymous
    other = explain(explainer, people, 8, ["age", "amount"], TRAIN.iloc[::-1]).anonymous

    pd.testing.assert_frame_equal(one.frame, other.frame)
    pd.testing.assert_frame_equal(one.measures, other.measures)


def test_ends_are_round_and_say_nothing_beyond_training(explainer, people):
    cells = explain(explainer, people.head(4), 15, ["age", "amount", "rate", "since", "open"])
    cells = cells.anonymous.cells

    ranges = cells[cells["kind"] == "range"]
    ages = ranges[ranges["feature"] == "age"]
    assert set(ages["low"].dropna().astype(int) % 5) | set(
        ages["high"].dropna().astype(int) % 5
    ) == {0}
    amounts = ranges[ranges["feature"] == "amount"]
    ends = pd.concat([amounts["low"], amounts["high"]]).dropna()
    assert not (ends.astype(int) % 50).any()
    assert not amounts["text"].str.contains(str(TRAIN["amount"].max())).any()
    assert not amounts["text"].str.contains(f" {TRAIN['amount'].min()}").any()
    dates = ranges[ranges["feature"] == "since"]
    for end in pd.concat([dates["low"], dates["high"]]).dropna():
        assert end.day == 1 or (end + pd.Timedelta(1, "D")).day == 1


@pytest.mark.parametrize(
    ("cell", "text"),
    [("rate", "missing"), ("home", "missing")],
)
def test_missing_is_a_level(cell, text):
    train = pd.DataFrame(
        {"rate": [np.nan] * 6 + [1.0, 2.0, 3.0] * 4, "home": [None] * 6 + ["own"] * 12}
    )
    explainer = fitted(lambda frame: frame[cell].isna(), (1, 1), train, immutable=[])

    few = explain(explainer, train.iloc[[-1]], 6, [cell], train).anonymous
    many = explain(explainer, train.iloc[[-1]], 7, [cell], train).anonymous

    assert few.frame[cell].tolist() == [text]
    assert few.measures["crowd"].tolist() == [6]
    assert many.frame[cell].tolist() == ["any"]
    assert many.measures["crowd"].tolist() == [18]
    assert many.cells["missing"].tolist() == [True]


def test_immutable_columns_are_not_widened_but_counted(explainer, people):
    result = explain(explainer, people, 10, ["sex", "age"])
    anonymous = result.anonymous

    assert anonymous.quasi_identifiers == ("age",)
    assert anonymous.excluded == ("sex",)
    for row, cells, measures in answers_of(result):
        same = TRAIN[(TRAIN["sex"] == row["sex"].iloc[0])]
        assert measures["crowd_alike"] == count(cells, same) <= measures["crowd"]


def test_what_gives_a_column_away_is_widened_with_it():
    frame = bills(400)
    explainer = MCCE(value, (1, 10), search="balanced", random_state=0).fit(frame)
    person = frame[value(frame) < 1].head(1)
    names = list(frame.columns)

    result = explain(explainer, person, 5, ["months"], frame, min_pureness=0.5)

    assert "months" in result.anonymous.quasi_identifiers
    assert "total" in names
    assert "total" in result.anonymous.quasi_identifiers
    for row, cells, measures in answers_of(result):
        assert measures["crowd"] == count(cells, frame) >= 5
        assert all(fits(cell, row[name])[0] for name, cell in cells.items())
        assert measures["n_scored"] > 0


def test_people_without_an_answer_stay_without(explainer, people):
    impossible = [c.frozen(name) for name in ALL]

    result = explain(explainer, people, 5, ["age"], constraints=impossible)

    assert len(result.missing) == len(people)
    assert len(result.anonymous.frame) == len(result.anonymous.measures) == 0
    assert len(result.anonymous.cells) == 0


def test_a_value_that_training_never_held_is_widened_too(explainer, people):
    person = people.head(1).assign(age=93, amount=99_999)

    result = explain(explainer, person, 5, ["age", "home"])

    ((row, cells, measures),) = answers_of(result)
    assert all(fits(cell, row[name])[0] for name, cell in cells.items())
    assert measures["crowd"] == count(cells) >= 5


@pytest.mark.parametrize(
    ("wanted", "error", "message"),
    [
        ({"anonymity": 1}, ParameterError, "anonymity must be a whole number from 2"),
        ({"anonymity": N_TRAIN + 1}, ParameterError, "more people than training has: 300"),
        ({"anonymity": 2.5}, ParameterError, "got 2.5"),
        ({"anonymity": None}, ParameterError, "anonymity is None"),
        ({"training": None}, ParameterError, "anonymity needs training: pass the rows"),
        ({"quasi_identifiers": None}, ParameterError, "anonymity needs quasi_identifiers"),
        ({"quasi_identifiers": "age"}, SchemaError, r"must be a list of column names"),
        ({"quasi_identifiers": ["agee"]}, SchemaError, "not in the data: \\['agee'\\]"),
        ({"quasi_identifiers": []}, ParameterError, "must name a column that can change"),
        ({"quasi_identifiers": ["sex"]}, ParameterError, "Immutable columns are the person's own"),
        ({"min_pureness": 1.5}, ParameterError, "min_pureness must be a number from 0 to 1"),
        ({"training": TRAIN.drop(columns="age")}, SchemaError, "missing \\['age'\\]"),
        ({"training": TRAIN.assign(age=7)}, SchemaError, "300 of 300 rows with a value of 'age'"),
    ],
)
def test_errors_say_what_to_do(explainer, people, wanted, error, message):
    given = {"anonymity": 5, "quasi_identifiers": ["age"], "training": TRAIN} | wanted

    with pytest.raises(error, match=message):
        explainer.explain(people, **given)


def test_without_anonymity_there_is_none(explainer, people):
    assert explainer.explain(people.head(1)).anonymous is None


def test_other_kinds_of_frames_come_back_as_they_came(people):
    polars = pytest.importorskip("polars")
    names = ["sex", "age", "amount", "home"]
    train = polars.from_pandas(TRAIN[names])

    def score(frame):
        return frame["age"] * 20 - frame["amount"] / 4

    explainer = fitted(lambda frame: score(frame).to_numpy(), train=train)
    result = explain(explainer, polars.from_pandas(people[names]), 5, ["age", "home"], train)

    assert isinstance(result.anonymous.frame, polars.DataFrame)
    assert result.anonymous.frame["age"].dtype == polars.String
    assert result.anonymous.measures.columns[:3] == ["factual", "rank", "crowd"]
    inside = result.to_pandas().anonymous
    assert inside.frame["age"].tolist() == result.anonymous.frame["age"].to_list()


def test_some_people_of_a_result_have_their_own_cells(explainer, people):
    result = explain(explainer, people, 5, ["age", "home"])
    some = number_people(take_people(result, np.array([1, 4])), np.array([10, 40]))

    assert some.anonymous.frame.index.equals(some.frame.index)
    assert some.anonymous.measures.index.equals(some.frame.index)
    assert some.anonymous.cells["factual"].tolist() == [10, 10, 40, 40]
    label = people.index[4]
    theirs = result.anonymous.cells[result.anonymous.cells["factual"] == label]
    assert some.anonymous.cells["text"].tolist()[2:] == theirs["text"].tolist()


def test_the_public_name():
    assert mcce.AnonymousAnswers.__name__ == "AnonymousAnswers"
