"""Privacy audits: releases of which the truth is known, the bound of epsilon, linkage, pages."""

from __future__ import annotations

import re
import sys
from functools import cache

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import roc_auc_score

from mcce import (
    MCCE,
    McceWarning,
    MissingExtraError,
    NotFittedError,
    ParameterError,
    SchemaError,
    metrics,
    privacy,
)
from mcce.report import plots, write_privacy_report, write_report
from mcce_lab.baselines import NICE
from report_pages import Page
from searches import slow

AUCS = ["distance_auc", "calibrated_auc", "rare_values_auc"]


@cache
def draw(n, seed):
    """People with numbers that are nearly unique, few and skewed, and with levels."""
    rng = np.random.default_rng(seed)
    job = rng.choice(["a", "b", "c", "d"], n, p=[0.5, 0.3, 0.15, 0.05])
    return pd.DataFrame(
        {
            "income": np.round(rng.lognormal(3, 0.6, n) + 5 * (job == "a"), 2),
            "age": rng.integers(20, 70, n),
            "job": job,
            "home": rng.choice(["own", "rent"], n),
        }
    )


def split(n, seed):
    people = draw(3 * n, seed)
    return people[:n], people[n : 2 * n], people[2 * n :]


TRAINING, HOLDOUT, REFERENCE = range(3)


@cache
def copied():
    """The audit of a release of the training rows, with what an attacker knows."""
    known = {"immutable": ["age"], "quasi_identifiers": ["age", "job"]}
    parts = split(120, 0)
    return privacy.audit_rows(parts[TRAINING], *parts, **known)


@cache
def fresh():
    return privacy.audit_rows(draw(400, 1000), *split(200, 0))


def score(frame):
    return frame["income"] + frame["age"] / 10


@cache
def fitted():
    explainer = MCCE(score, (30, np.inf), immutable=["age"], n_samples=100, random_state=0)
    return explainer.fit(split(200, 2)[TRAINING])


# Known truths.
def test_a_release_of_the_training_rows_is_found_by_every_attack():
    parts = split(300, 0)

    found = privacy.audit_rows(parts[TRAINING], *parts)

    table = found.to_frame()
    assert table.loc["distance_auc", "value"] > 0.99
    assert table.loc["calibrated_auc", "value"] > 0.99
    assert table.loc["rare_values_auc", "value"] > 0.9
    assert table.loc["copies", "value"] == 1.0
    assert table.loc["holdout_share", "value"] > 0.97
    assert table.loc["distance_tpr_1%", "value"] > 0.9
    assert (table.loc[[*AUCS, "copies", "holdout_share"], "finding"] == "leak").all()
    assert found.n_copies == 300
    assert found.finding == "leak"
    assert not found.dp_bound(1.0).holds
    assert found.dp_bound(1.0).epsilon_low > 2


def test_fresh_draws_tell_nothing():
    excess = []
    for seed in range(5):
        found = privacy.audit_rows(draw(150, 1000 + seed), *split(100, seed))
        excess += [found[name].excess for name in [*AUCS, "holdout_share", "copies"]]
        assert found.leaks == ()

    # Figures that are not independent: beyond two standard errors one in twenty, beyond four none.
    assert np.mean(np.abs(excess) > 2) < 0.15
    assert np.max(np.abs(excess)) < 4
    assert fresh().dp_bound(0.5).holds


def test_few_values_and_wide_classes_call_chance_no_leak():
    def people(n, rng):
        debt = rng.poisson(rng.gamma(1, 8, n))
        return pd.DataFrame(
            {"months": rng.integers(0, 30, n), "debt": debt, "job": rng.choice(list("abc"), n)}
        )

    names = ["closest_zero", "holdout_share", "linkage_unique", "linkage_small"]
    n_leaks = 0
    for seed, n_released in ((0, 1), (1, 60)):
        rng = np.random.default_rng([seed, n_released])
        sets = [people(n, rng) for n in (n_released, 200, 200, 100)]
        audit = privacy.audit_rows(*sets, quasi_identifiers={"months": 2, "debt": 3})
        n_leaks += sum(audit[name].finding == "leak" for name in names)

    assert n_leaks == 0


