"""Anonymous answers: crowds and pureness against brute force, round ends, errors, letters."""

from __future__ import annotations

import itertools
import math
import re
import warnings
from functools import cache

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bills import bills, value
from mcce import MCCE, Interval, McceWarning, ParameterError, SchemaError
from mcce import constraints as c
from mcce.privacy import anonymize
from mcce.report import Labels, write_letters, write_report

N_TRAIN = 300
ALL = ["age", "amount", "rate", "home", "class", "since", "open"]
AT_LEAST_500 = Interval(500, np.inf)


@cache
def training():
    chance = np.random.default_rng(3)
    days = pd.to_timedelta(chance.integers(0, 7000, N_TRAIN), "D")
    classes = ["low", "middle", "high", "top"]
    return pd.DataFrame(
        {
            "sex": chance.choice(["f", "m"], N_TRAIN),
            "age": chance.integers(18, 75, N_TRAIN),
            "amount": np.round(chance.gamma(2, 1500, N_TRAIN)).astype(int) + 200,
            "rate": chance.choice([0.05, 0.1, 0.15, 0.2, np.nan], N_TRAIN),
            "home": chance.choice(["own", "rent", "free"], N_TRAIN, p=[0.6, 0.3, 0.1]),
            "class": pd.Categorical(chance.choice(classes, N_TRAIN), classes, ordered=True),
            "since": pd.Timestamp("2001-01-01") + days,
            "open": pd.to_timedelta(chance.integers(1, 90, N_TRAIN), "D"),
        }
    )


def points(frame):
    return (
        frame["age"] * 20
        - frame["amount"] / 4
        + 300 * (frame["home"] == "own")
        + 200 * (frame["class"] > "middle").astype(int)
        + 500 * frame["rate"].isna()
    )


def fitted(predictor=points, desired=AT_LEAST_500, train=None, **settings):
    settings = {"immutable": ["sex"], "n_samples": 50, "random_state": 0} | settings
    with warnings.catch_warnings():
        # Small tables have columns that look like row numbers.
        warnings.simplefilter("ignore", McceWarning)
        return MCCE(predictor, desired, **settings).fit(training() if train is None else train)


def explain(explainer, people, k, names, train=None, constraints=None, **more):
    train = training() if train is None else train
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", McceWarning)
        result = explainer.explain(people, constraints=constraints)
    wanted = {"anonymity": k, "quasi_identifiers": names, "constraints": constraints}
    return anonymize(explainer, result, train, **wanted, **more)


@pytest.fixture(scope="module")
def explainer():
    return fitted()


@pytest.fixture(scope="module")
def people():
    return training()[points(training()) < 500].head(8)


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


def count(cells, train=None):
    train = training() if train is None else train
    inside = [fits(cell, train[name]) for name, cell in cells.items()]
    return int(np.all(inside, axis=0).sum())


CASES = {
    "number": (2, ["amount"]),
    "level": (30, ["age", "home"]),
    "missing": (299, ["rate"]),
    "date": (30, ["class", "since"]),
    "duration": (2, ["open", "sex", "age"]),
    "all": (30, ALL),
}


@pytest.mark.parametrize("name", CASES)
def test_every_crowd_is_large_enough_in_the_raw_training_rows(explainer, people, name):
    k, names = CASES[name]
    result = explain(explainer, people.head(2), k, names, min_pureness=0.5)

    assert len(result.anonymous.frame) == len(result.frame) > 0
    for row, cells, measures in answers_of(result):
        assert list(cells) == [name for name in training() if name in names]
        assert measures["crowd"] == count(cells) >= k
        assert all(fits(cell, row[name])[0] for name, cell in cells.items())


@settings(max_examples=10)
@given(
    k=st.integers(2, 40),
    seed=st.integers(0, 1000),
    n_levels=st.integers(1, 6),
    spread=st.sampled_from([0.01, 3.0, 100.0, 12345.0]),
    missing=st.booleans(),
)
def test_crowds_of_any_small_table(k, seed, n_levels, spread, missing):
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


def test_everything_is_widened_if_all_training_people_must_fit(explainer, people):
    result = explain(explainer, people.head(1), N_TRAIN, ALL)

    assert (result.anonymous.measures["crowd"] == N_TRAIN).all()
    assert (result.anonymous.frame[ALL] == "any").all(axis=None)
    assert (result.anonymous.frame["sex"] == result.frame["sex"]).all()


