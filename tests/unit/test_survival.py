"""Answers that last: accepted by models that were trained anew, as far as a committee can tell."""

from __future__ import annotations

import re
from functools import cache

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder
from sklearn.tree import DecisionTreeClassifier

from mcce import (
    MCCE,
    Interval,
    McceWarning,
    NotFittedError,
    ParameterError,
    SavedFileError,
    SchemaError,
    Search,
    Survival,
    load,
)
from mcce.report import write_letters, write_report
from saved_files import document_bytes, read_document
from searches import explain

FEATURES = ["income", "debt", "years"]


@cache
def bank():
    """Applicants whose labels have noise, so that models trained on other samples differ."""
    random = np.random.default_rng(0)
    rows = pd.DataFrame(
        {
            "age": random.integers(20, 70, 800),
            "income": random.integers(10, 100, 800),
            "debt": random.integers(0, 60, 800),
            "years": random.integers(0, 15, 800),
            "home": pd.Categorical(random.choice(["own", "rent"], 800)),
        }
    )
    chance = 1 / (1 + np.exp(-(rows["income"] - rows["debt"] + 2 * rows["years"] - 45) / 15))
    return rows, random.random(800) < chance


def boosting(seed=0):
    return HistGradientBoostingClassifier(
        max_iter=40, min_samples_leaf=10, categorical_features="from_dtype", random_state=seed
    )


@cache
def predictor():
    return boosting().fit(*bank())


@cache
def unseen():
    """Models trained on samples that no committee had."""
    rows, labels = bank()
    samples = (np.random.default_rng(1000 + k).integers(0, 800, 800) for k in range(10))
    return [boosting(k).fit(rows.iloc[sample], labels[sample]) for k, sample in enumerate(samples)]


@cache
def fitted(committee, share=0.9):
    rows, labels = bank()
    explainer = MCCE(predictor(), immutable=["age"], survival=share, random_state=0)
    return explainer.fit(rows, labels if committee == "retrained" else None)


@cache
def answered(committee, share=0.9):
    return explain(fitted(committee, share), declined())


def declined():
    rows, _ = bank()
    return rows[predictor().predict_proba(rows)[:, 1] < 0.5].head(60)


def observed(result):
    accepted = [model.predict_proba(result.frame)[:, 1] >= 0.5 for model in unseen()]
    return float(np.mean(accepted))


@pytest.mark.parametrize("committee", ["retrained", "trees"])
def test_answers_are_accepted_by_models_that_the_search_never_saw(committee):
    plain = explain(clone(fitted(committee)).set_params(survival=None).fit(bank()[0]), declined())

    result = answered(committee)

    assert observed(result) >= max(0.9, observed(plain) + 0.05)
    assert len(result.frame) >= 0.97 * len(plain.frame)


@pytest.mark.parametrize("committee", ["retrained", "trees"])
def test_scores_and_margins_are_those_of_the_predictor_and_the_share_that_of_the_models(committee):
    result = answered(committee)

    score = predictor().predict_proba(result.frame)[:, 1]
    measures = result.measures
    assert np.array_equal(measures["score"], score)
    assert (score >= 0.5).all()
    assert np.allclose(measures["margin"], score - 0.5)
    n_accepted = measures["survival"] * 20
    assert np.array_equal(n_accepted, n_accepted.round())
    assert (measures["survival_low"] <= measures["survival"]).all()
    assert (measures["survival"] <= measures["survival_high"]).all()
    assert measures["survival"].min() >= 0.75
    assert (
        not result.frame["age"]
        .ne(declined().loc[result.frame.index.get_level_values(0), "age"].to_numpy())
        .any()
    )


def test_a_share_of_0_measures_and_requires_nothing():
    plain = explain(clone(fitted("trees")).set_params(survival=None).fit(bank()[0]), declined())

    result = answered("trees", 0.0)

    assert result.frame.equals(plain.frame)
    assert result.measures["survival"].mean() < answered("trees").measures["survival"].mean()


def test_the_share_is_that_of_retrained_models_that_accept():
    rows, labels = bank()
    kept = []

    def retrain(X, y):
        kept.append(boosting(len(kept)).fit(X, y))
        return kept[-1]

    explainer = clone(fitted("trees")).set_params(survival=Survival(0.5, n_models=7))
    result = explain(explainer.fit(rows, labels, retrain=retrain), declined())

    accepted = np.mean([model.predict_proba(result.frame)[:, 1] >= 0.5 for model in kept], axis=0)
    assert len(kept) == 7
    assert np.array_equal(result.measures["survival"], accepted)


