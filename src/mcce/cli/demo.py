"""``mcce demo``: answers to declined applicants of the bundled data, and files to go on with."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import Any

import pandas as pd
from joblib import dump
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from ..datasets.german_credit import Dataset, load_german_credit
from ..explainer import MCCE
from ..runtime.files import writing
from ..runtime.progress import without_warnings
from .arguments import DemoArguments
from .terminal import printable, show, show_json, table

IMMUTABLE = ["Age", "Sex", "ForeignWorker"]
N_TRAIN, N_SHOWN, SEED = 800, 5, 0
NEXT = """\
Go on with

  mcce fit {out}/train.csv --predictor {out}/model.joblib --trust --desired 0.5: \\
      --immutable Age,Sex,ForeignWorker --rules {out}/rules.toml -o {out}/bank.mcce
  mcce explain {out}/bank.mcce {out}/people.csv --predictor {out}/model.joblib --trust \\
      -o {out}/answers.csv
  mcce report {out}/bank.mcce {out}/people.csv --predictor {out}/model.joblib --trust \\
      --labels {out}/labels.toml -o {out}/report.html
  mcce inspect {out}/bank.mcce"""


def run(arguments: DemoArguments) -> None:
    """Explain declined applicants of the bundled German Credit data."""
    out, (german, train, people, predictor) = arguments.out, load_demo()
    declined = people[~predictor.predict(people)].head(N_SHOWN)
    with without_warnings():
        explainer = fit_demo(predictor, train, german.rules)
        changes = explainer.finalize(explainer.explain(declined)).changes()
    changes = changes[["factual", "feature", "before", "after"]]
    if out is not None:
        _write(out, german, train, people, predictor)
    if arguments.run.as_json:
        show_json({"changes": changes.to_dict("records"), "out": None if out is None else str(out)})
        return
    show(f"{german.card['name']}: what would have made {len(declined)} refusals a yes.\n")
    show(table(list(changes.columns), changes.to_numpy().tolist()))
    show(f"\nCaution: {str(german.card['caution']).rsplit('. ', 1)[-1]}")
    if out is not None:
        show(f"\n{NEXT.format(out=printable(out.as_posix()))}")


def load_demo() -> tuple[Dataset, pd.DataFrame, pd.DataFrame, Any]:
    """The bundled data, its training rows and other people, and a classifier on raw columns."""
    german = load_german_credit()
    # Levels as texts, as a CSV file has them.
    categories = german.features.select_dtypes("category").columns
    rows, good = german.features.astype(dict.fromkeys(categories, object)), german.target == "good"
    columns = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), make_column_selector(dtype_exclude="number")),
        (StandardScaler(), make_column_selector(dtype_include="number")),
    )
    predictor = make_pipeline(columns, LogisticRegression(max_iter=1000))
    predictor.fit(rows[:N_TRAIN], good[:N_TRAIN].astype(bool))
    return german, rows[:N_TRAIN], rows[N_TRAIN:], predictor


def fit_demo(predictor: Any, train: pd.DataFrame, rules: Path | None, **more: Any) -> MCCE:
    """An explainer of the bundled data, under the rules that come with it."""
    explainer = MCCE(predictor, immutable=IMMUTABLE, constraints=rules, random_state=SEED, **more)
    return explainer.fit(train)


def _write(
    out: Path, german: Dataset, train: pd.DataFrame, people: pd.DataFrame, predictor: Any
) -> None:
    with writing(out):
        out.mkdir(parents=True, exist_ok=True)
        train.to_csv(out / "train.csv", index=False)
        people.to_csv(out / "people.csv", index=False)
        assert german.rules is not None
        (out / "rules.toml").write_bytes(german.rules.read_bytes())
        labels = files("mcce.datasets").joinpath("labels", "german.en.toml")
        (out / "labels.toml").write_bytes(labels.read_bytes())
        dump(predictor, out / "model.joblib")
