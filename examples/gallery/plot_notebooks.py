"""
Results in notebooks and files
==============================

A result shows itself in a notebook, with changes marked. It can be styled, written to Excel, and
handed to a web service as JSON.
"""

# %%
# A result shows itself
# ---------------------

import json
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

import mcce

chance = np.random.default_rng(0)
n_train = 400
bank = pd.DataFrame(
    {
        "age": chance.integers(20, 70, n_train),
        "salary": chance.integers(250, 900, n_train) * 100,
        "housing": pd.Categorical(chance.choice(["own", "rent"], n_train)),
        "customer since": pd.Timestamp("2024-01-01")
        - pd.to_timedelta(chance.integers(0, 3_000, n_train), "D"),
    }
)


def score(frame: pd.DataFrame) -> pd.Series:
    """Points of an applicant."""
    return frame["salary"] / 1_000 + 12.0 * (frame["housing"] == "own")


explainer = mcce.MCCE(
    score, desired=(70, np.inf), immutable=["age"], search="sparse", n_counterfactuals=2
)
explainer = explainer.set_params(random_state=0).fit(bank)
result = explainer.explain(bank[score(bank) < 50].head(3))
result

# %%
# Styles
# ------
# ``style`` gives a styler of pandas, which can be adapted further. For polars frames it gives a
# great table.

result.style().format("{:,}", subset=["salary"]).set_caption("What would have been enough")

# %%
# JSON
# ----
# ``to_dict`` gives one record per person, in types that JSON has: dates in ISO 8601, missing cells
# as null.

record = result.to_dict()[0]
print(json.dumps(record["counterfactuals"][0], indent=2, allow_nan=False))

# %%
# Files
# -----
# A result is made of frames, so files are written by them. Excel's need openpyxl; from ``style``,
# the marks go with them: ``result.style().to_excel("answers.xlsx")``.

with tempfile.TemporaryDirectory() as folder:
    path = Path(folder, "answers.csv")
    result.frame.to_csv(path)
    print(path.read_text())