def test_rows_close_to_training_or_far_from_it_are_found():
    training, holdout, reference = split(200, 0)
    near = privacy.audit_rows(
        training.assign(income=training["income"] + 1e-4), training, holdout, reference
    )
    rng = np.random.default_rng(0)
    grid = pd.DataFrame([(a, b) for a in range(30) for b in range(30)], columns=["a", "b"])
    parts = np.array_split(rng.permutation(900), 3)
    training, holdout, reference = (grid.iloc[part] for part in parts)
    # With few values, rows that skip every training row tell who was in it.
    far = privacy.audit_rows(pd.concat([holdout, reference]), training, holdout, reference)

    assert near["holdout_share"].finding == "leak"
    assert far["distance_auc"].finding == "reversed"
    assert "distance_auc" in far.leaks


@pytest.mark.parametrize("release", ["answers", "rows"])
def test_trees_give_away_values_that_one_person_has(release):
    parts = split(200, 2)

    found = privacy.audit(fitted(), *parts, release=release)

    assert found.release == release
    assert found["value_copies"].value > 0.5
    assert found["value_copies"].null < 0.3
    assert found["value_copies"].finding == "leak"
    assert found["rare_values_auc"].finding == "leak"


def test_figures_are_those_of_the_metrics_and_of_scikit_learn():
    training, holdout, reference = split(200, 3)
    released = pd.concat([draw(100, 9), training[:60]], ignore_index=True)

    found = privacy.audit_rows(released, training, holdout, reference)

    closest = metrics.closest_record(released, training, holdout=holdout)
    assert found["copies"].value == metrics.copies(released, training).mean()
    assert found["value_copies"].value == metrics.value_copies(released, training)
    assert found["closest_zero"].value == closest["zero"]
    assert found["holdout_share"].value == pytest.approx(closest["holdout_share"])
    is_member = np.repeat([1, 0], 200)
    for name, (members, nonmembers) in found.scores.items():
        area = roc_auc_score(is_member, np.concatenate([members, nonmembers]))
        assert found[f"{name}_auc"].value == pytest.approx(area)
    members, nonmembers = found.scores["distance"]
    threshold = np.sort(nonmembers)[::-1][2]
    assert found["distance_tpr_1%"].value == pytest.approx(np.mean(members > threshold))
    assert found["distance_tpr_1%"].finding == "leak"
    assert found["distance_tpr_0.1%"].finding == "unknown"


def test_scores_are_those_of_brute_force():
    training, holdout, reference = split(40, 4)
    holdout = holdout.assign(job=["new", "newer"] * 20)
    released = draw(30, 5).assign(job="new")

    found = privacy.audit_rows(released, training, holdout, reference)

    spread = {name: np.ptp(training[name].to_numpy()) for name in ("income", "age")}
    rare = {name: set(released[name]) - set(reference[name]) for name in training}
    for side, rows in enumerate((training, holdout)):
        for at, row in enumerate(rows.itertuples(index=False)):
            distances = (
                (released["income"] - row.income).abs() / spread["income"]
                + (released["age"] - row.age).abs() / spread["age"]
                + (released["job"] != row.job)
                + (released["home"] != row.home)
            )
            n_rare = sum(getattr(row, name) in values for name, values in rare.items())
            assert found.scores["distance"][side][at] == pytest.approx(-distances.min())
            assert found.scores["rare_values"][side][at] == n_rare


def test_people_who_are_equal_by_chance_are_no_overlap():
    people = pd.DataFrame(np.random.default_rng(0).integers(0, 4, (900, 3)), columns=list("abc"))

    found = privacy.audit_rows(people[600:], people[:300], people[300:600], people[600:])

    assert found["copies"].value == pytest.approx(1, abs=0.05)
    assert found["copies"].finding == "none"


