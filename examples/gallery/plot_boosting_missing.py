"""
Boosting, categories and missing values
=======================================

``HistGradientBoostingClassifier`` takes pandas categories and missing values as they are, and so
does ``mcce``: no encoding, no imputation.
"""

# %%
# Data with gaps
# --------------
# A fifth of the applicants do not state their income, and some do not name their sector.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier

import mcce

chance = np.random.default_rng(0)
n_people = 800
income = chance.gamma(9.0, 5.0, n_people).round()
sector = chance.choice(["industry", "services", "public"], n_people, p=[0.3, 0.5, 0.2])
debt = chance.gamma(2.0, 8.0, n_people).round()
points = income - debt + 8 * (sector == "public") + chance.normal(0, 6, n_people)
income[chance.random(n_people) < 0.2] = np.nan
people = pd.DataFrame(
    {
        "age": chance.integers(20, 70, n_people),
        "income": income,
        "debt": debt,
        "sector": pd.Series(sector).mask(chance.random(n_people) < 0.1).astype("category"),
    }
)
repaid = np.where(points > 25, "yes", "no")
people.isna().mean()

# %%
# Fit and explain
# ---------------

model = HistGradientBoostingClassifier(
    categorical_features="from_dtype", max_iter=40, random_state=0
).fit(people, repaid)
declined = people[model.predict(people) == "no"].head(100)
explainer = mcce.MCCE(model, desired="yes", immutable=["age"], random_state=0).fit(people)
result = explainer.explain(declined)
result.frame.dtypes.equals(people.dtypes)

# %%
# Missing is a value like any other, so an answer may leave a gap as it is. A constraint requires
# answers that state an income:

n_missing = int(result.frame["income"].isna().sum())
rule = mcce.constraints.relation("states an income", "not missing(income)")
stated = explainer.explain(declined, constraints=[rule])
print(f"{n_missing} answers without an income, {stated.frame['income'].isna().sum()} with the rule")

# %%
# Income and debt, before and after
# ---------------------------------
# Applicants without an income are drawn in the strip on the left.


def x_of(frame: pd.DataFrame) -> pd.Series:
    """Income, with missing values in the strip on the left."""
    return frame["income"].fillna(5)


before = declined.loc[stated.frame.index.get_level_values("factual")]
after = stated.frame
figure, axes = plt.subplots(figsize=(7, 4.5), layout="constrained")
axes.plot(
    [x_of(before), x_of(after)], [before["debt"], after["debt"]], color="lightgray", linewidth=0.8
)
axes.scatter(x_of(before), before["debt"], 14, "tab:red", label="declined", zorder=2)
axes.scatter(x_of(after), after["debt"], 14, "tab:blue", label="counterfactual", zorder=3)
axes.axvspan(0, 10, color="whitesmoke", zorder=0)
axes.set_xticks([5, 20, 40, 60, 80], ["missing", "20", "40", "60", "80"])
axes.set(xlabel="income", ylabel="debt")
axes.spines[["top", "right"]].set_visible(False)
axes.legend(frameon=False, ncols=2, loc="lower right", bbox_to_anchor=(1, 1))
plt.show()