def test_one_answer_whatever_the_batch_and_order():
    together = answered("retrained")
    people = declined().iloc[[30, 4, 11]]

    alone = pd.concat([explain(fitted("retrained"), people.iloc[[k]]).frame for k in range(3)])
    some = explain(fitted("retrained"), people).frame

    kept = together.frame[together.frame.index.get_level_values(0).isin(people.index)]
    assert some.sort_index().equals(kept.sort_index())
    assert alone.sort_index().equals(kept.sort_index())


def test_final_answers_and_ranges_last_too():
    explainer, result = fitted("retrained"), answered("retrained")

    final = explainer.finalize(result)
    ends = []
    for row in final.ranges.query("kind == 'numeric'").to_dict("records"):
        for end in ("low", "high"):
            changed = final.frame.loc[[(row["factual"], row["rank"])]].copy()
            changed[row["feature"]] = row[end]
            ends.append(changed)

    assert observed(final) >= 0.9
    rows = pd.concat(ends).astype(final.frame.dtypes)
    accepted = [model.predict_proba(rows)[:, 1] >= 0.5 for model in unseen()]
    assert np.mean(accepted) >= 0.8


def test_who_has_no_lasting_answer_is_told_that_there_is_one_without():
    rows, _ = bank()
    explainer = MCCE(predictor(), mutable=["home", "years"], survival=0.95, random_state=0)

    with pytest.warns(McceWarning, match="have no counterfactual"):
        result = explainer.fit(rows).explain(declined())

    reasons = result.missing["reason"]
    helped = reasons.str.contains("Without the required survival there would be an answer.")
    assert helped.any()
    assert not reasons.str.contains("is needed").any()
    plain = clone(explainer).set_params(survival=None).fit(rows)
    with pytest.warns(McceWarning, match="have no counterfactual"):
        without = plain.explain(declined().loc[reasons.index])
    assert set(without.frame.index.get_level_values(0)) >= set(reasons.index[helped])
    lifted = explainer.relax(declined().loc[reasons.index[helped][:2]])
    assert lifted[lifted["lifted"] == "survival"]["answered"].all()


DECISIONS = {
    "labels": lambda rows, labels: (
        DecisionTreeClassifier(max_depth=4, random_state=0).fit(rows[FEATURES], labels),
        [True],
    ),
    "scores": lambda rows, labels: (
        LogisticRegression().fit(rows[FEATURES], labels).decision_function,
        Interval(0.5, np.inf),
    ),
    "regression": lambda rows, labels: (
        HistGradientBoostingRegressor(max_iter=30).fit(
            rows[FEATURES], rows["income"] - rows["debt"]
        ),
        Interval(20, np.inf),
    ),
    "refused at both ends": lambda rows, labels: (
        LogisticRegression().fit(rows[FEATURES], labels),
        Interval(0.6, 0.9),
    ),
}


@pytest.mark.parametrize("kind", DECISIONS)
def test_every_kind_of_decision_can_last(kind):
    rows, labels = bank()
    model, desired = DECISIONS[kind](rows, labels)
    explainer = MCCE(model, desired, survival=0.8, random_state=0).fit(rows[FEATURES])

    result = explain(explainer, rows[FEATURES].head(60))

    assert len(result.frame)
    assert explainer.decision_.score(result.frame).valid.all()
    # The spread of margins is not quite normal, least of all with two ends.
    assert result.measures["survival"].mean() >= 0.75


def test_models_know_every_level_that_the_predictor_knows():
    rows, labels = bank()
    rare = rows.assign(home=rows["home"].cat.add_categories(["boat"])).reset_index(drop=True)
    rare.loc[7, "home"] = "boat"
    encoder = make_column_transformer((OrdinalEncoder(), ["home"]), remainder="passthrough")
    model = make_pipeline(encoder, LogisticRegression(max_iter=5000)).fit(rare, labels)

    explainer = MCCE(model, survival=Survival(0.5, n_models=4), random_state=0).fit(rare, labels)

    encoders = [one[0].named_transformers_["ordinalencoder"] for one in explainer.retrained_]
    known = [one.categories_[0].tolist() for one in encoders]
    assert known == [["boat", "own", "rent"]] * 4


