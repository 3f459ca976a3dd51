"""Frames of another kind meet constraints, reasons, robustness and saved files."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from bank import EDUCATION, bank, score
from mcce import MCCE, load
from mcce import constraints as c

pl = pytest.importorskip("polars", reason="polars is not installed")
pytest.importorskip("narwhals", reason="narwhals is not installed")
pytestmark = pytest.mark.filterwarnings("ignore::mcce.McceWarning")


def as_polars(frame):
    converted = frame.assign(education=frame["education"].astype(object)).astype(
        {"housing": object, "sex": object}
    )
    education = pl.Series("education", converted["education"].tolist(), dtype=pl.Enum(EDUCATION))
    others = pl.from_pandas(converted.drop(columns="education"))
    return others.with_columns(education).select(frame.columns.tolist())


def score_polars(frame):
    assert isinstance(frame, pl.DataFrame)
    converted = frame.to_pandas()
    converted["education"] = pd.Categorical(
        converted["education"].astype(str), EDUCATION, ordered=True
    )
    return score(converted)


TRAIN, PEOPLE = bank(400), bank(40, seed=1)
RULES = [
    c.only_up("education"),
    c.change("salary", at_most="30 %"),
    c.frozen("age", where="years > 15"),
    c.relation("works from 16 on", "years <= age - 16"),
    c.step("years", 2),
]


def fitted(rules, predictor=score_polars, train=None):
    made = MCCE(predictor, (0.8, 10), immutable=["sex"], constraints=rules, random_state=0)
    return made.set_params(n_samples=150).fit(as_polars(TRAIN) if train is None else train)


def test_constraints_mean_the_same_in_polars():
    ours = fitted(RULES).explain(as_polars(PEOPLE))
    theirs = fitted(RULES, score, TRAIN).explain(PEOPLE)

    assert ours.frame["salary"].to_list() == pytest.approx(
        theirs.frame["salary"].tolist(), nan_ok=True
    )
    assert ours.frame["education"].to_list() == theirs.frame["education"].tolist()
    assert ours.people["reason"].to_list() == theirs.people["reason"].tolist()


def test_functions_of_users_are_given_the_kind_they_know():
    seen = []

    def old(people):
        seen.append(type(people))
        return people["age"] > 40

    def sound(rows):
        seen.append(type(rows))
        return (rows["years"] <= rows["age"] - 16).to_numpy()

    result = fitted([c.frozen("salary", where=old), c.relation("sound", sound)]).explain(
        as_polars(PEOPLE)
    )

    assert set(seen) == {pl.DataFrame}
    assert (result.frame["years"] <= result.frame["age"] - 16).all()


def test_what_to_lift_how_firm_an_answer_is_and_ranges_come_in_polars_too():
    explainer = fitted([c.frozen("salary"), c.max_changes(2)])
    people = as_polars(PEOPLE)
    result = explainer.explain(people)

    lifted, firm = explainer.relax(people), explainer.robustness(result)
    ranges = explainer.ranges(result)

    assert isinstance(lifted, pl.DataFrame)
    assert set(lifted["lifted"]) == {"frozen salary", "max_changes 2"}
    assert isinstance(firm, pl.DataFrame)
    assert len(firm) == len(result.frame)
    assert firm["valid"].all()
    assert isinstance(ranges, pl.DataFrame)
    assert len(ranges) == len(result.changes())


def test_a_saved_explainer_takes_and_gives_the_kind_it_was_fitted_on(tmp_path):
    explainer, people = fitted(RULES), as_polars(PEOPLE)
    explainer.save(tmp_path / "bank.mcce")

    again = load(tmp_path / "bank.mcce", score_polars).explain(people)

    assert again.frame.equals(explainer.explain(people).frame)
    assert again.frame.schema == people.schema


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_dates_of_people_in_another_unit_are_as_far_away(unit):
    chance = np.random.default_rng(0)
    days = pd.Timestamp("2024-01-01") + pd.to_timedelta(chance.integers(0, 400, 200), unit="D")
    train = pd.DataFrame({"since": days.astype("datetime64[ns]"), "x": chance.normal(size=200)})
    late = lambda frame: (frame["since"] > pd.Timestamp("2024-12-01")).to_numpy(dtype=float)
    explainer = MCCE(late, (1, 1), n_samples=100, random_state=0).fit(train)
    people = train.head(20).astype({"since": f"datetime64[{unit}]"})

    far = explainer.explain(people)
    limited = explainer.explain(people, constraints=[c.change("since", at_most="300 days")])

    pd.testing.assert_frame_equal(far.measures, explainer.explain(train.head(20)).measures)
    before = people["since"].to_numpy()[limited.owner]
    assert (limited.frame["since"].to_numpy() - before <= np.timedelta64(300, "D")).all()


def test_ordered_levels_may_be_texts_or_objects():
    train = TRAIN.assign(
        education=pd.Categorical(
            TRAIN["education"], pd.Index(EDUCATION, dtype=object), ordered=True
        )
    )
    explainer = MCCE(score, (0.8, 10), n_samples=50, random_state=0).fit(train)

    texts = PEOPLE.assign(
        education=pd.Categorical(
            PEOPLE["education"], pd.Index(EDUCATION, dtype="str"), ordered=True
        )
    )

    assert explainer.explain(texts).frame["education"].dtype == texts["education"].dtype