def test_values_that_enough_people_have_stay_as_they_are(explainer, people):
    result = explain(explainer, people, 20, ["home"])

    assert result.anonymous.frame["home"].isin(["own", "rent", "free"]).all()
    assert (result.anonymous.measures["pureness"] == 1).all()
    assert (result.anonymous.cells["kind"] == "value").all()


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

    seen = set()
    for row, cells, measures in answers_of(result):
        expected, n_rows = brute_force_pureness(row, cells, training(), points, AT_LEAST_500)
        assert n_rows <= 1000
        assert measures["pureness"] == pytest.approx(np.floor(100 * expected + 1e-9) / 100)
        seen.add(measures["pureness"])
    assert len(seen) > 1


def test_pureness_of_many_combinations_is_estimated_within_its_error(explainer, people):
    result = explain(explainer, people.head(4), 100, ["age", "amount"], min_pureness=0.0)

    sampled = 0
    for row, cells, measures in answers_of(result):
        expected, n_rows = brute_force_pureness(row, cells, training(), points, AT_LEAST_500)
        if n_rows > 1000:
            sampled += 1
            # Of a share near 0 or 1, the sample may have none.
            error = max(math.sqrt(expected * (1 - expected) / 1000), 1 / 1000)
            assert abs(measures["pureness"] + 0.005 - expected) <= 4 * error + 0.005
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
    assert measures["pureness"].tolist() == [0.16]
    assert measures["pure"].tolist() == [False]


def test_a_range_stays_on_the_side_of_the_answer():
    train = pd.DataFrame({"a": np.arange(100), "b": 0})
    explainer = fitted(lambda frame: frame["a"], (50, 99), train, immutable=[])

    anonymous = explain(explainer, train.iloc[[47]], 10, ["a"], train).anonymous

    assert anonymous.frame["a"].tolist() == ["50 to 60"]
    assert anonymous.measures[["pureness", "n_blurred"]].to_numpy().tolist() == [[1.0, 0.0]]


def test_answers_are_the_same_alone_and_among_others(explainer, people):
    names = ["age", "amount", "rate", "home"]
    people = people.head(4)
    together = explain(explainer, people.iloc[::-1], 8, names).anonymous
    for at in (0, 2):
        alone = explain(explainer, people.iloc[[at]], 8, names).anonymous

        label = people.index[at]
        pd.testing.assert_frame_equal(alone.frame, together.frame.loc[[label]])
        pd.testing.assert_frame_equal(alone.measures, together.measures.loc[[label]])


def test_the_order_of_training_rows_does_not_matter(explainer, people):
    one = explain(explainer, people, 8, ["age", "amount"]).anonymous
    other = explain(explainer, people, 8, ["age", "amount"], training().iloc[::-1]).anonymous

    pd.testing.assert_frame_equal(one.frame, other.frame)
    pd.testing.assert_frame_equal(one.measures, other.measures)


def test_ends_are_round_and_say_nothing_beyond_training(explainer, people):
    cells = explain(explainer, people.head(3), 15, ["age", "amount", "rate", "since", "open"])
    cells = cells.anonymous.cells

    ranges = cells[cells["kind"] == "range"]
    ages = ranges[ranges["feature"] == "age"]
    assert set(ages["low"].dropna().astype(int) % 5) | set(
        ages["high"].dropna().astype(int) % 5
    ) == {0}
    amounts = ranges[ranges["feature"] == "amount"]
    ends = pd.concat([amounts["low"], amounts["high"]]).dropna()
    assert not (ends.astype(int) % 50).any()
    assert not amounts["text"].str.contains(str(training()["amount"].max())).any()
    assert not amounts["text"].str.contains(f" {training()['amount'].min()}").any()
    dates = ranges[ranges["feature"] == "since"]
    for end in pd.concat([dates["low"], dates["high"]]).dropna():
        assert end.day == 1 or (end + pd.Timedelta(1, "D")).day == 1


@pytest.mark.parametrize("cell", ["rate", "home"])
def test_missing_is_a_level(cell):
    train = pd.DataFrame(
        {"rate": [np.nan] * 6 + [1.0, 2.0, 3.0] * 4, "home": [None] * 6 + ["own"] * 12}
    )
    # Without a constraint, nothing becomes missing.
    rule = c.not_up("rate") if cell == "rate" else c.levels("home", ["own", None])
    explainer = fitted(
        lambda frame: frame[cell].isna(), (1, 1), train, immutable=[], constraints=[rule]
    )

    few = explain(explainer, train.iloc[[-1]], 6, [cell], train).anonymous
    many = explain(explainer, train.iloc[[-1]], 7, [cell], train).anonymous

    assert few.frame[cell].tolist() == ["missing"]
    assert few.measures["crowd"].tolist() == [6]
    assert many.frame[cell].tolist() == ["any"]
    assert many.measures["crowd"].tolist() == [18]
    assert many.cells["missing"].tolist() == [True]


