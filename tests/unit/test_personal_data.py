"""No exception, warning or log shows a cell, a training level or the label of a row.

Own arguments may be quoted, so no case passes planted values where an argument is quoted, except
where a column or a frame is passed by mistake.
"""

from __future__ import annotations

import decimal
import logging
import traceback
import warnings
import zipfile
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

import mcce
from mcce import MCCE, Counterfactuals, Schema, Search, constraints, metrics
from mcce.predictors import Remote, make_decision

WORD, NUMBER, DAY = "Qvortrup", 918273.625, "1987-06-05"
# Parts of what is planted, as any repr would show them.
TRACES = (WORD, WORD.upper(), WORD.lower(), "918273", "9.18273", DAY, "1987, 6, 5", "5498496")
LEVELS = [f"{WORD} clerk", f"{WORD} pilot", f"{WORD} judge"]
N_TRAIN = 60


def training() -> pd.DataFrame:
    """Numbers, levels and dates, all planted; the labels of the rows are, too."""
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "age": rng.integers(20, 60, N_TRAIN),
            "wage": NUMBER + rng.integers(0, 9, N_TRAIN) / 8,
            "job": rng.choice(LEVELS, N_TRAIN),
            "rank": pd.Categorical(rng.choice(LEVELS, N_TRAIN), LEVELS, ordered=True),
            "since": pd.to_datetime(DAY) + pd.to_timedelta(rng.integers(0, 3, N_TRAIN), unit="h"),
        },
        index=[f"{WORD} {row}" for row in range(N_TRAIN)],
    )


def predictor(frame: pd.DataFrame) -> np.ndarray:
    """Accepts everybody of 40 or more."""
    return np.asarray(frame["age"], dtype=float) / 80


DATA = training()
# Two of them who are declined.
PEOPLE = DATA[predictor(DATA) < 0.5].head(2)


def explainer(f: Any = predictor, desired: Any = (0.5, 1.0), **settings: Any) -> MCCE:
    return MCCE(f, desired, **{"random_state": 0, "n_samples": 20} | settings)


def fitted(**settings: Any) -> MCCE:
    return explainer(**settings).fit(DATA)


def told_by(call: Any, caplog: Any) -> str:
    """All that a call tells by an exception, with its whole chain, by warnings and by logs."""
    texts = []
    with caplog.at_level(logging.DEBUG), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            call()
        except Exception as error:
            texts += ["".join(traceback.format_exception(error)), str(error), repr(error)]
            texts += [str(getattr(error, "__notes__", ""))]
    texts += [str(warning.message) for warning in caught]
    assert texts, "the call neither raised nor warned"
    return "\n".join([*texts, caplog.text])


def traces_in(text: str) -> list[str]:
    """What of the planted data a text shows, with the lines that do, less quoted source code."""
    lines = [line for line in text.splitlines() if not line.startswith("    ")]
    return [line for line in lines if any(trace in line for trace in TRACES)]


def raising(message):
    def fails(frame):
        error = ValueError(message)
        error.add_note(message)
        raise error from KeyError(message)

    return fails


def fit(**columns):
    return explainer().fit(DATA.assign(**columns))


def explain(**columns):
    return fitted().explain(PEOPLE.assign(**columns))


def numbered(*cells):
    return np.resize(np.array(cells, dtype=object), N_TRAIN)


