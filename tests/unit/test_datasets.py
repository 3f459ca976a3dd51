"""German Credit, the data set of the package."""

from __future__ import annotations

import hashlib
import warnings
from importlib.resources import files

import pytest
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from mcce import MCCE, McceWarning
from mcce.datasets import load_german_credit


def test_german_credit_is_the_file_its_card_describes():
    german = load_german_credit()
    content = files("mcce.datasets").joinpath("german_credit.csv.gz").read_bytes()

    assert hashlib.sha256(content).hexdigest() == german.card["sha256"]
    assert len(german.features) == len(german.target) == german.card["rows"]
    assert german.target.value_counts().to_dict() == german.card["target_counts"]
    assert german.features.shape[1] == 20
    assert german.features.select_dtypes("number").shape[1] == 7
    assert set(german.immutable) <= set(german.features.columns)
    assert german.desired in set(german.target)


def test_categories_have_the_declared_levels_in_their_order():
    german = load_german_credit()
    features = german.features

    declared = {c["name"]: c["levels"] for c in german.card["columns"] if "levels" in c}
    for name in features.select_dtypes("category"):
        assert features[name].cat.categories.tolist() == declared[name] == sorted(declared[name])
        assert not features[name].cat.ordered
    assert features.select_dtypes(exclude=["category", "int64"]).empty


SAVINGS = ["unknown/no savings account", "<100 DM", "100-500 DM", "500-1000 DM", ">=1000 DM"]
TENURE = ["unemployed", "<1 year", "1-4 years", "4-7 years", ">=7 years"]
FROZEN = [
    *("Age", "Sex", "ForeignWorker", "PeopleLiable", "ResidenceSince", "CreditHistory", "Purpose"),
    *("Job", "Telephone", "Housing", "Property", "InstallmentRate"),
]


def flaws(old, new):
    """What a bank would not send of one plan."""
    moves = {name: (old[name], new[name]) for name in old.index if old[name] != new[name]}
    found = [name for name in FROZEN if name in moves]
    numbers = [
        name for name in ("CreditAmount", "Duration") if not old[name] / 2 <= new[name] <= old[name]
    ]
    month = [row["CreditAmount"] / row["Duration"] for row in (old, new)]
    if month[1] > max(300, month[0]):
        numbers.append("a month costs too much")
    account = {"<0 DM", "0-200 DM", "no checking account"}, {"0-200 DM", ">=200 DM"}
    goes = {
        "CheckingStatus": lambda a, b: a in account[0] and b in account[1],
        "Savings": lambda a, b: SAVINGS.index(a) < SAVINGS.index(b),
        "EmploymentSince": lambda a, b: TENURE.index(b) == TENURE.index(a) + 1,
        "OtherDebtors": lambda a, b: a == "none",
        "OtherInstallmentPlans": lambda a, b: b == "none",
        "ExistingCredits": lambda a, b: b < a,
    }
    found += [name for name, allowed in goes.items() if name in moves and not allowed(*moves[name])]
    least = {"100-500 DM": 1000, "500-1000 DM": 2000, ">=1000 DM": 3000}
    if "Savings" in moves and new["CreditAmount"] < least.get(new["Savings"], 0):
        found.append("saves the loan")
    return found + numbers + ["too many changes"] * (len(moves) > 3)


@pytest.mark.parametrize("n_counterfactuals", [1, pytest.param(3, marks=pytest.mark.slow)])
def test_no_plan_breaks_what_a_bank_would_sign(n_counterfactuals):
    german = load_german_credit()
    categories = german.features.select_dtypes("category").columns
    rows, good = german.features.astype(dict.fromkeys(categories, object)), german.target == "good"
    columns = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), make_column_selector(dtype_exclude="number")),
        (StandardScaler(), make_column_selector(dtype_include="number")),
    )
    predictor = make_pipeline(columns, LogisticRegression(max_iter=1000))
    predictor.fit(rows[:800], good[:800])
    explainer = MCCE(predictor, constraints=german.rules, random_state=0)
    explainer.set_params(immutable=["Age", "Sex", "ForeignWorker"], search="balanced")
    if n_counterfactuals > 1:
        explainer.set_params(n_counterfactuals=n_counterfactuals, diversity=0.8)
    people = rows[800:]
    declined = people[~predictor.predict(people)][: None if n_counterfactuals > 1 else 20]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", McceWarning)
        result = explainer.fit(rows[:800]).explain(declined)

    found = [flaws(declined.loc[label[0]], answer) for label, answer in result.frame.iterrows()]

    assert len(found) >= (115 if n_counterfactuals > 1 else 15)
    assert not any(found)
    # What is discouraged is somebody's answer only where nothing else is.
    own = declined.iloc[result.owner].reset_index(drop=True)
    new = result.frame.reset_index(drop=True)
    last = new["Savings"].ne(own["Savings"]) & new["Savings"].eq(">=1000 DM")
    last |= new["EmploymentSince"].ne(own["EmploymentSince"]) & new["EmploymentSince"].isin(
        TENURE[3:]
    )
    per_person = last.groupby(result.owner)
    assert (per_person.all() == per_person.any()).all()
