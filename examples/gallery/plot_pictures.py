"""
Pictures of answers
===================

A table of counterfactuals answers every question and shows none of it. ``mcce.report.plots`` draws
them: one answer, several side by side, and what happens over all people. Every function takes axes,
or makes them, and returns them.
"""

# %%
# Declined applicants
# -------------------
# A classifier on German Credit, and three answers for everybody it declines. The bundled labels
# have words, units and levels for every feature.

import matplotlib.pyplot as plt
from sklearn.ensemble import HistGradientBoostingClassifier

from mcce import MCCE
from mcce.datasets import load_german_credit
from mcce.report import Labels, plots

german = load_german_credit()
X, y = german.features, german.target
predictor = HistGradientBoostingClassifier(
    categorical_features="from_dtype", max_iter=40, random_state=0
).fit(X[:800], y[:800])

explainer = MCCE(
    predictor,
    desired="good",
    immutable=["Age", "Sex"],
    constraints=german.rules,
    search="sparse",
    n_counterfactuals=3,
    diversity=0.5,
    random_state=0,
).fit(X[:800])
result = explainer.explain(X[800:][predictor.predict(X[800:]) == "bad"])
labels = Labels.bundled("german")
accepted = X[:800][predictor.predict(X[:800]) == "good"]
result

# %%
# One person
# ----------
# The hollow dot is the person, the full one the answer. Each feature has a scale of its own; the
# bars behind are the accepted people.

person = result.people.index[3]
plots.plot_answers(result, person, accepted=accepted, labels=labels)
plt.show()

# %%
# The same as a table, with changed cells marked:

result.style()

# %%
# Everybody
# ---------
# Which features do the best answers change, and in which direction?

plots.plot_changed_features(result, labels=labels)
plt.show()

# %%
# Does recourse cost one group more than another? The intervals come from a bootstrap over people.
# Beside them stand those without an answer, of whom the mean says nothing.

plots.plot_group_costs(result, "Sex", labels=labels)
plt.show()

# %%
# Few changes or small ones
# -------------------------
# Searches differ in what they save on. What stands left and below is better in both.

results = {"sparse": result}
for name in ("paper", "near"):
    other = explainer.set_params(search=name, n_counterfactuals=1, diversity=None)
    results[name] = other.fit(X[:800]).explain(result.factuals)
plots.plot_front(results)
plt.show()