SCHEMA = {
    "a row": lambda: fitted().explain(PEOPLE.iloc[0]),
    "a column": lambda: explainer().fit(DATA["job"]),
    "a list of rows": lambda: explainer().fit(DATA.to_numpy().tolist()),
    "an array for a frame": lambda: fitted().explain(PEOPLE.to_numpy()),
    "too many names": lambda: explainer().fit(DATA.to_numpy(), feature_names=["a"]),
    "names by cells": lambda: explainer().fit(DATA.to_numpy(), feature_names=DATA),
    "immutable: unknown": lambda: explainer(immutable=["pay"]).fit(DATA),
    "immutable: a column": lambda: explainer(immutable=DATA["job"]).fit(DATA),
    "immutable: a frame": lambda: explainer(immutable=DATA).fit(DATA),
    "kinds: a frame": lambda: explainer(kinds=DATA).fit(DATA),
    "kinds: words as numbers": lambda: explainer(kinds={"job": "numeric"}).fit(DATA),
    "mixed levels": lambda: explainer(kinds={"job": "categorical"}).fit(
        DATA.assign(job=numbered(WORD, NUMBER))
    ),
    "lists as levels": lambda: explainer(kinds={"job": "categorical"}).fit(
        DATA.assign(job=pd.Series([[WORD]] * N_TRAIN, index=DATA.index))
    ),
    "mixed objects": lambda: fit(job=numbered(WORD, NUMBER)),
    "decimals": lambda: fit(wage=numbered(decimal.Decimal("918273.625"))),
    "infinity": lambda: fit(wage=np.resize([NUMBER, np.inf], N_TRAIN)),
    "a range too wide": lambda: fit(wage=np.resize([NUMBER * 1e302, -NUMBER * 1e302], N_TRAIN)),
    "another column": lambda: explain(more=WORD),
    "words for numbers": lambda: explain(wage=WORD),
    "numbers for words": lambda: explain(job=NUMBER),
    "objects for numbers": lambda: explain(wage=np.array([WORD, NUMBER], dtype=object)),
    "infinity to explain": lambda: explain(wage=[NUMBER, np.inf]),
    "another level of an order": lambda: explain(
        rank=pd.Categorical([f"{WORD} chief"] * 2, [*LEVELS[1:], f"{WORD} chief"], ordered=True)
    ),
    "words for an order": lambda: explain(rank=[f"{WORD} chief"] * 2),
    "dates with a zone": lambda: explain(since=PEOPLE["since"].dt.tz_localize("UTC")),
    "lists for words": lambda: explain(job=pd.Series([[WORD]] * 2, index=PEOPLE.index)),
    "large integers": lambda: (
        explainer().fit(DATA.assign(wage=2**53 + 918273)).explain(PEOPLE.assign(wage=NUMBER))
    ),
}

PREDICTORS = {
    "raises": lambda: explainer(raising(WORD)).fit(DATA),
    "casts": lambda: explainer(lambda frame: frame["job"].astype(float)).fit(DATA),
    "returns NaN": lambda: explainer(lambda frame: frame["age"].where(frame["age"] > 30)).fit(DATA),
    "returns words": lambda: explainer(lambda frame: frame["job"]).fit(DATA),
    "returns rows": lambda: explainer(lambda frame: frame).fit(DATA),
    "returns ragged lists": lambda: explainer(
        lambda frame: [[WORD], *[[WORD, WORD]] * (len(frame) - 1)]
    ).fit(DATA),
    "returns fractions as labels": lambda: explainer(lambda frame: frame["wage"], ["yes"]).fit(
        DATA
    ),
    "returns lists as labels": lambda: explainer(
        lambda frame: pd.Series([[WORD]] * len(frame)), ["yes"]
    ).fit(DATA),
    "raises later": lambda: fitted(
        f=lambda frame: predictor(frame) if len(frame) == N_TRAIN else raising(WORD)(frame)
    ).explain(PEOPLE),
    "is unfitted": lambda: explainer(LogisticRegression()).fit(DATA),
    "is remote and away": lambda: explainer(Remote("http://127.0.0.1:9/", retries=0)).fit(DATA),
    "is remote, with infinity": lambda: Remote("http://127.0.0.1:9/").predict(
        pd.DataFrame({"wage": [NUMBER, np.inf]})
    ),
    "changes its mind": lambda: fitted(f=Fickle()).explain(PEOPLE),
    "never agrees": lambda: fitted(desired=(2.0, 3.0)).explain(PEOPLE),
}


class Fickle:
    """Accepts a row once."""

    def __init__(self):
        self.seen = set()

    def __call__(self, frame):
        keys = [str(row) for row in frame.to_numpy().tolist()]
        again = np.array([key in self.seen for key in keys])
        self.seen.update(keys)
        return np.where(again, 0.0, predictor(frame))


def bound(*rules, **settings):
    return fitted(constraints=list(rules), **settings).explain(PEOPLE)