# Any explainer.
@pytest.mark.parametrize("name", ["balanced", "several", "NICE"])
def test_any_method_is_audited(name):
    parts = split(120, 2)
    given = {"immutable": ["age"]}
    explainer = {
        "balanced": lambda: MCCE(score, (30, 99), search="balanced", random_state=0, **given),
        "several": lambda: MCCE(score, (30, 99), n_counterfactuals=3, random_state=0, **given),
        "NICE": lambda: NICE(score, (30, 99), **given),
    }[name]()
    explainer.fit(parts[TRAINING])

    found = privacy.audit(explainer, *parts, quasi_identifiers=["income"])

    table = found.to_frame()
    judged = table[table["finding"] != "unknown"]
    assert not judged.isna().any().any()
    assert (judged["low"] <= judged["value"] + 1e-12).all()
    assert (judged["value"] <= judged["high"] + 1e-12).all()
    assert (found.n_each, found.n_reference) == (120, 120)
    assert found["value_copies"].finding == "leak"


def test_data_are_split_fitted_and_attacked():
    explainer = MCCE(score, (30, np.inf), immutable=["age"], n_samples=50, random_state=0)

    found = privacy.split_and_audit(explainer, draw(500, 1), release="rows")

    assert (found.n_training, found.n_holdout, found.n_reference) == (200, 200, 100)
    assert found.n_released == 200
    assert not hasattr(explainer, "fitted_")


def test_without_a_reference_half_of_the_holdout_is_one():
    with pytest.warns(McceWarning, match="training 200.*half of the holdout"):
        found = privacy.audit(fitted(), split(200, 2)[TRAINING], draw(300, 7))

    assert (found.n_holdout, found.n_reference, found.n_each) == (150, 150, 150)
    assert "a sample of 150 of 200 training rows" in found.summary()


def test_frames_of_other_kinds_are_audited():
    pl = pytest.importorskip("polars")
    parts = split(200, 2)

    of_pandas = privacy.audit(fitted(), *parts)
    of_polars = privacy.audit(fitted(), parts[0], *(pl.from_pandas(part) for part in parts[1:]))

    # So the same arguments give the same figures, too.
    pd.testing.assert_frame_equal(of_pandas.to_frame(), of_polars.to_frame())


def test_an_audit_is_shown_in_words():
    found = copied()

    assert "rows" in repr(found)
    assert list(found.to_frame()) == ["value", "low", "high", "null", "finding", "n"]
    n_judged = sum(figure.finding != "unknown" for figure in found.figures)
    assert f"the worst of {n_judged} figures" in found.summary()
    assert (found.quasi_identifiers, found.excluded) == (("job",), ("age",))


REFUSED = {
    "same": (lambda a, b, c: (a, a, c), "holdout and training share rows: 200 of 200"),
    "some": (
        lambda a, b, c: (a, pd.concat([a[150:], b[:150]]), c),
        "holdout and training share rows: 50 of 200",
    ),
    "reference": (lambda a, b, c: (a, b, a), "reference and training share rows"),
    "outside": (lambda a, b, c: (a, b, b), "reference and holdout share rows"),
    "small holdout": (lambda a, b, c: (a, b[:10], c), "but holdout has 10"),
    "small reference": (lambda a, b, c: (a, b, c[:5]), "but reference has 5"),
    "no half": (lambda a, b, c: (a, b[:30], None), "needs at least 40 rows, got 30"),
    "columns": (lambda a, b, c: (a, b.drop(columns="age"), c), "holdout does not fit .*'age'"),
    "fewer": (lambda a, b, c: (a[:150], b, c), "fitted on other rows: on 200, while training has"),
    "others": (lambda a, b, c: (b, c, a), "fitted on other rows: .* values that it has not seen"),
    "nobody": (lambda a, b, c: (a, b, c[score(c) >= 30]), "Nobody of the reference has an answer"),
}


def test_rows_that_cannot_be_used_are_refused():
    for make, words in REFUSED.values():
        with pytest.raises(SchemaError, match=words):
            privacy.audit(fitted(), *make(*split(200, 2)))


