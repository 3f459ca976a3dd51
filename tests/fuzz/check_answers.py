"""What is promised of every result, checked by straightforward code of its own.

Nothing of mcce is used here but the result itself: cells are compared by ``cell_bits``, decisions
come from the black box, and constraints have checks of their own.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from cell_bits import bits_of, exact_numbers, values_of
from fuzz_report import Report
from random_cases import Case
from random_predictors import as_pandas

STATUSES = {"answered", "already desired", "no answer"}


def check_result(case: Case, result: Any, report: Report) -> None:
    """Every promise about one result."""
    report.counts["answers"] += len(result.owner)
    report.counts["people"] += len(case.people)
    people = _table(result.people)
    check_people(case, result, people, report)
    check_shape(case, result, report)
    if len(result.owner):
        check_cells(case, result, report)
        check_decision(case, result, report)
        check_rules(case, result, report)
        check_measures(case, result, report)


def check_people(case: Case, result: Any, people: pd.DataFrame, report: Report) -> None:
    """Nobody is lost: one row each, with an answer, the decision already, or a reason."""
    report.check(len(people) == len(case.people), "people are lost")
    status, reason = people["status"].to_numpy(), people["reason"].to_numpy()
    report.check(set(status) <= STATUSES, "an unknown status")
    accepted = case.box.accepts(case.given_people)
    already = status == "already desired"
    report.check(np.array_equal(already, accepted), "who has the desired decision already")
    n_answers = np.bincount(result.owner, minlength=len(people))
    report.check(np.array_equal(status == "answered", n_answers > 0), "answered without answers")
    report.check(
        np.array_equal(people["n_counterfactuals"].to_numpy(dtype=np.int64), n_answers),
        "n_counterfactuals is not the number of answers",
    )
    report.check(
        np.array_equal(status == "no answer", [bool(text) for text in reason]),
        "no answer without a reason, or a reason beside an answer",
    )
    report.counts["answered"] += int((n_answers > 0).sum())
    report.counts["without an answer"] += int((status == "no answer").sum())


def check_shape(case: Case, result: Any, report: Report) -> None:
    """Kind of frame, columns, dtypes, labels and ranks."""
    # People in an array get pandas frames.
    model = case.people if isinstance(case.given_people, np.ndarray) else case.given_people
    report.check(type(result.frame) is type(model), "another kind of frame")
    if not isinstance(model, pd.DataFrame):
        report.check(result.frame.schema == model.schema, "another schema than the people have")
    else:
        report.check(list(result.frame.columns) == list(model.columns), "other columns")
        for at in range(model.shape[1]):
            dtype, own = result.frame.dtypes.iloc[at], model.dtypes.iloc[at]
            fine = dtype == own or _is_widened(dtype, own, case.train.iloc[:, at])
            report.check(fine, f"column {at} has dtype {dtype} instead of {own}")
        labels = model.index.to_flat_index()
        frame_labels = result.frame.index.get_level_values("factual")
        report.check(_equal_labels(frame_labels, labels.take(result.owner)), "other labels")
        report.check(_equal_labels(result.people.index, labels), "other labels of people")
    owner = result.owner
    report.check(bool((np.diff(owner) >= 0).all()), "answers are not in the order of people")
    starts = np.flatnonzero(np.diff(owner, prepend=-1))
    rank = np.arange(owner.size) - np.repeat(starts, np.diff([*starts, owner.size])) + 1
    found = _table(result.measures)["rank"].to_numpy(dtype=np.int64)
    report.check(np.array_equal(found, rank), "ranks do not count from 1")
    most = case.settings["n_counterfactuals"]
    report.check(not rank.size or int(rank.max()) <= most, "too many answers")


def _is_widened(dtype: Any, own: Any, train: pd.Series) -> bool:
    """Whether a dtype replaces one that cannot hold the training values."""
    if not isinstance(own, pd.CategoricalDtype):
        return False
    known = set(values_of(train.to_frame())[:, 0])
    held = set(values_of(pd.Series(own.categories).to_frame())[:, 0])
    lacks = known - held - set(values_of(pd.Series([None], dtype=object).to_frame())[:, 0])
    return bool(lacks)


def check_cells(case: Case, result: Any, report: Report) -> None:
    """Immutable and unchanged cells are the person's own; new values come from training.

    Except for columns that follow from others.
    """
    after = as_pandas(result.frame)
    own_bits, new_bits = bits_of(case.people)[result.owner], bits_of(after)
    own_values, new_values = values_of(case.people)[result.owner], values_of(after)
    names = list(case.train.columns)
    fixed = [names.index(name) for name in case.immutable]
    report.check((own_bits[:, fixed] == new_bits[:, fixed]).all(), "an immutable cell changed")
    same = own_values == new_values
    report.check(
        (own_bits == new_bits)[same].all(), "an unchanged cell is not the person's own to the bit"
    )
    known = values_of(case.train)
    changes = as_pandas(result.changes())
    follow = set(changes.loc[changes["kind"] == "consequence", "feature"])
    for at, name in enumerate(names):
        fine = np.isin(new_values[:, at], known[:, at]) | same[:, at] | (name in follow)
        report.check(fine.all(), f"column {at} has a value that training never held")
    distinct = len(np.unique(np.column_stack([result.owner, new_values]), axis=0))
    report.check(distinct == len(after), "two answers of a person are the same")
    if case.settings["search"].copies == "never":
        n_rows = len(np.unique(known, axis=0)) + len(np.unique(new_values, axis=0))
        both = len(np.unique(np.concatenate([known, new_values]), axis=0))
        report.check(both == n_rows, "an answer is a training row")


def check_decision(case: Case, result: Any, report: Report) -> None:
    """Every answer is valid in a fresh call, and the score shown is the score of that call."""
    rows = result.frame
    if isinstance(case.given_train, np.ndarray):
        rows = rows.to_numpy()
    report.check(bool(case.box.accepts(rows).all()), "an answer is not valid in a fresh call")
    if case.box.scores is not None:
        shown = _table(result.measures)["score"].to_numpy(dtype=np.float64)
        report.check(np.array_equal(shown, case.box.scores(rows)), "another score in a fresh call")


def check_rules(case: Case, result: Any, report: Report) -> None:
    """No answer breaks a constraint or a bound of the search."""
    before, after = case.people.iloc[result.owner], as_pandas(result.frame)
    for rule in case.rules:
        fine = rule.holds(before, after, result.owner)
        report.check(bool(np.all(fine)), f"an answer breaks {rule.constraint!r}")
    search = case.settings["search"]
    measures = _table(result.measures)
    if search.max_sparsity is not None:
        most = measures["sparsity"].max()
        report.check(most <= search.max_sparsity, f"{most} changes with {search}")
    if search.max_distance is not None:
        largest = measures["gower"].max()
        report.check(largest <= search.max_distance, f"distance {largest} with {search}")


def check_measures(case: Case, result: Any, report: Report) -> None:
    """Sparsity and Gower's distance, counted anew."""
    after, before = as_pandas(result.frame), case.people.iloc[result.owner]
    changed = values_of(before) != values_of(after)
    measures = _table(result.measures)
    sparsity = measures["sparsity"].to_numpy(dtype=np.int64)
    report.check(np.array_equal(sparsity, changed.sum(axis=1)), "another number of changes")
    gaps = np.stack(
        [_gaps(case, before, after, changed[:, at], at) for at in range(changed.shape[1])]
    )
    shown = measures["gower"].to_numpy(dtype=np.float64)
    close = np.isclose(shown, gaps.mean(axis=0), rtol=1e-9, atol=1e-12)
    report.check(bool(close.all()), "another Gower distance")


def _gaps(
    case: Case, before: pd.DataFrame, after: pd.DataFrame, changed: np.ndarray, at: int
) -> np.ndarray:
    """Gower's gap in one feature: a share of the training range, or 0 or 1."""
    if not case.numeric[at]:
        return changed.astype(np.float64)
    known = [float(x) for x in exact_numbers(case.train.iloc[:, at]) if x is not None]
    spread = max(known) - min(known) if known else 0.0
    if spread == 0:
        return changed.astype(np.float64)
    pairs = zip(exact_numbers(before.iloc[:, at]), exact_numbers(after.iloc[:, at]), strict=True)
    gaps = [
        float(old is not new)
        if old is None or new is None
        else abs(float(new) - float(old)) / spread
        for old, new in pairs
    ]
    return np.array(gaps)


def _table(table: Any) -> pd.DataFrame:
    """A table about a result in pandas, with its labels as columns."""
    frame = as_pandas(table)
    return frame.reset_index() if table is frame else frame


def _equal_labels(one: Any, other: Any) -> bool:
    """Whether labels are equal; an index of several levels writes None and NaN alike."""
    return [None if pd.isna(label) is True else label for label in one] == [
        None if pd.isna(label) is True else label for label in other
    ]
