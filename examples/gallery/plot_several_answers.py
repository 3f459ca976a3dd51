"""
Several answers to choose from
==============================

One counterfactual is one way to the desired decision. ``n_counterfactuals`` returns several per
person, and ``diversity`` makes them different.
"""

# %%
# A loan that depends on three numbers
# ------------------------------------
# The score is known here, so we can see what the answers do.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import mcce

chance = np.random.default_rng(0)
n_train = 600
salary = chance.normal(45, 12, n_train).round(1)
applicants = pd.DataFrame(
    {
        "salary": salary,
        "savings": (chance.gamma(2.0, 6.0, n_train) + 0.2 * salary).round(1),
        "loan": chance.gamma(4.0, 10.0, n_train).round(1),
    }
)


def score(frame: pd.DataFrame) -> pd.Series:
    """The probability of a yes."""
    points = frame["salary"] + frame["savings"] - frame["loan"] - 30
    return 1 / (1 + np.exp(-points / 5))


person = pd.DataFrame({"salary": [38.0], "savings": [12.0], "loan": [48.0]})
float(score(person).iloc[0])

# %%
# The best five, and five that differ
# -----------------------------------


def explain(diversity: float | None) -> mcce.Counterfactuals[pd.DataFrame]:
    """Five answers for the person."""
    explainer = mcce.MCCE(
        score,
        desired=(0.5, 1.0),
        n_counterfactuals=5,
        diversity=diversity,
        random_state=0,
    )
    return explainer.fit(applicants).explain(person)


best, diverse = explain(None), explain(0.5)
diverse.frame

# %%
# The first answer is always the same. The others trade distance for choice.

figure, panels = plt.subplots(1, 2, figsize=(8, 3.6), sharey=True, layout="constrained")
results = {"diversity=None": best, "diversity=0.5": diverse}
for axes, (title, result) in zip(panels, results.items(), strict=True):
    change = result.frame.to_numpy() - person.to_numpy()
    for rank, row in enumerate(change, start=1):
        places = np.arange(3) + (rank - 3) * 0.15
        axes.bar(places, row, 0.13, label=f"answer {rank}", color=f"C{rank - 1}")
    axes.axhline(0, color="black", linewidth=0.8)
    axes.set_xticks(range(3), person.columns)
    axes.set_title(title)
    axes.spines[["top", "right"]].set_visible(False)
panels[0].set_ylabel("change, thousands")
panels[1].legend(frameon=False, fontsize="small")
plt.show()
