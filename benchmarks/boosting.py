"""Our boosted trees against scikit-learn's: ``python benchmarks/boosting.py``.

Predicts each of the first numeric columns of a table from all others. Both have as many trees of as
many leaves, and both see codes. R² is on the third of the rows that was held out; CPU seconds are
the least of several runs that alternate in one process, with one thread.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingRegressor
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from mcce.plausibility.boosting import BinnedColumns, BoostedTrees
from mcce.tables.schema import EncodedRows, Schema
from mcce_lab.datasets import DatasetError, load
from measure import Seconds, Table, cpu, interleave, times, write

MAX_ROWS, MAX_TARGETS, MAX_LEVELS = 15_000, 4, 255


def main() -> None:
    """Print the table."""
    with threadpool_limits(1):
        lines = [[name, *compare(frame, target)] for name, frame, target in targets()]
    headings = [
        "column",
        "rows",
        "R² ours",
        "theirs",
        "fit, s",
        "ratio",
        "predict, µs/row",
        "ratio",
    ]
    table = Table("Boosted trees", headings, lines, "60 trees of 16 leaves, learning rate 1/8.")
    write([table], "boosting")
    print(table.markdown())


def targets() -> Iterator[tuple[str, pd.DataFrame, str]]:
    """Tables with a column to predict."""
    yield "months * price", _bills(), "total"
    for name in ("adult", "fico", "gmc"):
        try:
            frame = load(name).features
        except DatasetError:
            continue
        frame = frame.sample(min(MAX_ROWS, len(frame)), random_state=0).reset_index(drop=True)
        for column in frame.select_dtypes("number").columns[:MAX_TARGETS]:
            yield f"{name}: {column}", frame, column


def compare(frame: pd.DataFrame, target: str) -> list[str]:
    """Accuracy and cost of both on one column."""
    rows, at = Schema.learn_rows(frame, immutable=[]), frame.columns.get_loc(target)
    response = frame[target].to_numpy(dtype=float)
    there = np.flatnonzero(np.isfinite(response))
    held_out = there[::3]
    seen = np.setdiff1d(there, held_out)
    inputs = np.delete(np.arange(frame.shape[1]), at)
    found: dict[str, float] = {}

    def ours() -> Seconds:
        table, new = BinnedColumns.of(rows), rows.tree_codes[:, held_out]
        fit, model = cpu(lambda: BoostedTrees.fit(table, response, inputs=inputs, row_numbers=seen))
        predict, predicted = cpu(lambda: model.predict(new))
        found["ours"] = r_squared(response[held_out], predicted)
        return {"fit": fit, "predict": predict}

    def theirs() -> Seconds:
        codes, model = rows.tree_codes[inputs].T.astype(float), _rival(rows, inputs)
        fit, _ = cpu(lambda: model.fit(codes[seen], response[seen]))
        predict, predicted = cpu(lambda: model.predict(codes[held_out]))
        found["theirs"] = r_squared(response[held_out], predicted)
        return {"fit": fit, "predict": predict}

    best = interleave(target, {"ours": ours, "theirs": theirs}, repeats=3)
    per_row = best["ours"]["predict"] / held_out.size * 1e6
    return [
        str(seen.size),
        f"{found['ours']:.4f}",
        f"{found['theirs']:.4f}",
        f"{best['ours']['fit']:.3f}",
        times(best["theirs"]["fit"], best["ours"]["fit"]),
        f"{per_row:.2f}",
        times(best["theirs"]["predict"], best["ours"]["predict"]),
    ]


def r_squared(response: np.ndarray, predicted: np.ndarray) -> float:
    """Share of the variance that is explained."""
    return float(1.0 - ((response - predicted) ** 2).mean() / response.var())


def _rival(rows: EncodedRows, inputs: np.ndarray) -> HistGradientBoostingRegressor:
    features = [rows.schema.features[at] for at in inputs]
    return HistGradientBoostingRegressor(
        max_iter=60,
        max_leaf_nodes=16,
        learning_rate=0.125,
        early_stopping=False,
        categorical_features=[not f.ordered and f.n_codes <= MAX_LEVELS for f in features],
    )


def _bills() -> pd.DataFrame:
    chance = np.random.default_rng(0)
    frame = pd.DataFrame(chance.normal(size=(MAX_ROWS, 9)), columns=[f"x{i}" for i in range(9)])
    frame["months"] = chance.integers(1, 73, MAX_ROWS)
    frame["price"] = chance.uniform(20.0, 120.0, MAX_ROWS).round(2)
    frame["plan"] = chance.choice(["basic", "extra", "full"], MAX_ROWS)
    return frame.assign(total=frame["months"] * frame["price"])


if __name__ == "__main__":
    main()
