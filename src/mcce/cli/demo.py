"""``mcce demo``: answers to declined applicants of the bundled data, and files to go on with."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .options import AsJson, Debug
from .terminal import printable, reported, show, show_json, table

if TYPE_CHECKING:
    import pandas as pd

HELP = """Explain declined applicants of the bundled German Credit data.

With --out, also write the files that the other commands take: train.csv, people.csv, rules.toml,
labels.toml and model.joblib."""
EPILOG = """\
\b
Examples:
  mcce demo
  mcce demo --out demo
"""
IMMUTABLE = ["Age", "Sex", "ForeignWorker"]
N_TRAIN, N_SHOWN, SEED = 800, 5, 0
RULES = """\
# What applicants can do; see the page on constraints for more.
[[rules]]
frozen = ["CreditHistory", "Purpose", "Job", "Housing"]

[[rules]]
change = {feature = "CreditAmount", at_least = "-50 %", at_most = 0}

[[rules]]
max_changes = 3
"""
NEXT = """\
Go on with

  mcce fit {out}/train.csv --predictor {out}/model.joblib --trust --desired 0.5: \\
      --immutable Age,Sex,ForeignWorker --rules {out}/rules.toml -o {out}/bank.mcce
  mcce explain {out}/bank.mcce {out}/people.csv --predictor {out}/model.joblib --trust \\
      -o {out}/answers.csv
  mcce report {out}/bank.mcce {out}/people.csv --predictor {out}/model.joblib --trust \\
      --labels {out}/labels.toml -o {out}/report.html
  mcce inspect {out}/bank.mcce"""


def demo(
    out: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="Folder for the files.")
    ] = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Explain declined applicants of the bundled German Credit data."""
    with reported(debug=debug, as_json=as_json):
        from ..datasets import load_german_credit

        german = load_german_credit()
        rows, good = german.features.astype(text_dtypes(german.features)), german.target == "good"
        predictor = train(rows[:N_TRAIN], good[:N_TRAIN])
        people = rows[N_TRAIN:]
        declined = people[~predictor.predict(people)].head(N_SHOWN)
        changes = _explain(predictor, rows[:N_TRAIN], declined)
        if out is not None:
            _write(out, rows, predictor)
        if as_json:
            show_json(
                {"changes": changes.to_dict("records"), "out": None if out is None else str(out)}
            )
            return
        show(f"{german.card['name']}: what would have made {len(declined)} refusals a yes.\n")
        show(table(list(changes.columns), changes.to_numpy().tolist()))
        show(f"\nCaution: {str(german.card['caution']).rsplit('. ', 1)[-1]}")
        if out is not None:
            show(f"\n{NEXT.format(out=printable(out.as_posix()))}")


def text_dtypes(frame: pd.DataFrame) -> dict[Any, Any]:
    """Levels as texts, as a CSV file has them."""
    return {name: object for name, dtype in frame.dtypes.items() if dtype == "category"}


def train(rows: pd.DataFrame, good: pd.Series[bool]) -> Any:
    """A classifier on raw columns."""
    from sklearn.compose import make_column_selector, make_column_transformer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    columns = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), make_column_selector(dtype_exclude="number")),
        (StandardScaler(), make_column_selector(dtype_include="number")),
    )
    return make_pipeline(columns, LogisticRegression(max_iter=1000)).fit(rows, good.astype(bool))


def _explain(predictor: Any, train: pd.DataFrame, people: pd.DataFrame) -> pd.DataFrame:
    import warnings

    from ..errors import McceWarning
    from ..explainer import MCCE

    explainer = MCCE(predictor, immutable=IMMUTABLE, search="balanced", random_state=SEED)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", McceWarning)
        changes = explainer.fit(train).explain(people).changes()
    return changes[["factual", "feature", "before", "after"]]


def _write(out: Path, rows: pd.DataFrame, predictor: Any) -> None:
    from importlib.resources import files

    from joblib import dump

    from ..runtime.replacing import writing

    with writing(out):
        out.mkdir(parents=True, exist_ok=True)
        rows[:N_TRAIN].to_csv(out / "train.csv", index=False)
        rows[N_TRAIN:].to_csv(out / "people.csv", index=False)
        (out / "rules.toml").write_text(RULES, encoding="utf-8")
        labels = files("mcce.datasets").joinpath("labels", "german.en.toml")
        (out / "labels.toml").write_bytes(labels.read_bytes())
        dump(predictor, out / "model.joblib")