def test_a_few_rows_inside_many_are_noticed():
    many = pd.DataFrame(np.random.default_rng(0).normal(size=(20_000, 2)), columns=["a", "b"])
    others = [
        pd.DataFrame(np.random.default_rng(seed).normal(size=(50, 2)), columns=["a", "b"])
        for seed in (1, 2)
    ]

    with pytest.raises(SchemaError, match="holdout and training share rows: 100 of 100"):
        privacy.audit_rows(others[0], many, many[:100], others[1])
    with pytest.raises(SchemaError, match="100 of 100 rows of training are in both"):
        privacy.audit_rows(others[0], many[:100], many, others[1])


def test_wrong_arguments_are_named():
    parts = split(200, 2)
    for options, words in (
        ({"release": "all"}, 'release must be one of "answers", "rows", got \'all\''),
        ({"n_people": 0}, "n_people must be a whole number"),
        ({"random_state": -1}, "random_state must be a whole number"),
    ):
        with pytest.raises(ParameterError, match=words):
            privacy.audit(fitted(), *parts, **options)
    with pytest.raises(SchemaError, match="quasi_identifiers names columns"):
        privacy.audit(fitted(), *parts, quasi_identifiers=["absent"])
    nice = NICE(score, (30, np.inf)).fit(parts[TRAINING])
    with pytest.raises(ParameterError, match='release="rows" needs a fitted MCCE'):
        privacy.audit(nice, *parts, release="rows")
    with pytest.raises(NotFittedError, match="not fitted yet"):
        privacy.audit(MCCE(score, (30, np.inf)), *parts)
    with pytest.raises(ParameterError, match="explainer must have the method explain"):
        privacy.audit(score, *parts)
    with pytest.raises(SchemaError, match="at least 100 rows to split, got 50"):
        privacy.split_and_audit(MCCE(score, (30, np.inf)), draw(50, 0))
    evaluator = metrics.Evaluator.fit(parts[TRAINING], immutable=["age"])
    with pytest.raises(ParameterError, match="training is an Evaluator"):
        privacy.audit_rows(parts[2], evaluator, parts[1], immutable=["age"])


# The bound of epsilon.
def responses(epsilon, n, seed):
    """Randomized response: members say yes with exp(epsilon) times the odds of nonmembers."""
    rng = np.random.default_rng(seed)
    share = np.exp(epsilon) / (1 + np.exp(epsilon))
    return rng.random(n) < share, rng.random(n) < 1 - share


def test_a_mechanism_that_keeps_its_promise_is_rarely_blamed():
    blamed = [
        not privacy.dp_bound(*responses(1.0, 300, seed), 1.0, confidence=0.9).holds
        for seed in range(40)
    ]

    assert np.mean(blamed) < 0.1


def test_half_the_noise_breaks_the_bound_also_by_scores_turned_around():
    check = privacy.dp_bound(*responses(1.0, 4000, 0), 0.5)
    told, others = responses(2.0, 2000, 1)

    assert not check.holds
    assert 0.5 < check.epsilon_low < 1.0
    assert not check.thresholds["holds"].all()
    assert not privacy.dp_bound(~told, ~others, 0.5).holds


def test_the_bound_looks_at_every_threshold_and_allows_delta():
    rng = np.random.default_rng(0)
    members, nonmembers = rng.normal(0.5, 1, 1500), rng.normal(0, 1, 1500)
    rare = np.arange(1000) < 30

    loose, tight = (privacy.dp_bound(members, nonmembers, epsilon) for epsilon in (2.5, 0.1))

    assert loose.holds
    assert not tight.holds
    assert loose.thresholds.groupby("direction").size().gt(20).all()
    assert (loose.thresholds["tpr_low"] <= loose.thresholds["tpr"]).all()
    assert (loose.thresholds["fpr_high"] >= loose.thresholds["fpr"]).all()
    assert not privacy.dp_bound(rare, np.zeros(1000), 0.0).holds
    assert privacy.dp_bound(rare, np.zeros(1000), 0.0, delta=0.05).holds
    assert privacy.dp_bound(np.ones(50), np.ones(50), 0.0).holds


