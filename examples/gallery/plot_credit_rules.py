"""
Advice that people can follow
=============================

Without rules, a counterfactual may require what nobody can do: another credit history, or three
years of employment by tomorrow. Constraints say what is possible.
"""

# %%
# A credit model
# --------------

import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier

import mcce
from mcce.datasets import load_german_credit

german = load_german_credit()
train, target = german.features.iloc[:800], german.target.iloc[:800]
model = HistGradientBoostingClassifier(
    categorical_features="from_dtype", max_iter=40, random_state=0
).fit(train, target)
test = german.features.iloc[800:]
declined = test[model.predict(test) == "bad"].head(30)

# %%
# The rules
# ---------
# German Credit comes with rules that a bank would sign. The past stays as it is, and so does what
# nobody should change for a loan. Amounts may fall by half, a loan may not become shorter than
# affordable, accounts may only grow, and nobody is told to close one.

rules = Path(str(german.rules)).read_text(encoding="utf-8")
print(rules[: rules.index("# Savings")])

# %%
# The answers
# -----------


def explain(constraints: Path | None) -> mcce.Counterfactuals[pd.DataFrame]:
    """Answers for the declined applicants, under some constraints."""
    explainer = mcce.MCCE(
        model,
        desired="good",
        immutable=["Age", "Sex", "ForeignWorker"],
        constraints=constraints,
        generator=mcce.TreeChain(min_samples_leaf=20),
        search=mcce.Search("balanced", max_samples=1000),
        random_state=0,
    )
    return explainer.fit(train).explain(declined)


warnings.simplefilter("ignore", mcce.McceWarning)  # some have no answer: see below
free, ruled = explain(None), explain(german.rules)
ruled.changes().head(6)

# %%
# Rules cost something: some people have no answer, which is an answer too. The reasons say which
# rule stands in the way.

ruled.missing["reason"].head(3).to_list()

# %%
# What the answers change
# -----------------------

columns = {
    name: result.changes()["feature"].value_counts() / len(result.frame)
    for name, result in {"without rules": free, "with rules": ruled}.items()
}
shares = pd.DataFrame(columns).fillna(0).sort_values(["with rules", "without rules"])

figure, axes = plt.subplots(figsize=(7, 5), layout="constrained")
shares.plot.barh(ax=axes, color=["lightgray", "tab:blue"], width=0.8)
axes.set(xlabel="share of the answers that change it", ylabel="")
axes.spines[["top", "right"]].set_visible(False)
axes.legend(frameon=False, loc="lower right")
plt.show()
