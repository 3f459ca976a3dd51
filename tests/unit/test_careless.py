"""What a hurried user does, end to end: it works, or a clear error says why not."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import DecisionTreeClassifier

from mcce import MCCE, Interval, McceWarning, PredictorError, SchemaError, Search, TreeChain

N_TRAIN = 24


def score(frame):
    return frame["points"] / N_TRAIN


def explainer(predictor=score, desired=(0.5, 1.0), **settings) -> MCCE:
    settings = {"search": "paper", "n_samples": 30, "random_state": 0} | settings
    return MCCE(predictor, desired, **settings)


@pytest.fixture
def train() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "points": np.arange(N_TRAIN),
            "sex": ["f", "m"] * 12,
            "size": pd.Series(["s", "m", "l"] * 8, dtype="category"),
            "since": pd.date_range("2024-01-01", periods=N_TRAIN),
        }
    )


def test_an_empty_frame_gets_an_empty_result_without_a_predictor_call(train):
    n_rows_scored = []
    model = explainer(lambda frame: n_rows_scored.append(len(frame)) or score(frame)).fit(train)
    n_rows_scored.clear()

    result = model.explain(train.head(0))

    assert n_rows_scored == []
    assert result.frame.index.names == ["factual", "rank"]
    for frame in (result.frame, result.factuals, result.nearest_misses):
        pd.testing.assert_series_equal(frame.dtypes, train.dtypes)
    somebody = model.explain(train.head(1))
    assert somebody.frame.index.tolist() == [(0, 1)]
    pd.testing.assert_series_equal(result.people.dtypes, somebody.people.dtypes)
    pd.testing.assert_series_equal(result.measures.dtypes, somebody.measures.dtypes)
    assert list(result.changes()) == list(somebody.changes())
    assert result.summary()["n_factuals"].tolist() == [0]
    assert len(result.missing) == len(result.owner) == result.n_evaluated == 0


def test_people_with_the_desired_decision_are_reported_as_such(train):
    result = explainer().fit(train).explain(train.tail(3))

    assert result.people["status"].tolist() == ["already desired"] * 3
    assert result.frame.empty
    assert result.changes().empty
    assert result.n_evaluated == 0


def test_a_decision_that_no_training_row_has_is_a_reason_and_not_an_error(train):
    with pytest.warns(McceWarning, match="No training row has the desired decision") as said:
        model = explainer(desired=(2.0, 3.0)).fit(train)
    assert said[0].filename == __file__

    with pytest.warns(McceWarning, match="2 of 2 people have no counterfactual"):
        result = model.explain(train.head(2))

    assert model.n_desired_ == 0
    assert result.missing["reason"].tolist() == ["No training row has the desired decision."] * 2


def test_a_row_of_a_frame_is_refused_with_the_brackets_to_use(train):
    with pytest.raises(SchemaError, match=r"got a Series.*frame\.iloc\[\[0\]\]"):
        explainer().fit(train).explain(train.iloc[0])


def test_a_target_left_among_the_columns_shows_in_the_error(train):
    model = DecisionTreeClassifier().fit(train[["points"]], train["points"] > 11)

    with pytest.raises(SchemaError, match=r"trained without the columns \['target'\]"):
        explainer(model, None).fit(train[["points"]].assign(target=1))


def test_labels_given_to_fit_are_ignored_and_later_changes_of_the_data_too(train):
    expected = explainer().fit(train).explain(train.head(3)).frame
    model = explainer().fit(train, ["nonsense"] * 3)
    people = train.head(3).copy()

    train.loc[:, "points"] = -1
    train.loc[:, "sex"] = "x"

    pd.testing.assert_frame_equal(model.explain(people).frame, expected)


def test_fitting_again_forgets_the_first_data(train):
    later = train[["points", "size"]]
    chain = TreeChain(min_samples_leaf=2)
    model = explainer(generator=chain).fit(train[["points", "sex"]])

    model.fit(later)

    assert model.explain(later.head(1)).frame.columns.tolist() == ["points", "size"]
    assert not hasattr(chain, "trees_")


def test_the_answers_of_a_pipeline_can_be_given_back_to_it(train):
    encode = make_column_transformer((OneHotEncoder(), ["sex", "size"]), remainder="passthrough")
    data = train.drop(columns="since")
    pipeline = make_pipeline(encode, DecisionTreeClassifier(random_state=0))
    pipeline.fit(data, np.where(data["points"] > 11, "yes", "no"))
    model = explainer(pipeline, "yes", immutable=["sex"]).fit(data)

    result = model.explain(data.head(4))

    assert pipeline.predict(result.frame).tolist() == ["yes"] * 4
    assert (model.explain(result.frame).people["status"] == "already desired").all()


def test_an_unstable_predictor_is_a_warning_and_its_answers_are_checked():
    train = pd.DataFrame({"points": np.arange(N_TRAIN)})
    chance = np.random.default_rng(0)
    model = explainer(lambda frame: chance.random(len(frame))).fit(train)

    with pytest.warns(McceWarning, match="The predictor is unstable"):
        result = model.explain(train.head(8))

    assert result.n_unstable > 0
    assert result.measures["score"].between(0.5, 1.0).all()


def test_an_interrupt_is_not_swallowed(train):
    def interrupted(frame):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        explainer(interrupted).fit(train)


def test_infinite_scores_are_allowed(train):
    def logit(frame):
        return np.where(frame["points"] > 11, np.inf, -np.inf)

    nothing = Search("paper", max_sparsity=0)
    model = explainer(logit, Interval(0, np.inf), search=nothing).fit(train)

    with pytest.warns(McceWarning, match="no counterfactual") as warned:
        result = model.explain(train.head(2))

    assert warned[0].filename == __file__
    assert result.missing["nearest_score"].tolist() == [np.inf, np.inf]
    assert result.missing["reason"].str.contains("max_sparsity=0").all()


def test_very_few_or_equal_training_rows_are_enough(train):
    for rows in (train.tail(1), train.tail(2), train.iloc[[-1] * 10]):
        result = explainer().fit(rows).explain(train.head(2))

        assert set(result.frame["points"]) <= set(rows["points"])
        assert len(result.frame) == 2


def test_a_column_of_unique_names_is_allowed(train):
    named = train.assign(name=[f"person {i}" for i in range(N_TRAIN)])

    result = explainer().fit(named).explain(named.head(2))

    assert result.frame["name"].isin(named["name"]).all()


def test_a_person_with_missing_values_only_gets_an_answer(train):
    model = explainer(lambda frame: score(frame.fillna({"points": 0}))).fit(train)

    result = model.explain(pd.DataFrame({name: [None] for name in train}))

    assert result.people["status"].tolist() == ["answered"]
    assert result.frame["points"].notna().all()


def test_an_array_may_be_read_only_strided_in_fortran_order_or_of_objects():
    straight = np.arange(24.0).reshape(12, 2)
    locked = straight.copy()
    locked.flags.writeable = False
    strided = np.repeat(straight, 2, axis=0)[::2]

    def predictor(rows):
        return rows[:, 0].astype(float) / N_TRAIN

    expected = explainer(predictor).fit(straight).explain(straight[:3])
    for data in (locked, strided, np.asfortranarray(straight)):
        result = explainer(predictor).fit(data).explain(data[:3])

        pd.testing.assert_frame_equal(result.frame, expected.frame)
    objects = np.array([[3, "f"], [20, "m"]] * 6, dtype=object)
    model = explainer(predictor).fit(objects)
    assert [feature.kind for feature in model.schema_.features] == ["numeric", "categorical"]
    assert model.explain(objects[:2]).frame["x0"].dtype == np.int64


def test_whole_numbers_as_names_are_names_and_not_places():
    data = pd.DataFrame(np.arange(48).reshape(24, 2), columns=[1, 0])

    model = explainer(lambda frame: frame[1] / 48, immutable=[0]).fit(data)

    assert model.schema_.immutable.tolist() == [1]


def test_the_same_person_many_times_gets_the_same_answer(train):
    train.flags.allows_duplicate_labels = False
    once = explainer(n_counterfactuals=2).fit(train)

    result = once.explain(train.iloc[[3]].set_flags(allows_duplicate_labels=True).iloc[[0] * 5])

    assert len(result.frame) == 10
    assert len(result.frame.drop_duplicates()) == 2
    assert len(once.explain(train.head(2)).frame) == 4


def test_a_progress_bar_without_a_terminal_is_silent(train, capsys):
    explainer(verbose=True).fit(train).explain(train.head(2))

    assert capsys.readouterr() == ("", "")


def test_the_error_of_a_predictor_that_needs_arrays_is_quoted(train):
    with pytest.raises(PredictorError, match="failed on 24 rows"):
        explainer(lambda rows: rows[:, 0]).fit(train)
