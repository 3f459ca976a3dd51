"""How well ranges keep what they say, and how many rows the predictor scores for them.

For each case and search, people are explained and the ranges of their answers found. Then training
values inside the ranges of single features are tried, as rows with the other changes as they are,
and points inside boxes: the share of them that stay valid, plausible and allowed. ``distinct``
draws a range and one of the distinct training values inside, ``people`` a range and the value of a
training row inside. A box is labelled with the share of it that holds with 95 % confidence, going
by the points that were tried in it: ``label`` is its mean, and ``kept`` the share of boxes in which
at least as many of our points hold. ``rows`` are those that the predictor scored per changed
feature, boxes and the answers themselves included, and ``most`` the most for a range.
"""

from __future__ import annotations

import argparse
import time
import warnings
from typing import Any

import numpy as np
import pandas as pd

from cases import load
from mcce import MCCE, McceWarning
from mcce.analysis.answers import EncodedAnswers, Trials
from mcce.analysis.moves import Moves
from mcce.explainer import requirements_of
from mcce_lab.experiments.case import Case

CASES = ("adult", "gmc", "fico", "german", "adult-boosting", "german-boosting")
N_POINTS = 10_000


class Checker:
    """Tries points around the answers of a result, and counts rows that the predictor scores."""

    def __init__(self, case: Case, search: str, n_people: int, n_train: int) -> None:
        self.n_rows = 0
        self.train = case.train.sample(min(n_train, len(case.train)), random_state=0)
        self.explainer = MCCE(
            self._counted(case.predictor),
            case.desired,
            immutable=case.immutable,
            search=search,  # type: ignore[arg-type]
            random_state=0,
        ).fit(self.train)
        self.result = self.explainer.explain(case.factuals.head(n_people))
        self.n_rows, started = 0, time.process_time()
        self.table = self.explainer.ranges(self.result)
        self.seconds, self.n_asked = time.process_time() - started, self.n_rows
        schema, required = self.explainer.schema_, requirements_of(self.explainer)
        self.answers = EncodedAnswers.read(schema, self.result, required.computed)
        self.moves = Moves.of(self.answers)
        self.trials = Trials(required, self.answers)
        # Positions of the answers that the rows of the table are about.
        keys = self.result.frame.index.to_frame(index=False).assign(answer=np.arange(len(self)))
        keyed = self.table[["factual", "rank"]].merge(keys, how="left")
        self.answer = keyed["answer"].to_numpy()

    def __len__(self) -> int:
        return len(self.answers)

    def _counted(self, predictor: Any) -> Any:
        def count(frame: pd.DataFrame) -> Any:
            self.n_rows += len(frame)
            return predictor(frame)

        return count

    def codes_of(self, table: pd.DataFrame, name: str) -> np.ndarray:
        """Places of ends among the distinct training values, between two of them if unseen."""
        codes = np.empty(len(table))
        for feature, part in table.groupby("feature", sort=False):
            known = self.feature(feature).numbers
            known = known[: len(self.feature(feature).known)]
            values = part[name].astype(float).to_numpy()
            at = np.searchsorted(known, values)
            exact = known[np.minimum(at, known.size - 1)] == values
            codes[table.index.get_indexer(part.index)] = np.where(exact, at, at - 0.5)
        return codes

    def feature(self, name: Any) -> Any:
        """A column of the training data."""
        return self.explainer.schema_.features[self.explainer.schema_.names.index(name)]

    def place(self, name: Any) -> int:
        """The place of a column among the mutable ones."""
        schema = self.explainer.schema_
        return int(np.searchsorted(schema.mutable, schema.names.index(name)))

    def hold(self, answer: np.ndarray, cells: list[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
        """Which rows hold that give some features of answers other training codes."""
        steps = np.zeros((len(self.moves.movable), answer.size), dtype=np.int64)
        item = np.arange(answer.size)
        for places, codes in cells:
            low, high = self.moves.start[:, places, answer]
            moved = places >= 0
            step = np.where(codes < low, codes - low, np.where(codes > high, codes - high, 0))
            steps[places[moved], item[moved]] = step[moved]
        return self.trials.try_variants(answer, self.moves.codes(answer, steps))[0]


def try_ranges(check: Checker, rng: np.random.Generator, *, distinct: bool) -> float:
    """Share of training values inside ranges that hold."""
    table = check.table[check.table["low"].notna()].copy()
    if table.empty:
        return np.nan
    answer = check.answer[table.index]
    places = np.array([check.place(name) for name in table["feature"]])
    low, high = np.ceil(check.codes_of(table, "low")), np.floor(check.codes_of(table, "high"))
    drawn = rng.integers(len(table), size=N_POINTS)
    u = rng.random(N_POINTS)
    codes = np.empty(N_POINTS, dtype=np.int64)
    for at in np.unique(drawn):
        here = drawn == at
        n_codes = check.feature(table["feature"].iloc[at]).n_codes
        counted = check.explainer.fitted_.value_counts
        assert counted is not None  # only files of earlier versions have none
        weights = np.ones(n_codes) if distinct else counted[places[at]].astype(float)
        inside = np.arange(int(low[at]), int(high[at]) + 1)
        if not inside.size:
            codes[here] = -1
            continue
        total = np.cumsum(weights[inside])
        codes[here] = inside[np.searchsorted(total, u[here] * total[-1], side="right")]
    kept = codes >= 0
    held = check.hold(answer[drawn][kept], [(places[drawn][kept], codes[kept])])
    return float(held.mean())


def try_boxes(check: Checker, rng: np.random.Generator) -> dict[str, Any]:
    """How many boxes there are, what share of points inside holds, and what the labels say."""
    table = check.table[check.table["box_low"].notna()].copy()
    if table.empty:
        return {"boxes": 0}
    table["answer"] = check.answer[table.index]
    table["place"] = [check.place(name) for name in table["feature"]]
    table["from"] = np.ceil(check.codes_of(table, "box_low"))
    table["to"] = np.floor(check.codes_of(table, "box_high"))
    boxes = [part for _, part in table.groupby("answer", sort=False)]
    labels = pd.DataFrame([part.iloc[0] for part in boxes])
    drawn = rng.integers(len(boxes), size=N_POINTS)
    width = max(len(part) for part in boxes)
    places = np.full((len(boxes), width), -1)
    first, last = np.zeros((2, len(boxes), width))
    for at, part in enumerate(boxes):
        places[at, : len(part)] = part["place"]
        first[at, : len(part)], last[at, : len(part)] = part["from"], part["to"]
    cells = []
    for column in range(width):
        low, high = first[drawn, column], last[drawn, column]
        code = low + np.floor(rng.random(N_POINTS) * np.maximum(high - low + 1, 0))
        of = np.where(high >= low, places[drawn, column], -1)
        cells.append((of, code.astype(np.int64)))
    held = check.hold(labels["answer"].to_numpy(dtype=np.int64)[drawn], cells)
    n_points = np.bincount(drawn, minlength=len(boxes))
    shares = np.bincount(drawn[held], minlength=len(boxes)) / np.maximum(n_points, 1)
    label = labels["box_share"].to_numpy(dtype=float)
    return {
        "boxes": len(boxes),
        "box %": round(100 * float(held.mean()), 2),
        "label %": round(100 * float(label.mean()), 1),
        "kept %": round(100 * float((shares >= label)[n_points > 0].mean()), 1),
        "points": round(float(labels["box_tried"].mean()), 1),
    }


def measure(name: str, search: str, n_people: int, n_train: int) -> dict[str, Any] | None:
    """One line of the table, None without the data."""
    case = load(name)
    if case is None:
        return None
    rng = np.random.default_rng(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", McceWarning)
        check = Checker(case, search, n_people, n_train)
    ranged = check.table[check.table["low"].notna()]
    return {
        "case": name,
        "search": search,
        "answers": len(check),
        "features": len(check.table),
        "ranges": len(ranged),
        "moving": int((ranged["low"].astype(float) < ranged["high"].astype(float)).sum()),
        "distinct %": round(100 * try_ranges(check, rng, distinct=True), 2),
        "people %": round(100 * try_ranges(check, rng, distinct=False), 2),
        **try_boxes(check, rng),
        "rows": round(check.n_asked / max(len(check.table), 1), 1),
        "most": int(check.table["n_tried"].max()),
        "seconds": round(check.seconds, 1),
    }


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--people", type=int, default=100)
    parser.add_argument("--rows", type=int, default=20_000, help="training rows at most")
    parser.add_argument("--search", nargs="*", default=["balanced", "paper"])
    parser.add_argument("names", nargs="*", default=list(CASES))
    given = parser.parse_args()
    lines = []
    for name in given.names or CASES:
        for search in given.search:
            line = measure(name, search, given.people, given.rows)
            if line is not None:
                lines.append(line)
                print(pd.DataFrame([line]).to_string(index=False), flush=True)
    print(pd.DataFrame(lines).to_string(index=False))


if __name__ == "__main__":
    main()