def test_k_people_fit_what_is_released_also_by_what_cannot_change(people):
    k, names = 20, ["age", "amount", "sex"]
    explainer = fitted(immutable=["sex", "age", "since"])

    result = explain(explainer, people, k, names)

    anonymous = result.anonymous
    assert list(anonymous.quasi_identifiers) == ["sex", "age", "amount"]
    for number, (_, cells, measures) in enumerate(answers_of(result)):
        # An attacker knows these columns of everybody, and looks for who fits what is released.
        suspects = np.ones(N_TRAIN, dtype=bool)
        for name in names:
            told = anonymous.frame[name].iloc[number]
            cell = cells.get(name, {"kind": "value", "levels": [told], "missing": False})
            suspects &= fits(cell, training()[name])
        assert measures["crowd"] == suspects.sum() >= k
        assert measures["pureness"] > 0


def test_only_columns_that_cannot_change_are_widened_too(people):
    result = explain(fitted(immutable=["sex", "age"]), people, 30, ["age"])

    assert (result.anonymous.measures[["pureness", "pure"]] == 1).all(axis=None)
    assert (result.anonymous.measures["crowd"] >= 30).all()
    assert result.anonymous.frame["amount"].equals(result.frame["amount"])


def test_measures_tell_neither_the_ends_nor_the_number_of_training_values():
    train = pd.DataFrame({"x": [1, *range(100, 200), 500], "y": [0, 1] * 51})
    # The ends are others, and inside of each ten one value stands twice.
    others = train.assign(x=[3, *(at - (at % 10 == 7) for at in range(100, 200)), 510])
    released = []
    for rows in (train, others):
        explainer = fitted(lambda frame: frame["y"], (1, 1), rows, immutable=[])
        exact = explainer.explain(train.iloc[[20, 60]])
        released.append(
            anonymize(explainer, exact, rows, anonymity=6, quasi_identifiers=["x"]).anonymous
        )

    one, other = released
    assert one.frame["x"].tolist() == other.frame["x"].tolist() == ["115 to 120", "155 to 160"]
    pd.testing.assert_frame_equal(one.measures, other.measures)
    pd.testing.assert_frame_equal(one.cells, other.cells)
    names = ["crowd", "pureness", "pureness_of_changes", "pure", "n_blurred"]
    assert list(one.measures) == names


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
        assert measures["pureness"] > 0


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


def test_errors_say_what_to_do(explainer, people):
    train, result = training(), explainer.explain(people)
    for wanted, error, message in (
        ({"anonymity": 1}, ParameterError, "anonymity must be a whole number from 2"),
        ({"anonymity": N_TRAIN + 1}, ParameterError, "more people than training has: 300"),
        ({"anonymity": 2.5}, ParameterError, "got 2.5"),
        ({"training": None}, SchemaError, "NoneType"),
        ({"quasi_identifiers": None}, ParameterError, "must name at least one column"),
        ({"explainer": points}, ParameterError, "explainer must be a fitted MCCE"),
        ({"result": people}, ParameterError, "result must be what explain returned"),
        ({"quasi_identifiers": "age"}, SchemaError, "must be a list of column names"),
        ({"quasi_identifiers": ["agee"]}, SchemaError, r"not in the data: \['agee'\]"),
        ({"quasi_identifiers": []}, ParameterError, "must name at least one column"),
        ({"min_pureness": 1.5}, ParameterError, "min_pureness must be a number from 0 to 1"),
        ({"training": train.drop(columns="age")}, SchemaError, r"missing \['age'\]"),
        ({"training": train.assign(age=7)}, SchemaError, "300 of 300 rows with a value of 'age'"),
    ):
        given = {"explainer": explainer, "result": result, "training": train} | wanted
        with pytest.raises(error, match=message):
            anonymize(**{"anonymity": 5, "quasi_identifiers": ["age"]} | given)


def test_other_kinds_of_frames_come_back_as_they_came(people):
    polars = pytest.importorskip("polars")
    names = ["sex", "age", "amount", "home"]
    train = polars.from_pandas(training()[names])

    def score(frame):
        return frame["age"] * 20 - frame["amount"] / 4

    explainer = fitted(lambda frame: score(frame).to_numpy(), train=train)
    result = explain(explainer, polars.from_pandas(people[names]), 5, ["age", "home"], train)

    assert isinstance(result.anonymous.frame, polars.DataFrame)
    assert result.anonymous.frame["age"].dtype == polars.String
    assert result.anonymous.measures.columns[:3] == ["factual", "rank", "crowd"]
    inside = result.to_pandas().anonymous
    assert inside.frame["age"].tolist() == result.anonymous.frame["age"].to_list()