def test_wrong_arguments_of_the_bound_are_named():
    for arguments, options, words in (
        (([], [1.0], 1), {}, "members must be one score for each of at least one row"),
        (([1.0], [np.nan], 1), {}, "nonmembers has scores that are NaN"),
        (([1.0], ["a"], 1), {}, "nonmembers must be one score"),
        (([1.0], [1.0], -1), {}, "epsilon must be a finite number >= 0, got -1"),
        (([1.0], [1.0], 1), {"delta": 2}, "delta must be a number from 0 to 1, got 2"),
        (([1.0], [1.0], 1), {"confidence": 0}, "confidence must be a number above 0"),
    ):
        with pytest.raises(ParameterError, match=words):
            privacy.dp_bound(*arguments, **options)


# Linkage.
def test_sizes_of_classes_are_those_of_brute_force_with_missing_cells():
    rng = np.random.default_rng(0)
    people = pd.DataFrame(
        {
            "age": rng.choice([20.0, 30.0, 40.0, np.nan], 80),
            "job": rng.choice(["a", "b", None], 80),
            "sum": rng.integers(0, 3, 80),
        }
    )
    training, released = people[:50], people[50:]

    sizes = privacy.class_sizes(released, training, {"age": 10, "job": 0})

    for row, (_, found) in zip(released.itertuples(), sizes.iterrows(), strict=True):
        near = (training["age"] - row.age).abs() <= 10
        near |= training["age"].isna() & np.isnan(row.age)
        same = training["job"].isna() if pd.isna(row.job) else training["job"] == row.job
        fits = training[near & same]
        assert found["k"] == len(fits)
        assert found["homogeneous"] == (len(fits) > 0 and (fits["sum"] == row.sum).all())
    assert sizes.index.equals(released.index)


def test_the_width_of_what_is_known_decides_who_fits():
    training = pd.DataFrame({"income": np.arange(50.0), "job": ["a", "b"] * 25, "debt": 1})
    released = training.assign(job="b")[:5]

    def sizes(known):
        return privacy.class_sizes(released, training, known)["k"].tolist()

    assert sizes(["income"]) == [1] * 5
    assert sizes({"income": 2}) == [3, 4, 5, 5, 5]
    assert sizes({"income": np.inf, "job": np.inf}) == [50] * 5


def test_linkage_has_its_null():
    people = pd.DataFrame(np.random.default_rng(0).integers(0, 12, (600, 3)), columns=list("abc"))
    training, holdout, reference = people[:200], people[200:400], people[400:]
    known = {"quasi_identifiers": ["a", "b"], "private": ["c"]}

    drawn = privacy.audit_rows(reference, training, holdout, reference, **known)
    found = privacy.audit_rows(training, training, holdout, reference, **known)

    sizes = privacy.class_sizes(reference, training, ["a", "b"], private=["c"])
    assert drawn["linkage_unique"].value == (sizes["k"] == 1).mean()
    assert drawn["linkage_small"].value == sizes["k"].between(1, 9).mean()
    assert drawn["linkage_homogeneous"].value == sizes["homogeneous"].mean()
    assert drawn["linkage_unique"].null == pytest.approx(drawn["linkage_unique"].value, abs=0.1)
    assert found["linkage_homogeneous"].finding == "leak"
    assert found["linkage_homogeneous"].value > 4 * found["linkage_homogeneous"].null


def test_wrong_quasi_identifiers_are_named():
    training = pd.DataFrame({"age": range(4), "income": range(4), "job": list("abcd")})
    evaluator = metrics.Evaluator.fit(training, immutable=["age"])
    for known, words in (
        ([], "No quasi-identifier is left: none was named"),
        (["age"], r"No quasi-identifier is left: .'age'. cannot change"),
        ({"income": -1}, "The width of 'income' must be a number >= 0, got -1"),
        ({"job": 2}, "The width of 'job', a category, must be 0 or infinity, got 2"),
    ):
        with pytest.raises(ParameterError, match=words):
            privacy.class_sizes(training, evaluator, known)
    with pytest.raises(SchemaError, match="quasi_identifiers names columns that are not in the"):
        privacy.class_sizes(training, evaluator, ["absent"])
    with pytest.raises(SchemaError, match="private names columns"):
        privacy.class_sizes(training, training, ["job"], private=["absent"])


