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

import matplotlib.pyplot as plt
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier

import mcce
from mcce import constraints as c
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
# The past stays as it is, and so does what nobody should change for a loan. Amounts may fall by a
# third, a loan may not become shorter than affordable, and accounts may only grow.

rules = [
    c.frozen("CreditHistory", "ExistingCredits", "ResidenceSince", "InstallmentRate", "Purpose"),
    c.frozen("Job", "Housing", "Property", "PeopleLiable", "Telephone", "EmploymentSince"),
    c.change("CreditAmount", at_least="-33 %", at_most=0),
    c.change("Duration", at_least="-50 %", at_most=0),
    c.relation("at most 300 DM a month", "CreditAmount <= 300 * Duration"),
    c.transitions("CheckingStatus", {"<0 DM": ["0-200 DM", ">=200 DM"], "0-200 DM": [">=200 DM"]}),
    c.transitions("Savings", {"<100 DM": ["100-500 DM", "500-1000 DM"]}),
    c.transitions("OtherDebtors", {"none": ["guarantor", "co-applicant"]}),
    c.transitions("OtherInstallmentPlans", {"bank": ["none"], "stores": ["none"]}),
]


def explain(constraints: list[c.Constraint]) -> mcce.Counterfactuals[pd.DataFrame]:
    """Answers for the declined applicants, under some constraints."""
    explainer = mcce.MCCE(
        model,
        desired="good",
        immutable=["Sex", "ForeignWorker"],
        constraints=[c.frozen("Age"), *constraints],
        generator=mcce.TreeChain(min_samples_leaf=20),
        search=mcce.Search("balanced", max_samples=1000),
        random_state=0,
    )
    return explainer.fit(train).explain(declined)


warnings.simplefilter("ignore", mcce.McceWarning)  # some have no answer: see below
free, ruled = explain([]), explain(rules)
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
