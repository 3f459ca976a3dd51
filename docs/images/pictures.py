"""Draw the pictures of the user guide, light and dark.

Run it from the root of the repository: ``python docs/images/pictures.py``. It explains applicants
of German Credit and writes ``docs/images/pictures-*.png``.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier

from mcce import MCCE, Counterfactuals, privacy
from mcce.datasets import load_german_credit
from mcce.report import Labels, plots

FOLDER = Path(__file__).parent


def main() -> None:
    """Explain and draw."""
    results, accepted = explain()
    for name, axes in [*draw(results, accepted), *draw_audit()]:
        axes.figure.savefig(FOLDER / f"pictures-{name}.png", dpi=110)
        plt.close(axes.figure)


def explain() -> tuple[dict[str, Counterfactuals[pd.DataFrame]], pd.DataFrame]:
    """Answers of several searches for declined applicants, and accepted people."""
    german = load_german_credit()
    X, y = german.features, german.target
    predictor = HistGradientBoostingClassifier(
        categorical_features="from_dtype", max_iter=40, random_state=0
    )
    predictor.fit(X[:800], y[:800])
    good = predictor.predict(X) == "good"
    explainer = MCCE(predictor, "good", immutable=["Age", "Sex"], random_state=0)
    results = {}
    for search in ("paper", "sparse", "near", "nearest", "balanced", "plausible"):
        explainer.set_params(search=search, n_counterfactuals=3, diversity=0.5).fit(X[:800])
        results[search] = explainer.explain(X[800:][~good[800:]])
    return results, X[:800][good[:800]]


def draw(
    results: dict[str, Counterfactuals[pd.DataFrame]], accepted: pd.DataFrame
) -> Iterator[tuple[str, Any]]:
    """Every picture and its name."""
    result, labels = results["balanced"], Labels.bundled("german")
    person = result.people.index[0]
    behind = {"accepted": accepted, "labels": labels}
    yield "answers", plots.plot_answers(result, person, **behind)
    with plt.style.context("dark_background"):
        yield "dark", plots.plot_answers(result, person, **behind)
    yield "features", plots.plot_changed_features(result, labels=labels)
    yield "front", plots.plot_front(results)
    yield "groups", plots.plot_group_costs(result, "Sex", labels=labels)


def draw_audit() -> Iterator[tuple[str, Any]]:
    """The pictures of a privacy audit."""
    german = load_german_credit()
    X, y = german.features, german.target
    predictor = HistGradientBoostingClassifier(
        categorical_features="from_dtype", max_iter=40, random_state=0
    )
    explainer = MCCE(predictor.fit(X, y), "good", immutable=["Age", "Sex"], random_state=0)
    found = privacy.split_and_audit(explainer, X, release="rows")
    yield "membership", plots.plot_membership(found)
    yield "closest", plots.plot_closest_records(found)


if __name__ == "__main__":
    main()
