"""
First steps
===========

A logistic regression decides on the bundled German Credit applications. Which changes would turn
its refusals into acceptances?
"""

# %%
# A predictor
# -----------
# Any fitted classifier, pipeline or function will do.

import matplotlib.pyplot as plt
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import mcce
from mcce.datasets import load_german_credit

german = load_german_credit()
X, y = german.features, german.target
encode = make_column_transformer(
    (OneHotEncoder(handle_unknown="ignore"), make_column_selector(dtype_exclude="number")),
    (StandardScaler(), make_column_selector(dtype_include="number")),
)
predictor = make_pipeline(encode, LogisticRegression(max_iter=1000)).fit(X, y)
declined = X[predictor.predict(X) == "bad"].head(50)

# %%
# Counterfactuals
# ---------------
# What nobody can change is immutable, and rules that come with the data say what a bank would
# advise. The default search, "balanced", prefers few changes that look
# real together.

explainer = mcce.MCCE(
    predictor,
    desired="good",
    immutable=["Age", "Sex", "ForeignWorker"],
    constraints=german.rules,
    random_state=0,
)
result = explainer.fit(X).explain(declined)
result

# %%
# One line per changed cell:

changes = result.changes()
changes.head()

# %%
# What changes most often
# -----------------------

share = changes["feature"].value_counts() / len(declined)
figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
share.sort_values().plot.barh(ax=axes)
axes.set(xlabel="share of declined applicants whose answer changes it", ylabel="")
axes.spines[["top", "right"]].set_visible(False)
plt.show()
