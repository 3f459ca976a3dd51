"""Audits of any explainer on any data: what they need, and what they refuse."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from mcce import MCCE, McceWarning, NotFittedError, ParameterError, SchemaError, privacy
from mcce.baselines import NICE
from mcce.datasets import load_german_credit
from mcce.privacy.result import MEANINGS, VERDICTS, as_json
from mcce.protocols import Capabilities, Draws, draw_keys, pick

COLUMNS = ["Duration", "CreditAmount", "Savings", "Age", "Sex"]
PEOPLE = load_german_credit().features[COLUMNS]
TRAINING, HOLDOUT, REFERENCE = PEOPLE[:300], PEOPLE[300:600], PEOPLE[600:800]


def score(frame):
    return 1.2 - frame["Duration"] / 40 - frame["CreditAmount"] / 20_000


class Marginals:
    """Draws every mutable feature by itself, from a grid of its own."""

    capabilities = Capabilities()

    def fit(self, rows, decision, *, seed, n_jobs, verbose):
        self.tables_ = [rows.schema.features[at].table for at in rows.schema.mutable]
        return self

    def sample(self, given, keys, draws):
        words = draw_keys(keys, draws)
        sizes = [np.full(words.shape, len(table)) for table in self.tables_]
        return Draws(np.stack([pick(words, at, size) for at, size in enumerate(sizes)]))


def make(**options):
    options = {"immutable": ["Age", "Sex"], "random_state": 0, "n_samples": 200} | options
    return MCCE(score, (0.5, np.inf), **options)


@pytest.fixture(scope="module")
def fitted():
    return make().fit(TRAINING)


@pytest.mark.parametrize(
    "options",
    [{}, {"search": "balanced"}, {"generator": Marginals()}, {"n_counterfactuals": 3}],
    ids=["paper", "balanced", "own generator", "three answers"],
)
@pytest.mark.parametrize("release", ["answers", "rows"])
def test_any_generator_and_search_is_audited(options, release):
    explainer = make(**options).fit(TRAINING)

    found = privacy.audit(
        explainer, TRAINING, HOLDOUT, REFERENCE, release=release, quasi_identifiers=["Duration"]
    )

    table = found.to_frame()
    judged = table[table["finding"] != "unknown"]
    assert not judged.isna().any().any()
    assert (judged["low"] <= judged["value"] + 1e-12).all()
    assert (judged["value"] <= judged["high"] + 1e-12).all()
    assert set(table["verdict"]) <= set(VERDICTS.values())
    assert list(table["meaning"]) == [MEANINGS[name] for name in table.index]
    assert found.n_each == 300
    assert found.n_reference == 200


def test_other_methods_are_audited_too():
    explainer = NICE(score, (0.5, np.inf), immutable=["Age", "Sex"]).fit(TRAINING)

    found = privacy.audit(explainer, TRAINING, HOLDOUT, REFERENCE)

    assert found["value_copies"].finding == "leak"
    with pytest.raises(ParameterError, match='release="rows" needs a fitted MCCE'):
        privacy.audit(explainer, TRAINING, HOLDOUT, REFERENCE, release="rows")


def test_the_same_arguments_give_the_same_figures(fitted):
    first, second = (privacy.audit(fitted, TRAINING, HOLDOUT, REFERENCE) for _ in range(2))

    pd.testing.assert_frame_equal(first.to_frame(), second.to_frame())


def test_data_are_split_fitted_and_attacked():
    explainer = make()

    found = privacy.split_and_audit(explainer, PEOPLE)

    assert (found.n_training, found.n_holdout, found.n_reference) == (400, 400, 200)
    assert not hasattr(explainer, "fitted_")


def test_rows_are_drawn_for_both_decisions_if_the_generator_can():
    drawn = privacy.split_and_audit(make(), PEOPLE, release="rows")

    assert drawn.n_released == 400
    assert abs(drawn["holdout_share"].value - 0.5) < 0.15


def test_without_a_reference_half_of_the_holdout_is_one(fitted):
    with pytest.warns(McceWarning, match="training 300.*half of the holdout"):
        found = privacy.audit(fitted, TRAINING, PEOPLE[300:700])

    assert (found.n_holdout, found.n_reference, found.n_each) == (200, 200, 200)
    assert "a sample of 200 of 300 training rows" in found.summary()


def test_frames_of_other_kinds_are_audited(fitted):
    pl = pytest.importorskip("polars")
    parts = TRAINING, HOLDOUT, REFERENCE
    plain = [part.astype({"Savings": str, "Sex": str}) for part in parts]
    explainer = make().fit(plain[0])

    of_pandas = privacy.audit(explainer, *plain)
    of_polars = privacy.audit(explainer, plain[0], *(pl.from_pandas(part) for part in plain[1:]))

    pd.testing.assert_frame_equal(of_pandas.to_frame(), of_polars.to_frame())


def test_an_audit_is_shown_in_words_and_as_plain_values(fitted):
    found = privacy.audit(
        fitted, TRAINING, HOLDOUT, REFERENCE, quasi_identifiers=["Age", "Duration"]
    )

    said = json.loads(json.dumps(as_json(found)))
    assert said["finding"] == found.finding
    assert [row["figure"] for row in said["figures"]] == list(found.to_frame().index)
    assert list(said["excluded"]) == ["Age"]
    assert found.to_html() == found._repr_html_()
    assert found.to_html().count("<tr>") == len(found.figures) + 1
    assert "answers rows" in repr(found)


def test_the_bound_of_an_audit_is_that_of_its_worst_score(fitted):
    found = privacy.audit_rows(TRAINING, TRAINING, HOLDOUT, REFERENCE)

    assert not found.dp_bound(1.0).holds
    assert found.dp_bound(1.0).epsilon_low > 2
    fresh = privacy.audit_rows(PEOPLE[800:], TRAINING, HOLDOUT, REFERENCE)
    assert fresh.dp_bound(0.5).holds


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ((TRAINING, TRAINING, REFERENCE), "holdout and training share rows: 300 of 300"),
        ((TRAINING, PEOPLE[250:550], REFERENCE), "holdout and training share rows: 50 of 300"),
        ((TRAINING, HOLDOUT, TRAINING), "reference and training share rows"),
        ((TRAINING, HOLDOUT, HOLDOUT), "reference and holdout share rows"),
        ((TRAINING, HOLDOUT[:10], REFERENCE), "but holdout has 10"),
        ((TRAINING, HOLDOUT, REFERENCE[:5]), "but reference has 5"),
        ((TRAINING, HOLDOUT[:30], None), "needs at least 40 rows, got 30"),
        ((TRAINING, HOLDOUT.drop(columns="Age"), REFERENCE), "holdout does not fit .*'Age'"),
        ((TRAINING.drop(columns="Age"), HOLDOUT, REFERENCE), "training does not fit .*'Age'"),
        ((TRAINING[:200], HOLDOUT, REFERENCE), "fitted on other rows: on 300, while training has"),
        ((HOLDOUT, REFERENCE, TRAINING), "fitted on other rows: .* values that it has not seen"),
    ],
)
def test_rows_that_cannot_be_used_are_refused(fitted, parts, words):
    with pytest.raises(SchemaError, match=words):
        privacy.audit(fitted, *parts)


def test_people_who_are_equal_by_chance_are_no_overlap():
    rng = np.random.default_rng(0)
    people = pd.DataFrame(rng.integers(0, 4, (900, 3)), columns=["a", "b", "c"])

    found = privacy.audit_rows(people[600:], people[:300], people[300:600], people[600:])

    assert found["copies"].value == pytest.approx(1, abs=0.05)
    assert found["copies"].finding == "none"


def test_a_reference_without_declined_people_releases_nothing(fitted):
    accepted = REFERENCE[score(REFERENCE) >= 0.5]

    with pytest.raises(SchemaError, match="Nobody of the reference has an answer"):
        privacy.audit(fitted, TRAINING, HOLDOUT, accepted)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"release": "all"}, 'release must be one of "answers", "rows", got \'all\''),
        ({"n_people": 0}, "n_people must be a whole number"),
        ({"random_state": -1}, "random_state must be a whole number"),
        ({"quasi_identifiers": ["absent"]}, "quasi_identifiers names columns"),
    ],
)
def test_wrong_options_are_named(fitted, options, words):
    with pytest.raises(ParameterError, match=words):
        privacy.audit(fitted, TRAINING, HOLDOUT, REFERENCE, **options)


def test_an_explainer_must_be_one_and_fitted():
    with pytest.raises(NotFittedError, match="not fitted yet"):
        privacy.audit(make(), TRAINING, HOLDOUT, REFERENCE)
    with pytest.raises(ParameterError, match="explainer must have the method explain"):
        privacy.audit(score, TRAINING, HOLDOUT, REFERENCE)
    with pytest.raises(SchemaError, match="at least 100 rows to split, got 50"):
        privacy.split_and_audit(make(), PEOPLE[:50])


def test_an_evaluator_brings_its_own_settings():
    from mcce.metrics import Evaluator

    evaluator = Evaluator.fit(TRAINING, immutable=["Age"])

    with pytest.raises(ParameterError, match="training is an Evaluator"):
        privacy.audit_rows(REFERENCE, evaluator, HOLDOUT, immutable=["Age"])
