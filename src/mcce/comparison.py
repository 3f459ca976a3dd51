"""Two models compared by their decisions and by the answers that they give.

Beyond the paper. Before a new model replaces an old one: whose decision changes, whose answers of
the old model the new one refuses, and what the plans of the new one ask for instead.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from .confidence import clopper_pearson
from .counterfactuals.result import Counterfactuals
from .errors import ParameterError, SchemaError, did_you_mean
from .explainer import MCCE

# Each end of an interval of a share errs with this chance.
CHANCE = 0.025
EVERYBODY = "everybody"


@dataclass(frozen=True, eq=False)
class ModelComparison:
    """How the decisions and answers of two models differ, as tables.

    Parameters
    ----------
    people
        One row per person: the scores ``old_score`` and ``new_score``, whether each model gives the
        desired decision (``old_desired``, ``new_desired``), whether the old one has an answer for
        the person (``answered``) and whether the new one accepts it (``holds``; missing without an
        answer).
    features
        One row per feature that a plan changes: the share of plans that change it (``old_share``,
        ``new_share``) and for numbers by how much in the median (``old_change``, ``new_change``),
        among people whom both models refuse and have a plan for.
    groups
        One row for everybody and one for each level of the columns asked for: ``n`` people, how
        many lose and gain the desired decision (``n_lost``, ``n_gained``), how many have an answer
        (``n_answered``), the share of these that the new model refuses (``broken``) with its 95 %
        interval (``broken_low``, ``broken_high``), and the mean number of actions of the plans that
        ``features`` compares (``old_actions``, ``new_actions``).
    """

    people: pd.DataFrame
    features: pd.DataFrame
    groups: pd.DataFrame

    @property
    def broken(self) -> float:
        """The share of the old model's answers that the new one refuses; NaN without answers."""
        return float(self.groups["broken"].iloc[0])

    def __repr__(self) -> str:
        row = self.groups.iloc[0]
        return (
            f"ModelComparison({row['n']} people: {row['n_gained']} gain and {row['n_lost']} lose "
            f"the desired decision; {row['broken']:.1%} of {row['n_answered']} answers are refused)"
        )


def compare_models(
    old: MCCE,
    new: MCCE,
    people: Any,
    *,
    answers: Counterfactuals[Any] | None = None,
    groups: Sequence[Hashable] = (),
) -> ModelComparison:
    """Compare two models by their decisions about people and the answers that these would get.

    Parameters
    ----------
    old, new
        A fitted explainer of each model, with the same columns.
    people
        People whom both models decide about.
    answers
        The answers that these people were given under the old model, such as what ``old.explain``
        or ``old.finalize`` returned at the time. None explains them again.
    groups
        Columns by whose values ``groups`` is broken down.

    Returns
    -------
    ModelComparison
        Whose decision changes, whose answers the new model refuses, and what plans ask for.

    Raises
    ------
    ParameterError, SchemaError
        If an argument is not what it should be, or the answers are those of other people.

    Examples
    --------
    >>> bank = pd.DataFrame({"age": [25, 36, 47, 52] * 25, "salary": [*range(20, 70)] * 2})
    >>> old = MCCE(lambda rows: rows["salary"], (50, 99), immutable=["age"], search="near")
    >>> new = MCCE(lambda rows: rows["salary"], (54, 99), immutable=["age"], search="near")
    >>> compare_models(old.fit(bank), new.fit(bank), bank)
    ModelComparison(100 people: 0 gain and 8 lose the desired decision; 100.0% of 60 answers are
    refused)
    """
    for name, explainer in (("old", old), ("new", new)):
        if not isinstance(explainer, MCCE):
            raise ParameterError(
                f"{name} must be a fitted MCCE, got {type(explainer).__name__}. Fit one for each "
                "of the two models."
            )
    if answers is not None and not isinstance(answers, Counterfactuals):
        raise ParameterError(
            f"answers must be what explain returned, got {type(answers).__name__}."
        )
    given = old.explain(people) if answers is None else answers
    before, after = given.to_pandas(), new.explain(people).to_pandas()
    _check_same_people(before, after)
    unknown = [name for name in groups if name not in after.factuals.columns]
    if unknown:
        raise SchemaError(
            f"groups names {unknown[0]!r}, which is no column of the people."
            f"{did_you_mean(unknown[0], after.factuals.columns)}"
        )
    table = _people(old, new, before, after)
    plans = _plans(before), _plans(after)
    both = np.intersect1d(plans[0]["position"], plans[1]["position"])
    old_plans, new_plans = (plan[plan["position"].isin(both)] for plan in plans)
    return ModelComparison(
        table,
        _features(old_plans, new_plans, both.size),
        _groups(table, after.factuals, old_plans, new_plans, groups),
    )