# Pages and pictures.
@pytest.fixture
def pyplot():
    pytest.importorskip("jinja2")
    pytest.importorskip("matplotlib").use("agg")
    plt = pytest.importorskip("matplotlib.pyplot")
    yield plt
    plt.close("all")


SAYS = {
    "en": ("A leak was found.", "not corrected for how many"),
    "de": ("Ein Leck wurde", "ohne Korrektur"),
    "nb": ("En lekkasje ble funnet.", "uten korreksjon"),
}


@pytest.mark.parametrize("language", ["en", *slow("de", "nb")])
def test_the_page_is_valid_in_its_language_and_needs_nothing_else(pyplot, language, tmp_path):
    path = tmp_path / "privacy.html"

    write_privacy_report(copied(), path, {"language": language}, title="Our <bank>")

    content = path.read_text(encoding="utf-8")
    page = Page(content)
    assert page.faults == []
    assert page.elements[0] == ("html", {"lang": language})
    for words in ("Our <bank>", *SAYS[language]):
        assert words in page.text
    assert page.count("table") == 3
    assert page.count("tr") == len(copied().figures) + 3
    assert page.count("img") == 2
    assert all(page.attributes("alt"))
    assert page.count("script") == 0
    assert not re.search(r"(?:src|href|srcset)=\"(?!data:)", content)


@pytest.mark.slow
def test_an_audit_without_linkage_has_no_such_part_and_always_the_same_bytes(pyplot, tmp_path):
    for name in ("first.html", "second.html"):
        write_privacy_report(fresh(), tmp_path / name)

    first, second = ((tmp_path / name).read_bytes() for name in ("first.html", "second.html"))
    page = Page(first.decode())
    assert first == second
    assert page.count("table") == 2
    assert "Who fits a released row?" not in page.text
    assert "What an audit cannot show" in page.text


def test_a_report_shows_an_audit_where_there_is_one(pyplot, tmp_path):
    result = fitted().explain(split(200, 2)[REFERENCE].head(2))

    write_report(fitted(), result, tmp_path / "with.html", privacy=fresh())

    shown = Page((tmp_path / "with.html").read_text(encoding="utf-8"))
    assert shown.faults == []
    assert "privacy" in shown.attributes("id")
    assert "Who was in the training data?" in shown.text
    with pytest.raises(ParameterError, match=r"privacy must be what mcce\.privacy\.audit returned"):
        write_report(fitted(), result, tmp_path / "with.html", privacy="audit")


def test_curves_end_in_the_corner_and_histograms_hold_every_row(pyplot):
    axes = plots.plot_membership(copied())
    bars = plots.plot_closest_records(fresh(), labels={"language": "de"})

    lines = axes.get_lines()
    assert len(lines) == 4
    for line in lines[1:]:
        assert line.get_xdata()[-1] == line.get_ydata()[-1] == 1.0
        assert (np.diff(line.get_ydata()) >= 0).all()
    assert axes.get_xscale() == axes.get_yscale() == "log"
    assert sum(bar.get_height() for bar in bars.patches[:30]) == pytest.approx(1)
    assert bars.get_legend().get_texts()[0].get_text() == "zum Training"


def test_colours_follow_the_background(pyplot):
    with pyplot.style.context("dark_background"):
        dark = plots.plot_membership(fresh()).get_lines()[1].get_color()
    light = plots.plot_membership(fresh()).get_lines()[1].get_color()

    assert (light, dark) == ("#0072b2", "#56b4e9")


def test_wrong_arguments_of_pages_and_pictures_are_named(pyplot, tmp_path, monkeypatch):
    path = tmp_path / "privacy.html"
    for show in (
        plots.plot_membership,
        plots.plot_closest_records,
        lambda audit: write_privacy_report(audit, path),
    ):
        with pytest.raises(ParameterError, match=r"audit must be what mcce\.privacy\.audit"):
            show(draw(10, 0))
    with pytest.raises(ParameterError, match="title must be a text or None, got 3"):
        write_privacy_report(fresh(), path, title=3)
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(MissingExtraError, match="Jinja2"):
        write_privacy_report(fresh(), path)