CONSTRAINTS = {
    "no order": lambda: bound(constraints.only_up("job")),
    "unknown level": lambda: bound(constraints.levels("job", ["clerc"])),
    "numbers of words": lambda: bound(constraints.between("job", 1, 2)),
    "a length of dates": lambda: bound(constraints.change("since", at_most=5)),
    "a function that raises": lambda: bound(constraints.relation("fine", raising(WORD))),
    "a function of words": lambda: bound(constraints.relation("fine", lambda f: f["job"])),
    "a condition of words": lambda: bound(constraints.relation("fine", "job > 3")),
    "a condition of ranks": lambda: bound(constraints.relation("fine", "rank < 'clerk'")),
    "a condition of dates": lambda: bound(constraints.relation("fine", "since > 'soon'")),
    "a condition without end": lambda: bound(constraints.relation("fine", "wage + 1")),
    "frozen where words": lambda: bound(constraints.frozen("job", where=PEOPLE["job"])),
    "frozen where others": lambda: bound(
        constraints.frozen("job", where=pd.Series([True, False], index=[WORD, f"{WORD}2"]))
    ),
    "frozen where too many": lambda: bound(constraints.frozen("job", where=DATA["age"] > 3)),
    "frozen by a function": lambda: bound(constraints.frozen("job", where=raising(WORD))),
    "a frame": lambda: fitted(constraints=DATA).explain(PEOPLE),
    "a list of cells": lambda: fitted(constraints=[DATA["job"]]).explain(PEOPLE),
    "levels of a frame": lambda: bound(constraints.levels("job", DATA.to_numpy())),
    "nothing is left": lambda: bound(constraints.relation("fine", "age > 999")),
}


def saved(tmp_path, **settings):
    path = tmp_path / "it.mcce"
    fitted(**settings).save(path)
    return path


def edited(tmp_path):
    """A saved file with other words in its document."""
    path, other = saved(tmp_path), tmp_path / "other.mcce"
    with zipfile.ZipFile(path) as source, zipfile.ZipFile(other, "w") as target:
        for name in source.namelist():
            content = source.read(name)
            target.writestr(name, content.replace(b" clerk", b" Clerk"))
    return other


SAVING = {
    "objects as levels": lambda tmp: (
        explainer(kinds={"job": "categorical"})
        .fit(DATA.assign(job=numbered(Fraction(918273, 2), Fraction(918273, 4))))
        .save(tmp / "x")
    ),
    "no folder": lambda tmp: fitted().save(tmp / "none" / "x"),
    "other scores": lambda tmp: mcce.load(saved(tmp), lambda frame: predictor(frame) + 1),
    "a failing predictor": lambda tmp: mcce.load(saved(tmp), raising(WORD)),
    "a predictor of words": lambda tmp: mcce.load(saved(tmp), lambda frame: frame["job"]),
    "another method": lambda tmp: mcce.load(saved(tmp), LogisticRegression()),
    "an edited file": lambda tmp: mcce.load(edited(tmp), predictor),
    "people of another kind": lambda tmp: mcce.load(saved(tmp), predictor).explain(
        PEOPLE.assign(wage=WORD)
    ),
}

ANSWERS = PEOPLE.assign(age=50)


def from_frame(frame, **more):
    settled = {"schema": Schema.learn(DATA), "decision": make_decision(predictor, (0.5, 1.0))}
    return Counterfactuals.from_frame(PEOPLE, frame, **settled | more)


RESULTS = {
    "too few answers": lambda: from_frame(ANSWERS.head(1)),
    "owners that are words": lambda: from_frame(ANSWERS, owner=PEOPLE["job"]),
    "owners that are labels": lambda: from_frame(ANSWERS, owner=PEOPLE.index),
    "owners beyond": lambda: from_frame(ANSWERS, owner=[0, 7]),
    "answers of words": lambda: from_frame(ANSWERS.assign(wage=WORD)),
    "answers of other columns": lambda: from_frame(ANSWERS.drop(columns="job")),
    "answers nobody can score": lambda: from_frame(
        ANSWERS, decision=make_decision(raising(WORD), (0.5, 1.0))
    ),
    "robustness of nothing": lambda: fitted().robustness(PEOPLE),
    "robustness of others": lambda: (
        explainer(immutable=["age"]).fit(DATA).robustness(fitted().explain(PEOPLE))
    ),
    "robustness by another predictor": lambda: fitted(desired=(0.9, 1.0)).robustness(
        fitted().explain(PEOPLE)
    ),
    "relax with other data": lambda: fitted(immutable=["age"]).relax(
        PEOPLE, DATA.assign(wage=WORD)
    ),
    "likelihood of words": lambda: fitted().log_likelihood(PEOPLE.assign(wage=WORD)),
    "unfitted": lambda: explainer().explain(PEOPLE),
    "changed": lambda: fitted().set_params(immutable=list(LEVELS)).explain(PEOPLE),
    "another predictor": lambda: fitted().set_params(predictor=DATA).explain(PEOPLE),
}