def test_models_of_the_latest_rows_see_no_others():
    rows, labels = bank()
    dated, seen = rows.assign(day=np.arange(800)[::-1]), []

    def retrain(X, y):
        seen.append(X["day"].min())
        return boosting().fit(X, y)

    survival = Survival(0.5, n_models=3, samples="all", time="day")
    model = boosting().fit(dated, labels)
    MCCE(model, immutable=["day"], survival=survival).fit(dated, labels, retrain=retrain)

    assert seen == [0, 200, 400]


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"survival": 1.0}, ParameterError, "at least 0 and below 1, got 1.0"),
        ({"survival": "most"}, ParameterError, "at least 0 and below 1, got 'most'"),
        ({"survival": True}, ParameterError, "at least 0 and below 1, got True"),
        ({"survival": 0.9, "search": "paper"}, ParameterError, "for the searches beyond the paper"),
        ({"survival": 0.9, "search": "exact"}, ParameterError, "for the searches beyond the paper"),
        (
            {"survival": 0.9, "search": Search(margin=0.1)},
            ParameterError,
            "Leave one of them out",
        ),
        ({"survival": Survival(time="dya")}, SchemaError, "time must name a column"),
    ],
    ids=["one", "text", "flag", "paper", "exact", "margin", "time"],
)
def test_what_cannot_work_is_refused(given, error, message):
    with pytest.raises(error, match=re.escape(message)):
        MCCE(predictor(), **given).fit(bank()[0])


def test_labels_must_match_and_come_with_a_way_to_retrain():
    rows, labels = bank()
    explainer = MCCE(predictor(), survival=0.9)

    with pytest.raises(ParameterError, match="one label for each of the 800 training rows"):
        explainer.fit(rows, labels[:10])
    with pytest.raises(ParameterError, match="retrain needs the labels"):
        explainer.fit(rows, retrain=lambda X, y: boosting().fit(X, y))


def test_an_explainer_with_trees_answers_the_same_after_saving(tmp_path):
    explainer = fitted("trees")
    explainer.save(tmp_path / "lasting.mcce")

    loaded = load(tmp_path / "lasting.mcce", predictor())

    result = explain(loaded, declined())
    assert result.frame.equals(answered("trees").frame)
    assert result.measures.equals(answered("trees").measures)


def test_a_file_that_says_more_of_survival_than_it_holds_is_refused(tmp_path):
    path = tmp_path / "lasting.mcce"
    fitted("trees").save(path)
    document = read_document(path)
    for lasting in (None, document["lasting"] | {"share": 0.0}):
        path.write_bytes(document_bytes(document | {"lasting": lasting}))

        with pytest.raises(SavedFileError, match="its survival"):
            load(path, predictor())


def test_models_that_were_trained_anew_are_given_again_after_saving(tmp_path):
    explainer, path = fitted("retrained"), tmp_path / "lasting.mcce"
    explainer.save(path)

    loaded = load(path, predictor(), retrained=explainer.retrained_)

    assert explain(loaded, declined()).measures.equals(answered("retrained").measures)
    with pytest.raises(ParameterError, match=r"20 models that were trained anew.* got none"):
        load(path, predictor())
    with pytest.raises(ParameterError, match="got 19"):
        load(path, predictor(), retrained=explainer.retrained_[1:])
    fitted("trees").save(path)
    with pytest.raises(ParameterError, match="Leave retrained out"):
        load(path, predictor(), retrained=explainer.retrained_)
    assert fitted("trees").retrained_ is None


def test_another_share_needs_another_fit():
    explainer = clone(fitted("trees")).fit(bank()[0]).set_params(survival=0.5)

    with pytest.raises(NotFittedError, match="survival was changed after fit"):
        explainer.explain(declined())


SAID = {
    "en": r"(?:\w+ of ten|Nearly all|Fewer than half of the) models trained anew on",
    "nb": r"(?:\w+ av ti|Nesten alle|Færre enn halvparten av) modelle\w+ som er trent på nytt",
    "de": r"(?:\w+ von zehn|Fast alle|Weniger als die Hälfte der) Modellen?, die mit denselben",
}


@pytest.mark.parametrize("language", SAID)
def test_letters_say_how_many_models_would_also_have_said_yes(language):
    explainer, result = fitted("trees", 0.0), answered("trees", 0.0)

    letters = write_letters(explainer, result, {"language": language})

    final = explainer.finalize(result)
    assert letters.answers["text"].str.contains(SAID[language]).all()
    if language == "en":
        half = final.measures["survival"] < 0.5
        assert half.any()
        assert letters.answers["text"].str.contains("Fewer than half").equals(half)
    plain = clone(explainer).set_params(survival=None).fit(bank()[0])
    silent = write_letters(plain, explain(plain, declined().head(5)), {"language": language})
    assert not silent.answers["text"].str.contains(SAID[language]).any()


def test_a_report_says_how_many_models_accept_each_plan(tmp_path):
    explainer, path = fitted("trees"), tmp_path / "report.html"

    write_report(explainer, explain(explainer, declined().head(5)), path)

    assert "models trained anew" in path.read_text(encoding="utf-8")