COLUMNS = {
    # As floats of 64 bits, 0.3 would be beyond the end of a range up to 0.3.
    "float32": lambda: np.array([0.1, 0.2, 0.3, 0.7], np.float32),
    "int64": lambda: 10**17 + np.array([1, 4, 6, 9]),
    "zoned": lambda: pd.date_range("2001-03-04", periods=4, freq="400D", tz="Europe/Oslo"),
    "hours": lambda: pd.to_datetime([f"2024-05-01 {hour}:15" for hour in ("08", "09", "17", "19")]),
    "duration": lambda: pd.to_timedelta([3, 11, 24, 80], "D"),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_ends_of_ranges_are_compared_as_the_column_is(name):
    values = COLUMNS[name]()
    train = pd.DataFrame({"x": np.repeat(values, 10), "y": [0, 1] * 20})
    explainer = fitted(lambda frame: frame["y"], (1, 1), train, immutable=[])
    person = train[(train["x"] == values[1]) & (train["y"] == 0)].head(1)

    result = explain(explainer, person, 21, ["x"], train)

    ((_, cells, measures),) = answers_of(result)
    ends = [
        values[at]
        if cells["x"][end] is None
        else pd.Series([cells["x"][end]]).astype(train["x"].dtype)[0]
        for at, end in ((0, "low"), (-1, "high"))
    ]
    assert measures["crowd"] == train["x"].between(*ends).sum() >= 21


# Letters and reports.
def told(predictor, desired, person, names, k=10, **more):
    """The text of the letter to one person, whose answer is anonymous."""
    explainer = fitted(predictor, desired, immutable=None, mutable=names, n_samples=500)
    result = explain(explainer, person, k, names, **more)
    return write_letters(explainer, result).answers["text"].iloc[0], result


@pytest.fixture(scope="module")
def by_age():
    explainer = fitted(
        lambda rows: rows["age"],
        Interval(60, 99),
        mutable=["age", "home"],
        immutable=None,
        search="paper",
    )
    young = training()[training()["age"] < 40].head(4)
    return explainer, explain(explainer, young, 10, ["age", "home"])


def test_letters_tell_ranges_and_never_the_exact_number(by_age):
    explainer, result = by_age

    letters = write_letters(explainer, result)
    exact = write_letters(explainer, explainer.explain(result.factuals)).answers["text"]

    for text in letters.answers["text"]:
        assert re.search(r"if age had been (\d\d to|at least) \d\d instead of ", text)
    pd.testing.assert_frame_equal(letters.frame, result.anonymous.frame)
    assert not exact.str.contains(r"at least|\d to ", regex=True).any()


@pytest.mark.slow
def test_a_report_shows_the_anonymous_answer_and_its_crowd(by_age, tmp_path):
    pytest.importorskip("jinja2")
    explainer, result = by_age

    write_report(explainer, result, tmp_path / "report.html", Labels.make({"language": "nb"}))

    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert page.count("Anonym plan: ") == len(result.frame)
    for crowd in result.anonymous.measures["crowd"]:
        assert f" {crowd} " in page


def test_a_letter_says_which_share_of_the_values_would_do():
    person = training()[training()["age"] < 40].head(1)

    text, result = told(
        lambda rows: rows["age"], Interval(60, 62), person, ["age"], 80, min_pureness=0.0
    )

    share = result.anonymous.measures["pureness_of_changes"].iloc[0]
    assert 0 < share < 0.5
    assert f"This holds for about {round(100 * share)}\N{NO-BREAK SPACE}% of these values." in text


def test_a_change_that_can_no_longer_be_seen_is_told_as_such():
    person = training()[training()["age"] < 40].head(1)

    text, result = told(
        lambda rows: rows["age"], Interval(60, 99), person, ["age"], N_TRAIN, min_pureness=0.0
    )

    assert result.anonymous.measures["n_blurred"].tolist() == [1]
    assert "if age had been different." in text


def test_levels_and_dates_are_told_without_the_persons_own():
    renting = training()[training()["home"] == "rent"].head(1)
    late = training()[training()["since"] > "2015-01-01"].head(1)

    levels, result = told(lambda rows: rows["home"] != "rent", (1, 1), renting, ["home"], 200)
    dates, _ = told(lambda rows: rows["since"] < "2012-01-01", (1, 1), late, ["since"])

    assert result.anonymous.frame["home"].tolist() == ["free or own"]
    assert "home had been “free” or “own” instead of “rent”" in levels
    assert re.search(r"since had been (\S+ to|at most) \d{4}-\d\d-\d\d instead of", dates)
