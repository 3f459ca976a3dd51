"""A folder as a user of the command line has it: data, rules and predictors."""

from __future__ import annotations

import os
import sys
import warnings
from contextlib import contextmanager
from pathlib import Path

import joblib
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from mcce.cli import main
from mcce.datasets import load_german_credit

# Exit codes, as the help of the command lists them.
USAGE, INPUT, PREDICTOR, OUTPUT, BROKEN, INTERRUPTED = 2, 3, 4, 5, 6, 130
PAPER = ["--search", "paper", "--n-counterfactuals", "1"]
COLUMNS = ["Duration", "CreditAmount", "Savings", "Age", "Sex", "Job"]
SCORING = """
import numpy as np

def score(frame):
    z = 1.5 - 0.04 * frame["Duration"] - 0.0001 * frame["CreditAmount"] + 0.02 * frame["Age"]
    z = z + 0.5 * frame["Savings"].ne("<100 DM")
    return 1 / (1 + np.exp(-z.to_numpy(dtype=float)))

def fails(frame):
    raise ValueError("a secret cell")
"""
# Who is 99 years old takes as long as a test wants, in processes that are told to wait.
WAITING = """
import os, time
from pathlib import Path
from scoring import score as good

HERE = Path(__file__).parent

def score(frame):
    if frame["Age"].eq(99).any() and "WAIT_FOR_RELEASE" in os.environ:
        (HERE / "inside").touch()
        deadline = time.monotonic() + 300
        while not (HERE / "release").exists() and time.monotonic() < deadline:
            time.sleep(0.05)
    return good(frame)
"""
RULES = """
[[rules]]
change = {feature = "CreditAmount", at_least = "-50 %", at_most = 0}
"""
LABELS = """
[features]
Duration = {name = "the term", unit = "{number} months", reason = "The term is long."}
CreditAmount = {name = "the amount", unit = "{number} DM", reason = "The amount is large."}
Savings = {name = "your savings", reason = "Your savings are low."}
Job = {name = "your job", reason = "Your job is new."}
Age = {name = "your age", reason = "You are young."}
Sex = {name = "your sex", reason = "Your sex."}
"""


def write_bank(folder, n_train=300, n_people=60):
    """Write train and people in every format, a holdout, a lake, rules, labels and predictors."""
    german = load_german_credit()
    frame = german.features[COLUMNS]
    texts = dict.fromkeys(("Savings", "Sex", "Job"), object)
    train, people = frame[:n_train].astype(texts), frame[-n_people:].astype(texts)
    for name, rows in (("train", train), ("people", people)):
        rows.to_csv(folder / f"{name}.csv", index=False)
        rows.to_json(folder / f"{name}.jsonl", orient="records", lines=True)
        rows.to_parquet(folder / f"{name}.parquet", index=False)
        rows.reset_index(drop=True).to_feather(folder / f"{name}.feather")
    holdout = frame[n_train : 2 * n_train].astype(texts)
    holdout.to_csv(folder / "holdout.csv", index=False)
    (folder / "lake").mkdir()
    numbered = people.assign(customer=range(100, 100 + n_people))
    for at in range(3):
        rows = numbered[at * n_people // 3 : (at + 1) * n_people // 3]
        rows.to_parquet(folder / f"lake/{at}.parquet", index=False, row_group_size=6)
    columns = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), make_column_selector(dtype_exclude="number")),
        (StandardScaler(), make_column_selector(dtype_include="number")),
    )
    model = make_pipeline(columns, LogisticRegression())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(train, german.target[:n_train].astype(str))
    joblib.dump(model, folder / "model.joblib")
    (folder / "scoring.py").write_text(SCORING, encoding="utf-8")
    (folder / "rules.toml").write_text(RULES, encoding="utf-8")
    (folder / "labels.toml").write_text(LABELS, encoding="utf-8")
    return folder


def fit_bank(folder):
    """Write that folder, and an explainer in it."""
    with entered(write_bank(folder)):
        fit = ["fit", "train.csv", "--predictor", "scoring:score", "--desired", "0.6:", "--quiet"]
        assert main([*fit, "--immutable", "Age,Sex", *PAPER, "-o", "bank.mcce"]) == 0
    return folder


@contextmanager
def entered(folder):
    """Go into a folder; modules that are imported from it inside are forgotten after."""
    before, imported, paths = Path.cwd(), set(sys.modules), list(sys.path)
    os.chdir(folder)
    try:
        yield folder
    finally:
        os.chdir(before)
        sys.path[:] = paths
        for name in set(sys.modules) - imported:
            if str(getattr(sys.modules[name], "__file__", None)).startswith(str(folder)):
                del sys.modules[name]
