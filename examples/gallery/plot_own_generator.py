"""
A generator of your own
=======================

Step 1 of the method is a model that draws the mutable features. Any object with ``capabilities``,
``fit`` and ``sample`` can take the place of the trees.
"""

# %%
# Twenty lines
# ------------
# This one draws whole accepted training rows. Rows come as codes, one per distinct training value.
# A draw may depend only on the immutable codes, the random key and the draw number. So nobody's
# answer depends on who else is explained.

from typing import Any, Self

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator

import mcce
from mcce.protocols import Capabilities, DrawRequest, Draws
from mcce.testing import check_generator


class AcceptedRows(BaseEstimator):
    """Draws accepted training rows at random, without looking at the immutable features."""

    capabilities = Capabilities()

    def fit(self, rows: Any, is_desired: np.ndarray, **ignored: Any) -> Self:
        self.codes_ = rows.codes[rows.schema.mutable][:, is_desired]
        return self

    def sample(self, request: DrawRequest) -> Draws:
        positions = [self._positions(int(key), request.draws) for key in request.keys]
        return Draws(self.codes_[:, np.array(positions)])

    def _positions(self, key: int, draws: np.ndarray) -> np.ndarray:
        stream = np.random.Generator(np.random.Philox(key=key))
        uniform = stream.random(int(draws.max()) + 1)[draws]
        return (uniform * self.codes_.shape[1]).astype(int)


# %%
# It declares no capability beyond drawing, so the searches that need more refuse it with a message.
# ``check_generator`` checks the promises of a generator, and raises if one is broken:

check_generator(AcceptedRows())

# %%
# In use
# ------

chance = np.random.default_rng(0)
n_train = 600
applicants = pd.DataFrame(
    {
        "age": chance.integers(20, 65, n_train),
        "salary": chance.normal(45, 12, n_train).round(),
        "savings": chance.gamma(2.0, 8.0, n_train).round(),
        "loan": chance.gamma(4.0, 10.0, n_train).round(),
        "years employed": chance.integers(0, 20, n_train),
    }
)


def score(frame: pd.DataFrame) -> pd.Series:
    """Points for a loan."""
    return frame["salary"] + frame["savings"] - frame["loan"] + frame["years employed"]


declined = applicants[score(applicants) < 20].head(100)


def changes(generator: Any, search: Any) -> pd.Series:
    """How many features each answer changes."""
    explainer = mcce.MCCE(
        score,
        desired=(20, np.inf),
        immutable=["age"],
        generator=generator,
        search=search,
        random_state=0,
    )
    return explainer.fit(applicants).explain(declined).measures["sparsity"]


# %%
# Here the search matters more than the generator: one that takes draws apart needs only a part of
# their changes.

cases = {
    "trees, paper": changes("trees", "paper"),
    "own, paper": changes(AcceptedRows(), "paper"),
    "trees, sparse": changes("trees", "sparse"),
    "own, sparse": changes(AcceptedRows(), "sparse"),
}
shares = pd.DataFrame({name: n.value_counts(normalize=True) for name, n in cases.items()})
shares = shares.T.reindex(columns=range(1, 5)).fillna(0)

figure, axes = plt.subplots(figsize=(7, 3.2), layout="constrained")
shares[::-1].plot.barh(stacked=True, ax=axes, color=["#c6dbef", "#6baed6", "#2171b5", "#08306b"])
axes.set(xlabel="share of answers", xlim=(0, 1))
axes.spines[["top", "right"]].set_visible(False)
axes.legend(title="changes", frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))
plt.show()