METRICS = {
    "gower of words": lambda: metrics.gower(PEOPLE, ANSWERS.assign(wage=WORD), DATA),
    "l1 of fewer": lambda: metrics.l1(PEOPLE, ANSWERS.head(1), DATA),
    "sparsity shuffled": lambda: metrics.sparsity(PEOPLE, ANSWERS.iloc[::-1]),
    "violation of nothing": lambda: metrics.violation(PEOPLE, ANSWERS, DATA),
    "success without predictor": lambda: metrics.success(ANSWERS, metrics.Evaluator.fit(DATA)),
    "success by a failing one": lambda: metrics.success(
        ANSWERS,
        metrics.Evaluator.fit(DATA, predictor=raising(WORD), desired=(0.5, 1.0)),
    ),
    "neighbours": lambda: metrics.knn_distance(ANSWERS, DATA, k=999),
    "neighbours of words": lambda: metrics.knn_distance(ANSWERS.assign(since=WORD), DATA),
    "copies of words": lambda: metrics.copies(ANSWERS.assign(wage=WORD), DATA),
    "compare words": lambda: metrics.compare(PEOPLE, {"it": ANSWERS.assign(wage=WORD)}, DATA),
    "a desired column": lambda: metrics.Evaluator.fit(DATA, desired=DATA["job"]),
}

NAMES = (
    *("desired", "score_class", "generator", "distance", "search", "n_samples", "random_state"),
    *("n_counterfactuals", "diversity", "max_seconds", "memory", "n_jobs", "verbose", "immutable"),
    *("constraints", "kinds", "predictor"),
)
PARAMETERS = {
    f"{name}={kind}": lambda name=name, value=value: (
        MCCE(**{"predictor": predictor, "desired": (0.5, 1.0), name: value})
        .fit(DATA)
        .explain(PEOPLE)
    )
    for name in NAMES
    for kind, value in {"frame": DATA, "column": DATA["job"]}.items()
}
ROOMS = {
    "schema": SCHEMA,
    "predictor": PREDICTORS,
    "constraint": CONSTRAINTS,
    "result": RESULTS,
    "metric": METRICS,
    "parameter": PARAMETERS,
}


@pytest.mark.parametrize("room", ROOMS)
def test_no_error_or_warning_shows_personal_data(caplog, room):
    shown = {name: traces_in(told_by(case, caplog)) for name, case in ROOMS[room].items()}

    assert {name: traces for name, traces in shown.items() if traces} == {}


def test_no_error_of_saving_and_loading_shows_personal_data(caplog, tmp_path):
    shown = {
        name: traces_in(told_by(lambda case=case: case(tmp_path), caplog))
        for name, case in SAVING.items()
    }

    assert {name: traces for name, traces in shown.items() if traces} == {}


@pytest.mark.parametrize("kind", ["polars", "pyarrow"])
def test_no_error_of_other_frames_shows_personal_data(caplog, kind):
    library = pytest.importorskip(kind)
    plain = DATA.reset_index(drop=True)
    make = {
        "polars": lambda frame: library.from_pandas(frame),
        "pyarrow": lambda frame: library.Table.from_pandas(frame, preserve_index=False),
    }[kind]
    model = explainer(lambda frame: np.asarray(frame["age"], dtype=float) / 80).fit(make(plain))

    for change in ({"wage": WORD}, {"job": NUMBER}, {"since": WORD}):
        people = make(plain.head(2).assign(**change))
        assert not traces_in(told_by(lambda people=people: model.explain(people), caplog))
    if kind == "polars":
        levels = [[level] for level in LEVELS]
        column = library.Series(levels, dtype=library.List(library.Enum(LEVELS)))
        frame = library.DataFrame({"job": column})
        assert not traces_in(told_by(lambda: explainer().fit(frame), caplog))


def test_no_repr_of_what_was_learned_shows_personal_data():
    model = fitted(search=Search(copies="never"))
    rows = Schema.learn_rows(DATA)
    shown = [model, model.fitted_, model.schema_, model.decision_, model.generator_, rows]
    shown += [
        model.plausibility_,
        model.distance_,
        metrics.Evaluator.fit(DATA),
        model.explain(PEOPLE),
    ]

    assert not [type(thing) for thing in shown if traces_in(repr(thing) + str(thing))]


def test_the_planted_data_would_be_noticed(caplog):
    for cell in (WORD, NUMBER, pd.Timestamp(DAY), DATA.iloc[0].to_dict(), DATA.index[0]):
        assert traces_in(repr(cell))
        assert traces_in(told_by(lambda cell=cell: int([cell]), caplog) + repr(cell))
