"""Log a fitted explainer beside its model in MLflow, and load both back from the registry.

MLflow is no dependency of mcce: install it in an environment of your own. Run it from the root of
the repository: ``python examples/mlflow_registry.py``. It writes to a temporary folder.

An explainer belongs to the model that it was fitted with. Both are logged by one run, so the
version of a registered model leads to its run, and the run to the explainer.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import mlflow
import pandas as pd
from mlflow import MlflowClient
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import mcce
from mcce.datasets import load_german_credit

NAME, FOLDER, FILE = "credit", "explainer", "credit.mcce"


def main() -> None:
    """Log, load and compare."""
    german = load_german_credit()
    model, explainer = train(german.features[:800], german.target[:800], german.rules)
    applicants = german.features[800:]
    declined = applicants[model.predict(applicants) == "bad"].head(3)

    with tempfile.TemporaryDirectory() as folder:
        mlflow.set_tracking_uri(f"sqlite:///{folder}/mlflow.db")
        artifacts = Path(folder, "artifacts").as_uri()
        mlflow.set_experiment(experiment_id=mlflow.create_experiment("loans", artifacts))
        version = log(model, explainer)
        loaded_model, loaded = load(version)

    answers = loaded.explain(declined)
    same = answers.frame.equals(explainer.explain(declined).frame)
    print(f"Version {version} of {NAME!r}, a {type(loaded_model).__name__}, with its explainer:\n")
    print(answers.changes().to_string(index=False))
    print(f"\nThe answers are the same as before logging: {same}.")


def train(
    features: pd.DataFrame, target: pd.Series, rules: Path | None
) -> tuple[Pipeline, mcce.MCCE]:
    """A model, and the explainer fitted with it."""
    numbers = features.select_dtypes("number").columns.tolist()
    levels = features.columns.difference(numbers).tolist()
    columns = make_column_transformer(
        (StandardScaler(), numbers), (OneHotEncoder(handle_unknown="ignore"), levels)
    )
    model = make_pipeline(columns, LogisticRegression(max_iter=1_000)).fit(features, target)
    explainer = mcce.MCCE(
        model,
        desired="good",
        immutable=["Age", "Sex"],
        constraints=rules,
        search="sparse",
        random_state=0,
    )
    return model, explainer.fit(features)


def log(model: Pipeline, explainer: mcce.MCCE) -> str:
    """Log both in one run and register the model; gives its version."""
    with mlflow.start_run(), tempfile.TemporaryDirectory() as folder:
        logged = mlflow.sklearn.log_model(model, name="model", registered_model_name=NAME)
        path = Path(folder, FILE)
        explainer.save(path)
        mlflow.log_artifact(str(path), FOLDER)
        mlflow.log_params({"mcce": mcce.__version__, "search": explainer.search})
    return str(logged.registered_model_version)


def load(version: str) -> tuple[Pipeline, mcce.MCCE]:
    """A version of the registered model, and the explainer that was logged with it."""
    model = mlflow.sklearn.load_model(f"models:/{NAME}/{version}")
    run = MlflowClient().get_model_version(NAME, version).run_id
    path = mlflow.artifacts.download_artifacts(run_id=run, artifact_path=f"{FOLDER}/{FILE}")
    return model, mcce.load(path, model)


if __name__ == "__main__":
    main()
