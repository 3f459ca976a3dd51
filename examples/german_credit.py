"""Explain a bank's declined applicants: the whole of ``make demo``.

A gradient-boosting classifier learns on German Credit who is a good risk. Every held-out applicant
it declines is then told what would have changed its mind, with Age, Sex and Purpose left alone.
Prints what it does; writes the full result to ``out/german_credit/``.
"""

from __future__ import annotations

import time
import warnings
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import accuracy_score, roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OrdinalEncoder
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from mcce import MCCE, Counterfactuals, McceWarning
from mcce.datasets import Dataset, load_german_credit

OUT = Path("out", "german_credit")
SEED = 2023
N_SHOWN = 5


def main() -> None:
    """Train, decline, explain, show, save."""
    german = load_german_credit()
    print(f"\nMCCE on {german.card['name']} ({german.card['licence']})")
    print(_caution(german))
    train, test, y_train, y_test = train_test_split(
        german.features, german.target, test_size=0.25, stratify=german.target, random_state=SEED
    )
    predictor = train_predictor(train, y_train)
    declined = decline(predictor, test, y_test, german.desired)
    result = explain(predictor, german, train, declined)
    show(result, german.immutable)
    save(result)


def train_predictor(train: pd.DataFrame, target: pd.Series) -> Pipeline:
    """A gradient-boosting pipeline on the raw columns: the black box."""
    _step(1, "Train the predictor, a black box")
    levels = list(train.select_dtypes(exclude="number").columns)
    encoder = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=np.nan)
    predictor = make_pipeline(
        make_column_transformer((encoder, levels), remainder="passthrough"),
        # The encoded levels come out first; told so, the trees split them as sets.
        HistGradientBoostingClassifier(
            categorical_features=range(len(levels)), max_iter=60, random_state=SEED
        ),
    ).fit(train, target)
    print(f"   {train.shape[0]} applicants, {train.shape[1]} raw columns ({len(levels)} of words)")
    return predictor


def decline(
    predictor: Pipeline, test: pd.DataFrame, target: pd.Series, desired: str
) -> pd.DataFrame:
    """The held-out applicants whom the predictor declines."""
    _step(2, "See whom it declines")
    predicted = pd.Series(predictor.predict(test), index=test.index)
    score = predictor.predict_proba(test)[:, list(predictor.classes_).index(desired)]
    auc, accuracy = roc_auc_score(target == desired, score), accuracy_score(target, predicted)
    refused = predicted != desired
    n_right = int((refused & (target != desired)).sum())
    print(f"   {len(test)} held-out applicants: AUC {auc:.3f}, accuracy {accuracy:.3f}")
    print(f"   {refused.sum()} are declined, {n_right} of whom did turn out bad")
    return test[refused]


def explain(
    predictor: Pipeline, german: Dataset, train: pd.DataFrame, declined: pd.DataFrame
) -> Counterfactuals[pd.DataFrame]:
    """Counterfactuals of everybody who was declined."""
    _step(3, "Fit MCCE on the same training rows")
    explainer = MCCE(
        predictor,
        german.desired,
        immutable=german.immutable,
        search="balanced",
        random_state=SEED,
    )
    started = time.perf_counter()
    explainer.fit(train)
    print(f"   immutable: {', '.join(german.immutable)}; the other columns may change")
    print(f"   {explainer.n_desired_} training rows are decided as {german.desired!r}")
    print(f"   {time.perf_counter() - started:.1f} seconds")
    accepted = explainer.plausibility_
    if accepted is not None:
        share = accepted.support_.reached(0.95)
        print(f"   {share:.0%} of accepted rows held out look real to it (95% were asked for)")
    _step(4, f"Explain {len(declined)} people by the search {explainer.search!r}")
    print("   few and small changes, inside of what accepted applicants look like")
    with warnings.catch_warnings():
        # The warning says that some have no answer; here the table of step 5 does.
        warnings.simplefilter("ignore", McceWarning)
        result = explainer.explain(declined)
    print(f"   {result.n_evaluated} rows were put to the predictor")
    print(f"   {result.timings['total']:.1f} seconds")
    return result


def show(result: Counterfactuals[pd.DataFrame], immutable: list[str]) -> None:
    """The first few people, before and after, and the totals."""
    _step(5, "What would have changed its mind (score: probability of a good risk)")
    changes = result.changes()
    for row, person in enumerate(result.owner[:N_SHOWN]):
        label, factual = result.factuals.index[person], result.factuals.iloc[person]
        before, after = result.people["score"].iloc[person], result.measures["score"].iloc[row]
        who = ", ".join(f"{name} {factual[name]!s}" for name in immutable)
        print(f"\n   Applicant {label!s} ({who})\n      score: {before:.2f} → {after:.2f}")
        for _, cell in changes[changes["factual"] == label].iterrows():
            print(f"      {cell['feature']}: {cell['before']} → {cell['after']}")
    for label, reason in result.missing["reason"].items():
        print(f"\n   Applicant {label}: {reason}")
    print("\n   Everybody (counts, then means over people):")
    for name, value in result.summary().iloc[0].items():
        print(f"      {name:<21}{value:>8.4g}")


def save(result: Counterfactuals[pd.DataFrame]) -> None:
    """The full result as CSV, and as Parquet where pyarrow is installed."""
    _step(6, f"Save the full result in {OUT.as_posix()}/")
    OUT.mkdir(parents=True, exist_ok=True)
    tables = {
        "counterfactuals": result.frame,
        "measures": result.measures,
        "people": result.people,
        "changes": result.changes().set_index(["factual", "rank"]),
    }
    for name, table in tables.items():
        table.to_csv(OUT / f"{name}.csv")
        print(f"   {name + '.csv':<20} {table.shape[0]:>4} rows")
    if find_spec("pyarrow") is None:
        return
    # Numbers and words share these two columns, which Parquet cannot hold.
    tables["changes"] = tables["changes"].astype({"before": str, "after": str})
    for name, table in tables.items():
        table.to_parquet(OUT / f"{name}.parquet")
    print("   and the same as .parquet")


def _step(number: int, title: str) -> None:
    print(f"\n{number}. {title}")


def _caution(german: Dataset) -> str:
    """The last sentence of the data card's caution."""
    return "Caution, from the data card: " + str(german.card["caution"]).rsplit(". ", 1)[-1]


if __name__ == "__main__":
    # With so few rows, threads on a busy machine would mostly wait for each other.
    with threadpool_limits(limits=1):
        main()