def _check_same_people(before: Counterfactuals[Any], after: Counterfactuals[Any]) -> None:
    """Raise unless answers are those of the people."""
    same = set(before.factuals.columns) == set(after.factuals.columns)
    if not same or not before.people.index.equals(after.people.index):
        raise SchemaError(
            "answers are those of other people: their columns or labels differ from those of "
            "people. Pass the people whom the answers were for."
        )


def _people(
    old: MCCE, new: MCCE, before: Counterfactuals[Any], after: Counterfactuals[Any]
) -> pd.DataFrame:
    """One row per person: both decisions, and whether the first answer holds."""
    first = before.measures.index.get_level_values("rank") == 1
    owner, frame = before.owner[first], before.frame[first].reset_index(drop=True)
    accepted = new.decision_.score(frame[list(new.fitted_.schema.names)]).valid
    holds = pd.array([pd.NA] * len(after.people), dtype="boolean")
    holds[owner] = accepted
    rows = [explainer.fitted_.schema.encode(after.factuals).frame for explainer in (old, new)]
    scored = [
        explainer.decision_.score(frame) for explainer, frame in zip((old, new), rows, strict=True)
    ]
    return pd.DataFrame(
        {
            "old_score": scored[0].score,
            "new_score": scored[1].score,
            "old_desired": scored[0].valid,
            "new_desired": scored[1].valid,
            "answered": np.isin(np.arange(len(after.people)), owner),
            "holds": holds,
        },
        index=after.people.index,
    )


def _plans(result: Counterfactuals[Any]) -> pd.DataFrame:
    """The actions of first answers: whose, of which feature, and by how much a number changes."""
    changes = result.changes()
    plan = changes[(changes["rank"] == 1) & (changes["kind"] == "action")]
    position = pd.Series(np.arange(len(result.people)), index=result.people.index)
    before, after = (
        pd.to_numeric(plan[side], errors="coerce").to_numpy(np.float64)
        for side in ("before", "after")
    )
    return pd.DataFrame(
        {
            "position": position[plan["factual"]].to_numpy(),
            "feature": plan["feature"].to_numpy(),
            "change": after - before,
        }
    )


def _features(old: pd.DataFrame, new: pd.DataFrame, n_people: int) -> pd.DataFrame:
    """How often plans change each feature, and by how much."""
    columns = {}
    for name, plans in (("old", old), ("new", new)):
        by_feature = plans.groupby("feature", sort=False)["change"]
        columns[f"{name}_share"] = by_feature.size() / max(n_people, 1)
        columns[f"{name}_change"] = by_feature.median()
    table = pd.DataFrame(columns)
    shares = ["old_share", "new_share"]
    table[shares] = table[shares].fillna(0.0)
    table = table[[*shares, "old_change", "new_change"]].rename_axis("feature").reset_index()
    moved = (table["new_share"] - table["old_share"]).abs()
    return table.loc[moved.sort_values(ascending=False, kind="stable").index].reset_index(drop=True)


def _groups(
    people: pd.DataFrame,
    factuals: pd.DataFrame,
    old: pd.DataFrame,
    new: pd.DataFrame,
    groups: Sequence[Hashable],
) -> pd.DataFrame:
    """Everybody, and each level of the columns asked for."""
    everybody = np.ones(len(people), dtype=bool)
    members: list[tuple[Any, Any, np.ndarray]] = [(EVERYBODY, "", everybody)]
    for name in groups:
        cells = factuals[name].reset_index(drop=True)
        for level in cells.drop_duplicates().sort_values(ignore_index=True):
            same = cells.isna() if pd.isna(level) else cells == level
            members.append((name, level, same.to_numpy(dtype=bool)))
    n_actions = [
        np.bincount(plans["position"], minlength=len(people)).astype(float) for plans in (old, new)
    ]
    compared = n_actions[0] > 0
    rows = []
    for name, level, member in members:
        some = people[member]
        n_answered = int(some["answered"].sum())
        n_broken = int((~some["holds"].fillna(True)).sum())
        low, high = clopper_pearson(n_broken, max(n_answered, 1), CHANCE)
        known = bool(n_answered)
        actions = [_mean(each[member & compared]) for each in n_actions]
        rows.append(
            {
                "group": name,
                "level": level,
                "n": len(some),
                "n_lost": int((some["old_desired"] & ~some["new_desired"]).sum()),
                "n_gained": int((~some["old_desired"] & some["new_desired"]).sum()),
                "n_answered": n_answered,
                "broken": n_broken / n_answered if known else np.nan,
                "broken_low": float(low) if known else np.nan,
                "broken_high": float(high) if known else np.nan,
                "old_actions": actions[0],
                "new_actions": actions[1],
            }
        )
    return pd.DataFrame(rows)


def _mean(values: np.ndarray) -> float:
    return float(values.mean()) if values.size else np.nan
