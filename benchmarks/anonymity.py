"""What anonymous answers lose, how pure they are, and what they cost.

For each case and k, people are explained and their answers widened in columns that outsiders may
know; ``columns`` counts them and those that would give them away. ``exact`` is the share of exact
answers that fewer than k training people fit. The other figures are means over answers: ``crowd``,
``loss`` (widths of ranges and sets as shares of all values, which answers themselves do not tell),
``pureness``, ``for the person`` (pureness of what changes), ``pure`` (share of answers),
``blurred`` (changes that can no longer be seen), and per answer the ``rows`` that the predictor
scored and seconds of CPU, both beyond those of the search.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Sequence
from typing import Any

import pandas as pd

from cases import load
from mcce import MCCE, McceWarning
from mcce.privacy import anonymize
from mcce_lab.experiments.case import Case

# What outsiders may know of people, by case.
KNOWN = {
    "german-boosting": ["CreditAmount", "Duration", "Housing", "Job", "Property"],
    "adult-boosting": [
        "education",
        "hours-per-week",
        "marital-status",
        "native-country",
        "occupation",
    ],
}


class Widened:
    """Answers to the people of a case, exact and widened, and what that took."""

    def __init__(
        self, case: Case, names: Sequence[str], k: int, n_people: int, n_train: int
    ) -> None:
        self.n_rows = 0
        train = case.train.sample(min(n_train, len(case.train)), random_state=0)
        explainer = MCCE(
            self._counted(case.predictor),
            case.desired,
            immutable=case.immutable,
            search="balanced",
            random_state=0,
        ).fit(train)
        people = case.factuals.head(n_people)
        started, before = time.process_time(), self.n_rows
        explainer.explain(people)
        search_seconds, search_rows = time.process_time() - started, self.n_rows - before
        started, before = time.process_time(), self.n_rows
        result = anonymize(
            explainer, explainer.explain(people), train, anonymity=k, quasi_identifiers=names
        )
        self.seconds = time.process_time() - started - search_seconds
        self.rows = self.n_rows - before - search_rows
        assert result.anonymous is not None
        self.measures = result.anonymous.measures
        self.loss = float(
            result.anonymous.cells.apply(
                lambda cell: _loss(cell, train[cell["feature"]]), axis=1
            ).mean()
        )
        keys = list(result.anonymous.quasi_identifiers)
        self.n_columns = len(keys)
        sizes = train.astype(dict.fromkeys(keys, object)).groupby(keys, dropna=False).size()
        answers = (
            result.frame[keys]
            .astype(object)
            .merge(sizes.rename("size").reset_index(), how="left", on=keys)
        )
        self.codes = float((answers["size"].fillna(0) < k).mean())

    def _counted(self, predictor: Any) -> Any:
        def count(frame: pd.DataFrame) -> Any:
            self.n_rows += len(frame)
            return predictor(frame)

        return count

    def line(self) -> dict[str, float]:
        """The figures of the table."""
        means, n_answers = self.measures.mean(), len(self.measures)
        return {
            "columns": self.n_columns,
            "exact": self.codes,
            "crowd": means["crowd"],
            "loss": self.loss,
            "pureness": means["pureness"],
            "for the person": means["pureness_of_changes"],
            "pure": means["pure"],
            "blurred": means["n_blurred"],
            "rows": self.rows / n_answers,
            "seconds": self.seconds / n_answers,
        }


def _loss(cell: pd.Series[Any], column: pd.Series[Any]) -> float:
    """The width of a range, or the further levels of a set, as a share of all."""
    if cell["kind"] in ("any", "value"):
        return float(cell["kind"] == "any")
    if cell["levels"] is not None:
        return (len(cell["levels"]) + cell["missing"] - 1) / (column.nunique(dropna=False) - 1)
    least, most = float(column.min()), float(column.max())
    low = least if pd.isna(cell["low"]) else max(least, cell["low"])
    high = most if pd.isna(cell["high"]) else min(most, cell["high"])
    return (high - low) / (most - least)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--people", type=int, default=100)
    parser.add_argument("--rows", type=int, default=20_000, help="training rows at most")
    parser.add_argument("-k", type=int, nargs="*", default=[5, 20])
    parser.add_argument("names", nargs="*", default=list(KNOWN))
    given = parser.parse_args()
    warnings.simplefilter("ignore", McceWarning)
    lines = []
    for name in given.names or KNOWN:
        case = load(name)
        if case is None:
            continue
        for k in given.k:
            found = Widened(case, KNOWN[name], k, given.people, given.rows).line()
            lines.append({"case": name, "k": k, **found})
            print(pd.DataFrame(lines[-1:]).round(3).to_string(index=False), flush=True)
    print(pd.DataFrame(lines).round(3).to_string(index=False))


if __name__ == "__main__":
    main()
