"""Draw the picture of the README: one declined applicant and three ways to a yes.

Run it from the root of the repository: ``python docs/images/one_person.py``. It explains the same
applicant as the README, with the same rules, and writes ``docs/images/one_person.png``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.patches import FancyBboxPatch
from sklearn.ensemble import HistGradientBoostingClassifier

from mcce import MCCE, Counterfactuals, TreeChain
from mcce.datasets import load_german_credit

APPLICANT = 986
INK, GREY, RED, GREEN = "#1f2933", "#6b7785", "#b3443a", "#2f7d5b"
NAMES = {
    "Duration": "repay within {after} months instead of {before}",
    "CreditAmount": "borrow {after:,} DM instead of {before:,} DM",
    "EmploymentSince": "apply once employed for {after}",
}


def main() -> None:
    """Explain the applicant and draw the answers."""
    result = explain()
    figure, axes = plt.subplots(figsize=(9, 3.1), layout="constrained")
    axes.set(xlim=(0, 100), ylim=(0, 40))
    axes.axis("off")
    draw_person(axes, result)
    for place, (label, row) in enumerate(result.frame.iterrows()):
        draw_answer(axes, 28.2 - 12.8 * place, words(result, row), result.measures.loc[label])
    figure.savefig(Path(__file__).with_suffix(".png"), dpi=160, facecolor="white")


def explain() -> Counterfactuals[pd.DataFrame]:
    """The applicant's answers, as on the README."""
    german = load_german_credit()
    X, y = german.features, german.target
    predictor = HistGradientBoostingClassifier(categorical_features="from_dtype", random_state=0)
    predictor.fit(X[:800], y[:800])
    explainer = MCCE(
        predictor,
        desired="good",
        immutable=["Age", "Sex"],
        constraints=german.rules,
        generator=TreeChain(min_samples_leaf=20),
        n_counterfactuals=3,
        diversity=0.5,
        random_state=0,
    )
    return explainer.fit(X[:800]).explain(X.loc[[APPLICANT]])


def words(result: Counterfactuals[pd.DataFrame], row: pd.Series) -> str:
    """What an answer requires."""
    person = result.factuals.iloc[0]
    return ", and ".join(
        text.format(before=person[name], after=row[name]).replace("of <", "of under ")
        for name, text in NAMES.items()
        if person[name] != row[name]
    )


def draw_person(axes: Any, result: Counterfactuals[pd.DataFrame]) -> None:
    """The card of the applicant, on the left."""
    person, score = result.factuals.iloc[0], result.people["score"].iloc[0]
    card(axes, 1, 2.6, 30, 34.6, RED)
    axes.text(3.2, 32.6, f"Applicant {APPLICANT}", size=13, weight="bold", color=INK)
    lines = [
        f"{person['Sex']}, {person['Age']} years old",
        f"{person['CreditAmount']:,} DM for {person['Purpose']}",
        f"over {person['Duration']} months",
        f"employed for {person['EmploymentSince']}".replace("<", "under "),
    ]
    axes.text(3.2, 30, "\n".join(lines), size=10.5, color=GREY, va="top", linespacing=1.5)
    axes.text(3.2, 9.3, "score, accepted from 0.50", size=9.5, color=GREY)
    axes.text(3.2, 5, f"declined, {score:.2f}", size=12, weight="bold", color=RED)


def draw_answer(axes: Any, bottom: float, text: str, measures: pd.Series) -> None:
    """One answer, on the right, with an arrow to it."""
    card(axes, 40, bottom, 59, 9, GREEN)
    arrow = {"arrowstyle": "-|>", "color": GREY, "lw": 1.4, "shrinkA": 2, "shrinkB": 2}
    axes.annotate("", xy=(40, bottom + 4.5), xytext=(31, 19.9), arrowprops=arrow)
    axes.text(42, bottom + 4.4, text, size=11, color=INK, va="center")
    score = f"accepted, {measures['score']:.2f}"
    axes.text(
        97.5, bottom + 4.4, score, size=11, weight="bold", color=GREEN, va="center", ha="right"
    )


def card(axes: Any, left: float, bottom: float, width: float, height: float, edge: str) -> None:
    """A rounded box."""
    style = "round,pad=0,rounding_size=1.2"
    box = FancyBboxPatch(
        (left, bottom),
        width,
        height,
        boxstyle=style,
        fc="white",
        ec=edge,
        lw=1.6,
        mutation_aspect=1,
    )
    axes.add_patch(box)


if __name__ == "__main__":
    main()
